"""A child process for heavy work: it does not slow down the feeds, frees its memory and may crash safely."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any


class ChildProcess:
    """A process that calls `work(pipe, *values)`, where `work` is a module-level function; it ends with the server."""

    def __init__(self, work: Callable[..., None], *values: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, child_pipe = context.Pipe()
        self._process = context.Process(target=work, args=(child_pipe, *values), name="reticent-apart", daemon=True)
        self._process.start()
        child_pipe.close()  # only the child has it open, so that each side notices when the other one ends

    @property
    def alive(self) -> bool:
        """Return whether the process is running."""
        return self._process.is_alive()

    def end(self) -> None:
        """Kill the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
