"""An MLLP port: framed messages over TCP, each answered when it is safe.

A message is acknowledged (AA) only after the stream has committed it to the store: a sender that hears nothing sends it
again, and none is lost; it is recognised by its sender, its number and its content, and none is released twice. MLLP knows no encryption: listen on the loopback address, behind a tunnel.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import selectors
import socket
from collections.abc import Container
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from reticent.connectors.hl7.lines import END, START, Message
from reticent.errors import ConnectorError, PolicyError

_CHUNK = 1 << 16
_PAUSE = 0.2
_SENDERS, _RESERVE = 4_000, 64
# A sender whose message never ends is cut off.
_LONGEST = 16 << 20


def check_port(address: str) -> None:
    """Refuses a port that cannot be had; nobody is let in yet, so no sender is turned away."""
    host, port = _place(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((host, port))
        except OSError:
            raise _taken(host, port) from None


def _taken(host: str, port: int) -> ConnectorError:
    return ConnectorError(f"mllp://{host}:{port}: cannot listen there.", hint="Choose a free port.")


@dataclass
class _Link:
    """A sender: what it has sent so far of a message, and what it has not yet read of our answers."""

    heard: bytes = b""
    unsaid: bytearray = field(default_factory=bytearray)


class MllpSource:
    """Reads what senders have sent so far; `acknowledge` answers them once it is stored.

    A message that was stored before is answered again and not read again. Nobody is waited for: answers that a sender does not
    read stay with its connection, and nothing more is read from it until it has read them.
    """

    regular = False
    answers = True

    def __init__(self, address: str, *, wake: int | None = None) -> None:
        host, port = _place(address)
        self.name = f"mllp://{host}:{port}"
        self._wake = wake
        self._links: dict[socket.socket, _Link] = {}
        self._unanswered: list[tuple[socket.socket, bytes]] = []
        self._names: dict[str, None] = {}
        self._stored: Container[str] = ()
        self._crowded = False
        self._watch = selectors.DefaultSelector()
        try:
            self._door = socket.create_server((host, port))
        except OSError:
            raise _taken(host, port) from None
        self._door.settimeout(0)
        self._watch.register(self._door, selectors.EVENT_READ)
        if wake is not None:
            self._watch.register(wake, selectors.EVENT_READ)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._door.getsockname()[1])

    def recognise(self, stored: Container[str]) -> None:
        """Tells which messages are stored already."""
        self._stored = stored

    def receipts(self) -> list[str]:
        """The names of the messages that were read and are not acknowledged yet."""
        return list(self._names)

    def skip(self, offset: int) -> None:
        """What was sent is gone; senders send again what was not answered."""

    def mark(self, _: int) -> None:
        """What was sent cannot be read again."""

    def guess(self, _: bytes) -> str:
        """There is one format."""
        return "hl7"

    def read(self) -> bytes | None:
        """All messages that are complete now, at least one; None when woken."""
        while True:
            frames: list[bytes] = []
            ready = self._watch.select(_PAUSE if self._crowded else None)
            self._open_door()
            for key, events in ready:
                if key.fileobj is self._door:
                    self._greet()
                elif isinstance(key.fileobj, socket.socket):
                    frames += self._serve(key.fileobj, events)
                else:
                    return None
            if frames:
                return b"".join(frames)

    def acknowledge(self) -> None:
        """Answers every message read so far: it is stored."""
        for link, answer in self._unanswered:
            self._say(link, answer)
        self._unanswered, self._names = [], {}

    def _greet(self) -> None:
        try:
            link, _ = self._door.accept()
        except OSError:  # no descriptor is left: whoever waits is let in when another has gone
            self._crowded = True
            self._watch.unregister(self._door)
            return
        if len(self._links) >= _most():
            link.close()
            return
        link.settimeout(0)
        self._links[link] = _Link()
        self._watch.register(link, selectors.EVENT_READ)

    def _open_door(self) -> None:
        if self._crowded:
            self._crowded = False
            self._watch.register(self._door, selectors.EVENT_READ)

    def _serve(self, link: socket.socket, events: int) -> list[bytes]:
        if events & selectors.EVENT_WRITE:
            self._say(link, b"")
        return self._hear(link) if events & selectors.EVENT_READ and link in self._links else []

    def _say(self, link: socket.socket, answer: bytes) -> None:
        """Sends as much as the sender takes; what is left waits with its connection."""
        if link not in self._links:
            return  # a sender that has gone will send again
        unsaid = self._links[link].unsaid
        unsaid += answer
        try:
            del unsaid[: link.send(unsaid) if unsaid else 0]
        except BlockingIOError:
            pass
        except OSError:
            self._leave(link)
            return
        self._watch.modify(link, selectors.EVENT_WRITE if unsaid else selectors.EVENT_READ)

    def _hear(self, link: socket.socket) -> list[bytes]:
        try:
            data = link.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._leave(link)
            return []
        *whole, rest = (self._links[link].heard + data).split(END)
        self._links[link].heard = rest
        frames = [frame for frame in (part.lstrip(b"\r\n") for part in whole) if self._is_new(link, frame)]
        if len(rest) > _LONGEST:
            self._leave(link)
        return [frame + END for frame in frames]

    def _is_new(self, link: socket.socket, frame: bytes) -> bool:
        """Whether a message is to be read; one that is stored is answered at once, one that is being stored together with it."""
        name, answer = message_name(frame), _answer(frame)
        if name in self._stored:
            self._say(link, answer)
            return False
        self._unanswered.append((link, answer))
        known = name in self._names
        self._names[name] = None
        return not known

    def _leave(self, link: socket.socket) -> None:
        self._watch.unregister(link)
        self._links.pop(link, None)
        link.close()

    def close(self) -> None:
        """Closes the port and every connection."""
        for link in list(self._links):
            self._leave(link)
        self._watch.close()
        self._door.close()


def message_name(frame: bytes) -> str:
    """Tells a message: its sender, its number (MSH-10) and what it says, whenever it was sent (MSH-7)."""
    head, _, rest = frame.lstrip(START).partition(b"\r")
    fields = head.split(head[3:4] or b"|")
    parts = [*fields[2:4], *fields[9:10], rest.strip()] if head.startswith(b"MSH") else [frame]
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        digest.update(len(part).to_bytes(4, "little") + part)
    return digest.hexdigest()


def _most() -> int:
    """How many senders may be connected: some descriptors are left for the store and the sink."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return _SENDERS
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(_SENDERS, limit - _RESERVE))


def _answer(frame: bytes) -> bytes:
    """The acknowledgement: accepted, or in error where there is no message to accept."""
    try:
        message = Message(frame.lstrip(START).decode("utf-8", "replace"))
        code, control, event = "AA", message.control, message.event
    except ValueError:
        code, control, event = "AE", "", ""
    now = dt.datetime.now(dt.UTC).strftime("%Y%m%d%H%M%S")
    kind = f"ACK^{event}" if event else "ACK"
    text = f"MSH|^~\\&|RETICENT||||{now}||{kind}|{control}|P|2.5\rMSA|{code}|{control}\r"
    return START + text.encode() + END


def _place(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None:
        raise PolicyError("The MLLP source needs a host and a port.", hint="Write mllp://127.0.0.1:2575.")
    return host, port
