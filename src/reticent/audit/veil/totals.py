"""Totals beside a veil: those that the policy asks for, of this release, and with as much noise as is stated.

Guarantee: what the findings say. From the release alone the sums of the rows are compared with their records; with the input every
    count is.
Not covered: whether the noise was drawn independently, which one table cannot tell.
Cost: one pass over rows and values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from reticent.arrays import Int64s
from reticent.audit.verdict import Finding, none_of
from reticent.policy import Policy

_SURE = 6.0
"""Standard deviations that noise does not stray."""
_RARE = 1e-9
_FEW = 30
"""Counts below which the mean of the noise says nothing."""
_BARE = 1e-7
"""So many counts without noise are less likely than this: somebody left it out."""


class Totals:
    """The published table and the law of its noise: two-sided geometric of scale 2 / epsilon."""

    def __init__(self, counts: Int64s, epsilon: float) -> None:
        self.counts, self.epsilon = counts, epsilon
        self.decay = math.exp(-epsilon / 2)

    @property
    def size(self) -> float:
        """Mean of the noise's absolute value."""
        return 2 * self.decay / (1 - self.decay**2)

    @property
    def variance(self) -> float:
        """Of the noise."""
        return 2 * self.decay / (1 - self.decay) ** 2

    def bare(self, zeros: int) -> bool:
        """Whether more counts have no noise than chance leaves: a Chernoff bound on the tail of their number."""
        share, none = zeros / max(1, self.counts.size), (1 - self.decay) / (1 + self.decay)
        if share <= none:
            return False
        rest = (1 - share) * math.log((1 - share) / (1 - none)) if share < 1 else 0.0
        return self.counts.size * (share * math.log(share / none) + rest) > -math.log(_BARE)

    @property
    def largest(self) -> float:
        """Noise beyond this does not occur."""
        return math.log(_RARE / max(1, self.counts.size)) / math.log(self.decay)


def totals_of(document: Mapping[str, Any], rows: int, values: int) -> Totals | None:
    """The totals of a `veil.json`; None where there are none that can be read."""
    try:
        stated = document["totals"]
        counts = np.array(stated["counts"], dtype=np.int64).reshape(rows, values)
        epsilon = float(stated["epsilon"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    strays = set(stated) - {"counts", "epsilon"}
    return None if strays or not 0 < epsilon < math.inf else Totals(counts, epsilon)


def totals_findings(
    document: Mapping[str, Any],
    policy: Policy,
    rows: Int64s,
    events: Int64s,
    shape: tuple[int, int],
) -> list[Finding]:
    """What the release alone shows: totals if, and only if, the policy asks for them, at its epsilon, and of these records."""
    asked = None if policy.prior is None else policy.prior.totals
    if asked is None and "totals" not in document:
        return []
    totals = totals_of(document, *shape)
    if totals is None or asked is None:
        return [Finding("totals are those that the policy asks for", holds=False)]
    size = np.bincount(rows[(events == 0) & (rows >= 0) & (rows < shape[0])], minlength=shape[0])
    # Values outside the domain count nowhere, so a row may hold fewer than its records.
    most = size + _SURE * math.sqrt(shape[1] * totals.variance) + totals.largest
    return [
        Finding("totals cost what the policy says", totals.epsilon <= asked, totals.epsilon, asked),
        none_of("the totals of a row are those of its records", int((totals.counts.sum(axis=1) > most).sum())),
    ]


def compared(totals: Totals, rows: Int64s, truths: Int64s) -> list[Finding]:
    """With the input beside it: every count is the true one with noise, and the noise is as large as stated."""
    shape = totals.counts.shape
    known = truths >= 0
    exact = np.bincount(rows[known] * shape[1] + truths[known], minlength=totals.counts.size).reshape(shape)
    noise = np.abs(totals.counts - exact)
    spread = math.sqrt(max(totals.variance - totals.size**2, 0) * noise.size)
    near = noise.size < _FEW or abs(float(noise.sum()) - totals.size * noise.size) <= _SURE * spread
    return [
        none_of("totals count the records of the input", int((noise > totals.largest).sum())),
        Finding("totals have as much noise as they state", near and not totals.bare(int((noise == 0).sum()))),
    ]
