"""Compare policies on the same table: risk and utility of each, and which of them no other policy dominates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.audit.attack import Evidence
from reticent.audit.attack.homogeneity import homogeneity
from reticent.audit.risk import assess
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.publication import table as tables
from reticent.report.utility import utility
from reticent.verify.published import read_release, text_table


@dataclass(frozen=True)
class ComparedPolicy:
    """The risk and utility of one policy.

    Attributes:
        name: the policy's file name.
        met: whether the requirements could be met; the figures are None if not.
        guess: chance that the best guess of a person's sensitive value is right.
        found: mean prosecutor risk.
        query_error: median relative error of random counts.
        suppressed: share of suppressed records.
        frontier: whether no other policy is at least as good in guess and query error and better in one.
    """

    name: str
    method: str
    met: bool
    guess: float | None = None
    mean_risk: float | None = None
    query_error: float | None = None
    suppressed: float | None = None
    frontier: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def compare(
    original: pa.Table,
    policies: Sequence[tuple[str, Policy]],
    *,
    seed: int | None = None,
    progress: Callable[[str], None] = lambda step: None,  # noqa: ARG005
) -> list[ComparedPolicy]:
    """Release the table under each policy, in memory only, and measure risk and utility."""
    rows = []
    for name, policy in policies:
        progress(f"Evaluating {name}")
        rows.append(_evaluate(original, name, policy, seed))
    return [replace(one, frontier=_is_on_frontier(one, rows)) for one in rows]


def _evaluate(original: pa.Table, name: str, policy: Policy, seed: int | None) -> ComparedPolicy:
    try:
        release = tables.publish(original.select(list(policy.columns)), policy, seed=seed).release
    except GuaranteeError:
        return ComparedPolicy(name, policy.table.method, met=False)
    seen = read_release(release, name)
    guess = homogeneity(Evidence((seen,), policy))
    measured = utility([seen], text_table(original), policy, np.random.default_rng(seed or 0))
    return ComparedPolicy(
        name,
        policy.table.method,
        met=True,
        guess=guess.accuracy if guess else None,
        mean_risk=assess(seen, policy).prosecutor.mean,
        query_error=measured.get("query_error", {}).get("median"),
        suppressed=release.records.suppressed / max(1, release.records.input),
    )


def _is_on_frontier(one: ComparedPolicy, others: Sequence[ComparedPolicy]) -> bool:
    if one.guess is None or one.query_error is None:
        return False
    return not any(
        other.guess is not None
        and other.query_error is not None
        and other.guess <= one.guess
        and other.query_error <= one.query_error
        and (other.guess, other.query_error) != (one.guess, one.query_error)
        for other in others
    )
