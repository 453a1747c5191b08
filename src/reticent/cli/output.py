"""What commands print: words on standard error, data and JSON on standard output, progress on a terminal only."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reticent.release import Counts, Release


_QUIET: list[bool] = []
_LARGE = 1000
_SCALE = " (0: all as it was, 1: nothing left)"


def be_quiet() -> None:
    """Leaves out the lines for people; errors and JSON stay."""
    _QUIET.append(True)


def quiet() -> bool:
    """Whether the lines for people are left out."""
    return bool(_QUIET)


def say(text: str = "") -> None:
    """A line for people."""
    if _QUIET:
        return
    print(text, file=sys.stderr)  # noqa: T201


def emit(result: dict[str, Any]) -> None:
    """One JSON object, as the last line of standard output."""
    print(json.dumps(result, allow_nan=False, default=str))  # noqa: T201


def figures(
    counts: Counts, seconds: float, claims: Mapping[str, Any] | None = None, metrics: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """What every command tells, under the names that scripts rely on."""
    return {
        "rows_in": counts.rows_in,
        "rows_out": counts.published,
        "held": counts.held,
        "suppressed": counts.suppressed,
        "seconds": round(seconds, 4),
        "guarantee": dict(claims or {}),
        "metrics": dict(metrics or {}),
    }


def summary(release: Release, seconds: float) -> dict[str, Any]:
    """The figures of a release."""
    more = {"method": release.method, "policy_hash": release.policy_hash, "explain": dict(release.explain)}
    return figures(release.counts, seconds, release.guarantee.claims, release.metrics) | more


def describe(release: Release, seconds: float, done: str = "released") -> None:
    """A release in plain words."""
    from reticent.release.wording import claims_in_words

    counts = release.counts
    say(
        f"{counts.published:,} of {counts.rows_in:,} records {done} with {release.method} in {seconds:.1f} s; {counts.suppressed:,} suppressed."
    )
    for line in claims_in_words(release.guarantee.claims):
        say(f"  - {line}")
    say(f"  Holds against {release.guarantee.against}.")
    if release.guarantee.not_covered:
        say(
            f"  Not covered: {len(release.guarantee.not_covered)} kinds of reader; README.txt of the release names each."
        )
    for name, value in release.metrics.items():
        if name == "loss" or release.shape != "generalised":
            figure = f"{value:,.0f}" if value >= _LARGE else f"{value:.4g}"
            say(f"  {name.replace('_', ' ')}: {figure}{_SCALE if name == 'loss' else ''}")
    if release.seeded:
        say("  Made with a seed: fit for tests, not for publication.")
