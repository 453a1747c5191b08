"""Progress of long work: a line that changes on a terminal, a new line every few seconds elsewhere."""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from reticent.cli.output import quiet, say

if TYPE_CHECKING:
    from reticent._core.table import Watch

EVERY = 5.0
"""Seconds between two lines where there is no terminal."""
_TICK = 0.25
_HUSHED: list[bool] = []


def told_by(watch: Watch) -> Callable[[], str]:
    """What a search has to say of itself: nodes, the best so far, and the bound it has proved."""

    def words() -> str:
        nodes, best, bound = watch.progress
        parts = [f"{nodes:,} nodes checked"] if nodes else []
        parts += [f"best loss so far {best:.4f}"] if 0 < best < float("inf") else []
        parts += [f"none below {bound:.4f}"] if 0 < bound < float("inf") else []
        return ", ".join(parts)

    return words


@contextmanager
def hushed() -> Iterator[None]:
    """No progress meanwhile: the outcome of a command is shown by another one, and its first lines are to be the outcome."""
    _HUSHED.append(True)
    try:
        yield
    finally:
        _HUSHED.pop()


@contextmanager
def working(what: str, tell: Callable[[], str] | None = None, *, every: float = EVERY) -> Iterator[None]:
    """Says that something long goes on, how long already, and how far as `tell` knows it."""
    if quiet() or _HUSHED:
        yield
        return
    start, done = time.monotonic(), threading.Event()

    def words() -> str:
        news = tell() if tell is not None else ""
        return f"{what}: {', '.join(filter(None, (news, f'{time.monotonic() - start:.0f} s')))}"

    # Beside the lines of --verbose a line that is written over would leave its end behind.
    talking = logging.getLogger("reticent").isEnabledFor(logging.DEBUG)
    line = _Line() if sys.stderr.isatty() and not talking else None
    tick = _TICK if line is not None else every
    if line is not None:
        line.show(what)
    if talking:
        logging.getLogger("reticent").debug("%s", what)

    def go_on() -> None:
        while not done.wait(tick):
            (line.show if line is not None else say)(words())

    thread = threading.Thread(target=go_on, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if line is not None:
            line.show("")


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Names each step while it runs and how long it took: on a terminal, nothing elsewhere."""
    if quiet() or not sys.stderr.isatty():
        yield lambda step: None  # noqa: ARG005
        return
    with ExitStack() as current:

        def step(name: str) -> None:
            current.close()
            current.callback(_took, name, time.monotonic())
            current.enter_context(working(name))

        yield step


def _took(name: str, start: float) -> None:
    say(f"  {name}: {time.monotonic() - start:.1f} s")


class _Line:
    """The last line of a terminal, written over again and again; plain characters, which every terminal knows."""

    def __init__(self) -> None:
        self._length = 0

    def show(self, words: str) -> None:
        """Puts words in place of the last ones; the next output begins where they began."""
        words = words[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write(f"\r{words.ljust(self._length)}\r")
        sys.stderr.flush()
        self._length = len(words)
