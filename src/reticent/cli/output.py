"""What commands print: words on standard error, data and JSON on standard output.

Long work shows its progress: a line that changes on a terminal, a new line every few seconds elsewhere.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent._core.table import CancellationToken
    from reticent.release import RecordCounts, Release

_QUIET: list[bool] = []
_LARGE = 1000
_LOSS_SCALE = " (0: all as it was, 1: nothing left)"


def be_quiet() -> None:
    """Leaves out the lines for people; errors and JSON stay."""
    _QUIET.append(True)


def is_quiet() -> bool:
    """Whether the lines for people are left out."""
    return bool(_QUIET)


def say(text: str = "") -> None:
    """A line for people."""
    if is_quiet():
        return
    print(text, file=sys.stderr)  # noqa: T201


def emit(result: dict[str, Any]) -> None:
    """One JSON object, as the last line of standard output."""
    print(json.dumps(result, allow_nan=False, default=str))  # noqa: T201


def figures(
    counts: RecordCounts,
    seconds: float,
    claims: Mapping[str, Any] | None = None,
    metrics: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """What every command tells, under the names that scripts rely on."""
    return {
        "input": counts.input,
        "published": counts.published,
        "withheld": counts.withheld,
        "suppressed": counts.suppressed,
        "seconds": round(seconds, 4),
        "guarantee": dict(claims or {}),
        "metrics": dict(metrics or {}),
    }


def summary(release: Release, seconds: float) -> dict[str, Any]:
    """The figures of a release."""
    more = {"method": release.method, "policy_hash": release.policy_hash, "explain": dict(release.explain)}
    return figures(release.records, seconds, release.guarantee.claims, release.metrics) | more


def describe(release: Release, seconds: float, verb: str = "released") -> None:
    """A release in plain words."""
    from reticent.release.wording import claims_in_words

    counts = release.records
    say(
        f"{counts.published:,} of {counts.input:,} records {verb} with {release.method} in {seconds:.1f} s; {counts.suppressed:,} suppressed."
    )
    for line in claims_in_words(release.guarantee.claims):
        say(f"  - {line}")
    say(f"  Holds against {release.guarantee.against}.")
    if release.guarantee.not_covered:
        say(
            f"  Not covered: {len(release.guarantee.not_covered)} kinds of reader; README.txt of the release names each."
        )
    for name, value in release.metrics.items():
        if name == "loss" or release.shape != "generalized":
            figure = f"{value:,.0f}" if value >= _LARGE else f"{value:.4g}"
            say(f"  {name.replace('_', ' ')}: {figure}{_LOSS_SCALE if name == 'loss' else ''}")
    if release.seeded:
        say("  Made with a seed: fit for tests, not for publication.")


PROGRESS_INTERVAL = 5.0
"""Seconds between two lines where there is no terminal."""
_TERMINAL_INTERVAL = 0.25
_PROGRESS_OFF: list[bool] = []


def search_progress(cancellation: CancellationToken) -> Callable[[], str]:
    """What a search has to say of itself: nodes, the best so far, and the bound it has proved."""

    def words() -> str:
        nodes, best, bound = cancellation.progress
        parts = [f"{nodes:,} nodes checked"] if nodes else []
        parts += [f"best loss so far {best:.4f}"] if 0 < best < float("inf") else []
        parts += [f"none below {bound:.4f}"] if 0 < bound < float("inf") else []
        return ", ".join(parts)

    return words


@contextmanager
def suppress_progress() -> Iterator[None]:
    """No progress meanwhile: the outcome of a command is shown by another one, and its first lines are to be the outcome."""
    _PROGRESS_OFF.append(True)
    try:
        yield
    finally:
        _PROGRESS_OFF.pop()


@contextmanager
def show_progress(
    what: str, status: Callable[[], str] | None = None, *, interval: float = PROGRESS_INTERVAL
) -> Iterator[None]:
    """Says that something long goes on, how long already, and how far as `tell` knows it."""
    if is_quiet() or _PROGRESS_OFF:
        yield
        return
    start, done = time.monotonic(), threading.Event()

    def words() -> str:
        news = status() if status is not None else ""
        return f"{what}: {', '.join(filter(None, (news, f'{time.monotonic() - start:.0f} s')))}"

    # Beside the lines of --verbose a line that is written over would leave its end behind.
    talking = logging.getLogger("reticent").isEnabledFor(logging.DEBUG)
    line = _StatusLine() if sys.stderr.isatty() and not talking else None
    tick = _TERMINAL_INTERVAL if line is not None else interval
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
    if is_quiet() or not sys.stderr.isatty():
        yield lambda step: None  # noqa: ARG005
        return
    with ExitStack() as current:

        def step(name: str) -> None:
            current.close()
            current.callback(_say_duration, name, time.monotonic())
            current.enter_context(show_progress(name))

        yield step


def _say_duration(name: str, start: float) -> None:
    say(f"  {name}: {time.monotonic() - start:.1f} s")


class _StatusLine:
    """The last line of a terminal, written over again and again; plain characters, which every terminal knows."""

    def __init__(self) -> None:
        self._length = 0

    def show(self, words: str) -> None:
        """Puts words in place of the last ones; the next output begins where they began."""
        words = words[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write(f"\r{words.ljust(self._length)}\r")
        sys.stderr.flush()
        self._length = len(words)
