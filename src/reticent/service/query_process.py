"""Questions to a release, answered in a process of their own that lets the feeds go first.

To count a large release takes seconds of computing; beside the feeds, in one interpreter with them, they would wait for it. The
process starts with the first question, keeps the last releases open, and ends with the server.

Guarantee: a question changes nothing; what fails there is told in words that quote no data.
Not covered: many who ask at once; questions are answered one after the other.
Cost: the memory of a second interpreter and of two releases.
"""

from __future__ import annotations

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from reticent.disk import set_low_priority
from reticent.service.child_process import ChildProcess
from reticent.service.problems import ServiceError, to_service_error

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from reticent.read.received import Received

T = TypeVar("T")
_MAX_OPEN = 2
"""Releases that stay open, with all that their estimators have worked out."""


@dataclass(frozen=True, repr=False)
class ReleaseHandle:
    """A release by its name, and how to get at it: its bytes alone, or the lines of a stream and their codebook."""

    name: str
    load: Callable[[], tuple[bytes, bytes]]


class QueryProcess:
    """The process, as the server sees it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: ChildProcess | None = None

    def ask(self, handle: ReleaseHandle, work: Callable[..., T], *about: Any) -> T:
        """Calls a function of a module with the release of a place and plain values, over there; not for the event loop."""
        with self._lock:
            try:
                answer, problem = self._exchange(handle, work, about)
            except (EOFError, OSError):
                self.close()
                words = "The question ended early, perhaps for want of memory."
                raise ServiceError(500, "ask", words, "Ask for fewer values.") from None
        if problem is not None:
            raise problem
        return answer

    def _exchange(
        self, place: ReleaseHandle, work: Callable[..., T], about: tuple[Any, ...]
    ) -> tuple[T, ServiceError | None]:
        if self._process is None or not self._process.alive:
            self._process = ChildProcess(_serve_questions)
        link = self._process.pipe
        link.send((place.name, work, about))
        if not link.recv():
            try:
                link.send(place.load())
            except BaseException:
                self.close()  # it waits for what does not come
                raise
        answer: tuple[T, ServiceError | None] = link.recv()
        return answer

    def close(self) -> None:
        """Ends the process, whatever it is at."""
        if self._process is not None:
            self._process.end()


def _serve_questions(link: Connection) -> None:
    """The other side: a question, the release where it is not open yet, and the answer."""
    set_low_priority()
    known: OrderedDict[str, Received] = OrderedDict()
    while True:
        try:
            name, work, about = link.recv()
            link.send(name in known)
            data = None if name in known else link.recv()
        except (EOFError, OSError):
            return
        try:
            if data is not None:
                known[name] = open_received_release(*data)
            known.move_to_end(name)
            if len(known) > _MAX_OPEN:
                known.popitem(last=False)
            link.send((work(known[name], *about), None))
        except Exception as error:  # noqa: BLE001 - it is told on the other side
            link.send((None, to_service_error(error)))


def open_received_release(data: bytes, codebook: bytes) -> Received:
    """A release as its recipient has it; with a codebook, the lines of a stream."""
    import orjson

    from reticent.read.received import Received, read
    from reticent.read.wire import from_lines
    from reticent.release.codec import from_bytes

    if codebook:
        return Received.of(from_lines(data.decode().splitlines(), orjson.loads(codebook)))
    with tempfile.TemporaryDirectory(prefix="reticent-explore-") as folder:
        return read(from_bytes(data).to_dir(Path(folder) / "release", format="parquet"))
