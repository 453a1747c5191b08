"""An MLLP port: framed messages over TCP, each answered when it is safe.

A message is acknowledged (AA) only after the stream has committed it to the store: a sender that hears nothing sends it
again, and none is lost. MLLP knows no encryption: listen on the loopback address, behind a tunnel.
"""

from __future__ import annotations

import datetime as dt
import selectors
import socket
from contextlib import suppress
from urllib.parse import urlsplit

from reticent.connectors.hl7.lines import END, START
from reticent.connectors.hl7.message import Message
from reticent.errors import ConnectorError, PolicyError

_CHUNK = 1 << 16
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


class MllpSource:
    """Reads what senders have sent so far; `acknowledge` answers them once it is stored."""

    regular = False
    answers = True

    def __init__(self, address: str, *, wake: int | None = None) -> None:
        host, port = _place(address)
        self.name = f"mllp://{host}:{port}"
        self._wake = wake
        self._buffers: dict[socket.socket, bytes] = {}
        self._unanswered: list[tuple[socket.socket, bytes]] = []
        self._watch = selectors.DefaultSelector()
        try:
            self._door = socket.create_server((host, port))
        except OSError:
            raise _taken(host, port) from None
        self._watch.register(self._door, selectors.EVENT_READ)
        if wake is not None:
            self._watch.register(wake, selectors.EVENT_READ)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._door.getsockname()[1])

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
            for key, _ in self._watch.select():
                if key.fileobj is self._door:
                    self._greet()
                elif isinstance(key.fileobj, socket.socket):
                    frames += self._hear(key.fileobj)
                else:
                    return None
            if frames:
                return b"".join(frames)

    def acknowledge(self) -> None:
        """Answers every message read so far: it is stored."""
        for link, answer in self._unanswered:
            with suppress(OSError):  # a sender that has gone will send again
                link.sendall(answer)
        self._unanswered = []

    def _greet(self) -> None:
        link, _ = self._door.accept()
        self._buffers[link] = b""
        self._watch.register(link, selectors.EVENT_READ)

    def _hear(self, link: socket.socket) -> list[bytes]:
        try:
            data = link.recv(_CHUNK)
        except OSError:
            data = b""
        if not data:
            self._leave(link)
            return []
        *whole, rest = (self._buffers[link] + data).split(END)
        self._buffers[link] = rest
        if len(rest) > _LONGEST:
            self._leave(link)
        frames = [frame.lstrip(b"\r\n") for frame in whole]
        self._unanswered += [(link, _answer(frame)) for frame in frames]
        return [frame + END for frame in frames]

    def _leave(self, link: socket.socket) -> None:
        self._watch.unregister(link)
        self._buffers.pop(link, None)
        link.close()

    def close(self) -> None:
        """Closes the port and every connection."""
        for link in list(self._buffers):
            self._leave(link)
        self._watch.close()
        self._door.close()


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
