"""Work in a process of its own: it keeps the feeds of this one quick, gives its memory back, and may fail without harm."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any


class ChildProcess:
    """A process that calls a function of a module with its end of a `link` and some values; it ends with this one at the latest."""

    def __init__(self, work: Callable[..., None], *values: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, *values), name="reticent-apart", daemon=True)
        self._process.start()
        theirs.close()  # ours alone stays open, so that its end is seen on either side

    @property
    def alive(self) -> bool:
        """Whether it is still there."""
        return self._process.is_alive()

    def end(self) -> None:
        """Ends the process, whatever it is at."""
        self._process.kill()
        self._process.join()
