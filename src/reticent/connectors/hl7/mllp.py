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
_MAX_MESSAGE = 16 << 20


def check_port(address: str) -> None:
    """Refuses a port that cannot be had; nobody is let in yet, so no sender is turned away."""
    host, port = _host_and_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((host, port))
        except OSError:
            raise _port_error(host, port) from None


def _port_error(host: str, port: int) -> ConnectorError:
    return ConnectorError(f"mllp://{host}:{port}: cannot listen there.", hint="Choose a free port.")


@dataclass
class _Connection:
    """A sender: what it has sent so far of a message, and what it has not yet read of our answers."""

    received: bytes = b""
    unsent: bytearray = field(default_factory=bytearray)


class MllpSource:
    """Reads what senders have sent so far; `acknowledge` answers them once it is stored.

    A message that was stored before is answered again and not read again. Nobody is waited for: answers that a sender does not
    read stay with its connection, and nothing more is read from it until it has read them.
    """

    regular = False
    answers = True

    def __init__(self, address: str, *, wake: int | None = None) -> None:
        host, port = _host_and_port(address)
        self.name = f"mllp://{host}:{port}"
        self._wake = wake
        self._connections: dict[socket.socket, _Connection] = {}
        self._unanswered: list[tuple[socket.socket, bytes]] = []
        self._names: dict[str, None] = {}
        self._stored: Container[str] = ()
        self._is_full = False
        self._selector = selectors.DefaultSelector()
        try:
            self._server = socket.create_server((host, port))
        except OSError:
            raise _port_error(host, port) from None
        self._server.settimeout(0)
        self._selector.register(self._server, selectors.EVENT_READ)
        if wake is not None:
            self._selector.register(wake, selectors.EVENT_READ)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.getsockname()[1])

    def recognize(self, stored: Container[str]) -> None:
        """Tells which messages are stored already."""
        self._stored = stored

    def receipts(self) -> list[str]:
        """The names of the messages that were read and are not acknowledged yet."""
        return list(self._names)

    def skip(self, offset: int) -> None:
        """What was sent is gone; senders send again what was not answered."""

    def fingerprint(self, _: int) -> None:
        """What was sent cannot be read again."""

    def guess(self, _: bytes) -> str:
        """There is one format."""
        return "hl7"

    def read(self) -> bytes | None:
        """All messages that are complete now, at least one; None when woken."""
        while True:
            frames: list[bytes] = []
            ready = self._selector.select(_PAUSE if self._is_full else None)
            self._resume_accept()
            for key, events in ready:
                if key.fileobj is self._server:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    frames += self._serve(key.fileobj, events)
                else:
                    return None
            if frames:
                return b"".join(frames)

    def acknowledge(self) -> None:
        """Answers every message read so far: it is stored."""
        for link, answer in self._unanswered:
            self._send(link, answer)
        self._unanswered, self._names = [], {}

    def _accept(self) -> None:
        try:
            link, _ = self._server.accept()
        except OSError:  # no descriptor is left: whoever waits is let in when another has gone
            self._is_full = True
            self._selector.unregister(self._server)
            return
        if len(self._connections) >= _max_senders():
            link.close()
            return
        link.settimeout(0)
        self._connections[link] = _Connection()
        self._selector.register(link, selectors.EVENT_READ)

    def _resume_accept(self) -> None:
        if self._is_full:
            self._is_full = False
            self._selector.register(self._server, selectors.EVENT_READ)

    def _serve(self, link: socket.socket, events: int) -> list[bytes]:
        if events & selectors.EVENT_WRITE:
            self._send(link, b"")
        return self._receive(link) if events & selectors.EVENT_READ and link in self._connections else []

    def _send(self, link: socket.socket, answer: bytes) -> None:
        """Sends as much as the sender takes; what is left waits with its connection."""
        if link not in self._connections:
            return  # a sender that has gone will send again
        unsaid = self._connections[link].unsent
        unsaid += answer
        try:
            del unsaid[: link.send(unsaid) if unsaid else 0]
        except BlockingIOError:
            pass
        except OSError:
            self._disconnect(link)
            return
        self._selector.modify(link, selectors.EVENT_WRITE if unsaid else selectors.EVENT_READ)

    def _receive(self, link: socket.socket) -> list[bytes]:
        try:
            data = link.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._disconnect(link)
            return []
        *whole, rest = (self._connections[link].received + data).split(END)
        self._connections[link].received = rest
        frames = [frame for frame in (part.lstrip(b"\r\n") for part in whole) if self._is_new(link, frame)]
        if len(rest) > _MAX_MESSAGE:
            self._disconnect(link)
        return [frame + END for frame in frames]

    def _is_new(self, link: socket.socket, frame: bytes) -> bool:
        """Whether a message is to be read; one that is stored is answered at once, one that is being stored together with it."""
        name, answer = message_name(frame), _acknowledgment(frame)
        if name in self._stored:
            self._send(link, answer)
            return False
        self._unanswered.append((link, answer))
        known = name in self._names
        self._names[name] = None
        return not known

    def _disconnect(self, link: socket.socket) -> None:
        self._selector.unregister(link)
        self._connections.pop(link, None)
        link.close()

    def close(self) -> None:
        """Closes the port and every connection."""
        for link in list(self._connections):
            self._disconnect(link)
        self._selector.close()
        self._server.close()


def message_name(frame: bytes) -> str:
    """Tells a message: its sender, its number (MSH-10) and what it says, whenever it was sent (MSH-7)."""
    head, _, rest = frame.lstrip(START).partition(b"\r")
    fields = head.split(head[3:4] or b"|")
    parts = [*fields[2:4], *fields[9:10], rest.strip()] if head.startswith(b"MSH") else [frame]
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        digest.update(len(part).to_bytes(4, "little") + part)
    return digest.hexdigest()


def _max_senders() -> int:
    """How many senders may be connected: some descriptors are left for the store and the sink."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return _SENDERS
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(_SENDERS, limit - _RESERVE))


def _acknowledgment(frame: bytes) -> bytes:
    """The acknowledgement: accepted, or in error where there is no message to accept."""
    try:
        message = Message(frame.lstrip(START).decode("utf-8", "replace"))
        code, control, event = "AA", message.control_id, message.event
    except ValueError:
        code, control, event = "AE", "", ""
    now = dt.datetime.now(dt.UTC).strftime("%Y%m%d%H%M%S")
    kind = f"ACK^{event}" if event else "ACK"
    text = f"MSH|^~\\&|RETICENT||||{now}||{kind}|{control}|P|2.5\rMSA|{code}|{control}\r"
    return START + text.encode() + END


def _host_and_port(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None:
        raise PolicyError("The MLLP source needs a host and a port.", hint="Write mllp://127.0.0.1:2575.")
    return host, port
