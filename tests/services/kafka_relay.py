"""A relay before a broker that for a while tells its clients of no broker at all, as a broker does that has just been started."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_METADATA, _FLEXIBLE = 3, 9


class Relay:
    """Passes everything on between clients and a broker.

    Args:
        port: where clients come; the broker must name this one as its own.
        broker: the port where the broker listens.
    """

    def __init__(self, port: int, broker: int) -> None:
        self._broker, self._left, self._told = broker, 0, threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def tell_nobody(self, answers: int, seconds: float) -> None:
        """Empties the list of brokers in what clients are told, until so many have been told so."""
        with self._told:
            self._left = answers
            assert self._told.wait_for(lambda: self._left <= 0, seconds), "nobody has asked"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection(("127.0.0.1", self._broker))
                except OSError:
                    client.close()
                else:
                    self._join(client, broker)

    def _join(self, client: socket.socket, broker: socket.socket) -> None:
        asked: dict[int, int] = {}

        def note(request: bytes) -> bytes:
            key, version, number = struct.unpack_from(">hhi", request)
            if key == _METADATA:
                asked[number] = version
            return request

        def answer(given: bytes) -> bytes:
            version = asked.pop(int.from_bytes(given[:4], "big"), None)
            return given if version is None else self._emptied(given, version)

        for here, there, change in ((client, broker, note), (broker, client, answer)):
            threading.Thread(target=_pass_on, args=(here, there, change), daemon=True).start()

    def _emptied(self, answer: bytes, version: int) -> bytes:
        with self._told:
            if self._left <= 0:
                return answer
            self._left -= 1
            self._told.notify_all()
        assert version >= _FLEXIBLE
        return without_brokers(answer)


def without_brokers(answer: bytes) -> bytes:
    """An answer to a request for metadata whose list of brokers is empty."""
    first = at = 4 + 1 + 4  # number, tags, throttle
    count, at = _number(answer, at)
    for _ in range(count - 1):
        _, at = _text(answer, at + 4)
        _, at = _text(answer, at + 4)
        tags, at = _number(answer, at)
        assert not tags
    return answer[:first] + b"\x01" + answer[at:]


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _text(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _number(data, at)
    size = max(0, size - 1)
    return data[at : at + size], at + size


def _pass_on(here: socket.socket, there: socket.socket, change: Callable[[bytes], bytes]) -> None:
    """Frame by frame, until one side ends."""
    with here:
        with contextlib.suppress(OSError), here.makefile("rb") as frames:
            while head := frames.read(4):
                frame = change(frames.read(int.from_bytes(head, "big")))
                there.sendall(len(frame).to_bytes(4, "big") + frame)
        for end in (here, there):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
