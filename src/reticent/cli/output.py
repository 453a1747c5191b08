"""The output of commands: messages on standard error, data and JSON on standard output.

Long work shows its progress: one updated line on a terminal, a new line every few seconds elsewhere.
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
_LOSS_SCALE = " (0: unchanged, 1: all information lost)"


def be_quiet() -> None:
    """Suppress messages. Errors and JSON are still printed."""
    _QUIET.append(True)


def is_quiet() -> bool:
    """Whether messages are suppressed."""
    return bool(_QUIET)


def say(text: str = "") -> None:
    """Print a message, unless --quiet is set."""
    if is_quiet():
        return
    print(text, file=sys.stderr)  # noqa: T201


def emit(result: dict[str, Any]) -> None:
    """Print one JSON object as the last line of standard output."""
    print(json.dumps(result, allow_nan=False, default=str))  # noqa: T201


def figures(
    counts: RecordCounts,
    seconds: float,
    claims: Mapping[str, Any] | None = None,
    metrics: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return the figures of a command, under stable names for scripts."""
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
    """Return the figures of a release."""
    more = {"method": release.method, "policy_hash": release.policy_hash, "explain": dict(release.explain)}
    return figures(release.records, seconds, release.guarantee.claims, release.metrics) | more


def describe(release: Release, seconds: float, verb: str = "released") -> None:
    """Print a summary of a release."""
    from reticent.release.wording import claims_in_words

    counts = release.records
    say(
        f"{counts.published:,} of {counts.input:,} records {verb} with {release.method} in {seconds:.1f} s; {counts.suppressed:,} suppressed."
    )
    for line in claims_in_words(release.guarantee.claims):
        say(f"  - {line}")
    say(f"  Holds against {release.guarantee.against}.")
    if release.guarantee.not_covered:
        say(f"  Not covered: {len(release.guarantee.not_covered)} kinds of attacker; see README.txt in the release.")
    for name, value in release.metrics.items():
        if name == "loss" or release.shape != "generalized":
            figure = f"{value:,.0f}" if value >= _LARGE else f"{value:.4g}"
            say(f"  {name.replace('_', ' ')}: {figure}{_LOSS_SCALE if name == 'loss' else ''}")
    if release.seeded:
        say("  Made with a seed: for tests only, do not publish.")


PROGRESS_INTERVAL = 5.0
"""Seconds between two progress lines without a terminal."""
_TERMINAL_INTERVAL = 0.25
_PROGRESS_OFF: list[bool] = []


def search_progress(cancellation: CancellationToken) -> Callable[[], str]:
    """Return a function that describes a search: checked nodes, best loss so far and proved lower bound."""

    def words() -> str:
        nodes, best, bound = cancellation.progress
        parts = [f"{nodes:,} nodes checked"] if nodes else []
        parts += [f"best loss so far {best:.4f}"] if 0 < best < float("inf") else []
        parts += [f"lower bound {bound:.4f}"] if 0 < bound < float("inf") else []
        return ", ".join(parts)

    return words


@contextmanager
def suppress_progress() -> Iterator[None]:
    """Suppress progress lines within the block, so that another command can show the output."""
    _PROGRESS_OFF.append(True)
    try:
        yield
    finally:
        _PROGRESS_OFF.pop()


@contextmanager
def show_progress(
    what: str, status: Callable[[], str] | None = None, *, interval: float = PROGRESS_INTERVAL
) -> Iterator[None]:
    """Show that long work is running, its duration, and its progress from `status`."""
    if is_quiet() or _PROGRESS_OFF:
        yield
        return
    start, done = time.monotonic(), threading.Event()

    def words() -> str:
        progress = status() if status is not None else ""
        return f"{what}: {', '.join(filter(None, (progress, f'{time.monotonic() - start:.0f} s')))}"

    # With --verbose, log lines would leave the end of an overwritten line behind.
    verbose = logging.getLogger("reticent").isEnabledFor(logging.DEBUG)
    line = _StatusLine() if sys.stderr.isatty() and not verbose else None
    tick = _TERMINAL_INTERVAL if line is not None else interval
    if line is not None:
        line.show(what)
    if verbose:
        logging.getLogger("reticent").debug("%s", what)

    def update() -> None:
        while not done.wait(tick):
            (line.show if line is not None else say)(words())

    thread = threading.Thread(target=update, name="progress", daemon=True)
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
    """Show each step while it runs and its duration, on a terminal only."""
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
    """The last line of a terminal, overwritten with plain characters that every terminal supports."""

    def __init__(self) -> None:
        self._length = 0

    def show(self, words: str) -> None:
        """Replace the line. The next output starts at its beginning."""
        words = words[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write(f"\r{words.ljust(self._length)}\r")
        sys.stderr.flush()
        self._length = len(words)
