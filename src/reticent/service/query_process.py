"""A child process with low priority that answers queries on a release.

Counts of a large release take seconds of CPU time; in the interpreter of the server they would delay the feeds. The
process starts with the first query, keeps the last releases open and ends with the server.

Guarantee: a query changes no data, and its error messages quote no data.
Not covered: many queries at the same time; the process answers them one by one.
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
"""Number of releases that stay open, with the intermediate results of their estimators."""


@dataclass(frozen=True, repr=False)
class ReleaseHandle:
    """The name of a release and a function that loads it: its bytes, or the lines of a stream and their codebook."""

    name: str
    load: Callable[[], tuple[bytes, bytes]]


class QueryProcess:
    """The server's side of the query process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: ChildProcess | None = None

    def ask(self, handle: ReleaseHandle, work: Callable[..., T], *about: Any) -> T:
        """Call `work(release, *about)` in the process, with a module-level function; do not call it in the event loop."""
        with self._lock:
            try:
                answer, problem = self._exchange(handle, work, about)
            except (EOFError, OSError):
                self.close()
                words = "The query process ended early; it may have run out of memory."
                raise ServiceError(500, "ask", words, "Query fewer values.") from None
        if problem is not None:
            raise problem
        return answer

    def _exchange(
        self, handle: ReleaseHandle, work: Callable[..., T], about: tuple[Any, ...]
    ) -> tuple[T, ServiceError | None]:
        if self._process is None or not self._process.alive:
            self._process = ChildProcess(_serve_questions)
        link = self._process.pipe
        link.send((handle.name, work, about))
        if not link.recv():
            try:
                link.send(handle.load())
            except BaseException:
                self.close()  # the process would wait for the release forever
                raise
        answer: tuple[T, ServiceError | None] = link.recv()
        return answer

    def close(self) -> None:
        """Kill the process, whatever it is doing."""
        if self._process is not None:
            self._process.end()


def _serve_questions(link: Connection) -> None:
    """Run in the child process: receive a query, and the release if it is not open, then send the answer."""
    set_low_priority()
    releases: OrderedDict[str, Received] = OrderedDict()
    while True:
        try:
            name, work, about = link.recv()
            link.send(name in releases)
            data = None if name in releases else link.recv()
        except (EOFError, OSError):
            return
        try:
            if data is not None:
                releases[name] = open_received_release(*data)
            releases.move_to_end(name)
            if len(releases) > _MAX_OPEN:
                releases.popitem(last=False)
            link.send((work(releases[name], *about), None))
        except Exception as error:  # noqa: BLE001 - the server raises it
            link.send((None, to_service_error(error)))


def open_received_release(data: bytes, codebook: bytes) -> Received:
    """Open a release as its recipient does; with a codebook, `data` is the lines of a stream."""
    import orjson

    from reticent.read.received import Received, read
    from reticent.read.wire import from_lines
    from reticent.release.codec import from_bytes

    if codebook:
        return Received.of(from_lines(data.decode().splitlines(), orjson.loads(codebook)))
    with tempfile.TemporaryDirectory(prefix="reticent-explore-") as folder:
        return read(from_bytes(data).to_dir(Path(folder) / "release", format="parquet"))
