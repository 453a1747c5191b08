"""Progress of long work: a line that changes on a terminal, a new line every few seconds elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from reticent.cli.output import quiet, say

EVERY = 5.0
"""Seconds between two lines where there is no terminal."""
_TICK = 0.25


class Search(Protocol):
    """Something that tells its nodes checked, its best loss and its bound."""

    @property
    def progress(self) -> tuple[int, float, float]:
        """The three figures."""


def told_by(watch: Search) -> Callable[[], str]:
    """What a search has to say of itself: nodes, the best so far, and the bound it has proved."""

    def words() -> str:
        nodes, best, bound = watch.progress
        parts = [f"{nodes:,} nodes checked"] if nodes else []
        parts += [f"best loss so far {best:.4f}"] if 0 < best < float("inf") else []
        parts += [f"none below {bound:.4f}"] if 0 < bound < float("inf") else []
        return ", ".join(parts)

    return words


@contextmanager
def working(what: str, tell: Callable[[], str] | None = None, *, every: float = EVERY) -> Iterator[None]:
    """Says that something long goes on, how long already, and how far as `tell` knows it."""
    if quiet():
        yield
        return
    start, done = time.monotonic(), threading.Event()

    def words() -> str:
        told = tell() if tell is not None else ""
        return f"{what}: {', '.join(filter(None, (told, f'{time.monotonic() - start:.0f} s')))}"

    with _shown(what) as show:
        tick = _TICK if show is not None else every

        def go_on() -> None:
            while not done.wait(tick):
                (show or say)(words())

        thread = threading.Thread(target=go_on, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


@contextmanager
def _shown(what: str) -> Iterator[Callable[[str], None] | None]:
    """A way to change the line on a terminal; none elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(what)) as status:
        yield lambda words: status.update(escape(words))
