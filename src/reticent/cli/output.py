"""What commands print: words on standard error, data and JSON on standard output, progress on a terminal only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.release import Release


def say(text: str = "") -> None:
    """A line for people."""
    print(text, file=sys.stderr)  # noqa: T201


def emit(result: dict[str, Any]) -> None:
    """One JSON object, as the last line of standard output."""
    print(json.dumps(result, allow_nan=False, default=str))  # noqa: T201


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner while something long runs, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def summary(release: Release, seconds: float) -> dict[str, Any]:
    """The figures of a release under the names that scripts rely on."""
    counts = release.counts
    return {
        "rows_in": counts.rows_in,
        "rows_out": counts.published,
        "held": counts.held,
        "suppressed": counts.suppressed,
        "seconds": round(seconds, 4),
        "guarantee": dict(release.guarantee.claims),
        "metrics": dict(release.metrics),
        "method": release.method,
        "policy_hash": release.policy_hash,
        "explain": dict(release.explain),
    }


def describe(release: Release, seconds: float) -> None:
    """A release in plain words."""
    counts = release.counts
    say(
        f"{counts.published:,} of {counts.rows_in:,} records released with {release.method} in {seconds:.1f} s; {counts.suppressed:,} suppressed."
    )
    for line in claims_in_words(release.guarantee.claims):
        say(f"  - {line}")
    say(f"  Holds against {release.guarantee.against}.")
    if release.guarantee.not_covered:
        say(f"  Not covered: {'; '.join(release.guarantee.not_covered)}.")
    for name, value in release.metrics.items():
        say(f"  {name.replace('_', ' ')}: {value:,.4g}")
    if release.seeded:
        say("  Made with a seed: fit for tests, not for publication.")


def claims_in_words(claims: Any) -> list[str]:
    """Each claim as a sentence."""
    words = {
        "distinct": "every group has at least {} different sensitive values",
        "entropy": "the sensitive values of every group have the entropy of at least {} equally frequent ones",
        "recursive": "no sensitive value dominates its group (recursive (c, l) = {})",
        "frequency": "no sensitive value makes up more than 1/{} of its group",
    }
    said = []
    if "k" in claims:
        said.append(f"every published combination of quasi-identifiers stands for at least {claims['k']} records")
    said += [words[kind].format(number) for kind, number in claims.get("l", {}).items() if kind in words]
    said += [
        f"the sensitive values of every group lie within {number} of those of the whole table ({kind} distance)"
        for kind, number in claims.get("t", {}).items()
    ]
    others = {
        "posterior": "whatever was released, each value of a person stays at a probability of at most {:.4g}, relative to the design prior",
        "m-distinct": "every group shows at least {} different values, and no later release rules one of them out",
        "m-distinct*": "every group shows at least {} values whose possible updates do not meet",
        "m-invariance": "a person stands among the same {} values in every release",
        "max_risk": "given all releases, no value of a person is more likely than {:.4g}",
        "sealed": "a person stands among the same {} classes of values in every release",
    }
    rest = {name: value for name, value in claims.items() if name not in ("k", "l", "t")}
    said += [others[name].format(value) if name in others else f"{name}: {value}" for name, value in rest.items()]
    return said
