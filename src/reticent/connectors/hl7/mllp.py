"""Receive framed messages over TCP (MLLP) and acknowledge each one after it is stored.

A message is acknowledged (AA) only after the stream has committed it to the store. A sender without an acknowledgment
sends it again, so none is lost. Sender, number and content identify a message, so none is released twice. MLLP has no
encryption: listen on the loopback address, behind a tunnel.
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
# A sender that exceeds this size without ending a message is disconnected.
_MAX_MESSAGE = 16 << 20


def check_port(address: str) -> None:
    """Refuse a port that is not free; the port does not listen yet, so no sender is turned away."""
    host, port = _host_and_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            raise _port_error(host, port) from None


def _port_error(host: str, port: int) -> ConnectorError:
    return ConnectorError(f"mllp://{host}:{port}: Reticent cannot listen on this port.", hint="Choose a free port.")


@dataclass
class _Connection:
    """A sender: the start of an incomplete message, and acknowledgments it has not read yet."""

    received: bytes = b""
    unsent: bytearray = field(default_factory=bytearray)


class MllpSource:
    """Reads complete messages from all senders; `acknowledge` answers them once they are stored.

    A message that is already stored is acknowledged again but not read again. The source never waits for a sender:
    unread acknowledgments stay with the connection, and it reads nothing more from that sender until they are gone.
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
        """The port number."""
        return int(self._server.getsockname()[1])

    def recognize(self, stored: Container[str]) -> None:
        """Set the collection of messages that are stored already."""
        self._stored = stored

    def receipts(self) -> list[str]:
        """Return the names of the messages that were read but not acknowledged."""
        return list(self._names)

    def skip(self, offset: int) -> None:
        """Do nothing: senders send unacknowledged messages again."""

    def fingerprint(self, _: int) -> None:
        """Return None: messages cannot be read a second time."""

    def guess(self, _: bytes) -> str:
        """Return the only format."""
        return "hl7"

    def read(self) -> bytes | None:
        """Return all complete messages, at least one; None when woken."""
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
        """Acknowledge every message read so far, after it is stored."""
        for link, answer in self._unanswered:
            self._send(link, answer)
        self._unanswered, self._names = [], {}

    def _accept(self) -> None:
        try:
            link, _ = self._server.accept()
        except OSError:  # no file descriptor is free: accept again later
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
        """Send as much as the sender accepts; the rest stays with its connection."""
        if link not in self._connections:
            return  # the sender has disconnected and will send again
        unsent = self._connections[link].unsent
        unsent += answer
        try:
            del unsent[: link.send(unsent) if unsent else 0]
        except BlockingIOError:
            pass
        except OSError:
            self._disconnect(link)
            return
        self._selector.modify(link, selectors.EVENT_WRITE if unsent else selectors.EVENT_READ)

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
        """Return whether a message must be read; acknowledge a stored one now, a repeated one with the first."""
        name, answer = message_name(frame), _acknowledgment(frame)
        if name in self._stored:
            self._send(link, answer)
            return False
        self._unanswered.append((link, answer))
        is_repeated = name in self._names
        self._names[name] = None
        return not is_repeated

    def _disconnect(self, link: socket.socket) -> None:
        self._selector.unregister(link)
        self._connections.pop(link, None)
        link.close()

    def close(self) -> None:
        """Close the port and every connection."""
        for link in list(self._connections):
            self._disconnect(link)
        self._selector.close()
        self._server.close()


def message_name(frame: bytes) -> str:
    """Return a digest of a message's sender, number (MSH-10) and content, but not of its time (MSH-7)."""
    head, _, rest = frame.lstrip(START).partition(b"\r")
    fields = head.split(head[3:4] or b"|")
    parts = [*fields[2:4], *fields[9:10], rest.strip()] if head.startswith(b"MSH") else [frame]
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        digest.update(len(part).to_bytes(4, "little") + part)
    return digest.hexdigest()


def _max_senders() -> int:
    """Return the maximum number of senders; some file descriptors are reserved for the store and the sink."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return _SENDERS
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(_SENDERS, limit - _RESERVE))


def _acknowledgment(frame: bytes) -> bytes:
    """Return the acknowledgment: accepted, or an error if the frame is not a message."""
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
        raise PolicyError("The MLLP address has no host or no port.", hint="Write it as mllp://127.0.0.1:2575.")
    return host, port
