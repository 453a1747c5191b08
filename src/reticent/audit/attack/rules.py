"""How `delay-free` decides, as the paper states it: the attacker's own model of the algorithm.

A tuple joins a random group that has a free slot of its value and does not hold its quasi-identifier; only when there
is none it opens a group. So a tuple that opens a group tells that its value was free nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats, Int64s
from reticent.audit.attack.transcript import Transcript

MISFIT = 1e-6
"""Weight of a tuple that opens a group though a slot was free: not zero, since an engine may retire old groups."""


@dataclass(frozen=True, repr=False)
class Rules:
    """The public side of the algorithm.

    Attributes:
        prior: how likely each value is, by code.
        opening: how likely a value is to be offered with just these candidates when it opens a group, up to a factor.
    """

    prior: Floats
    opening: Floats


def rules_from_prior(values: tuple[str | None, ...], counts: dict[str | None, int] | None, l: int, pool: str) -> Rules:
    """From the published prior (value -> count of the past) and the pool that candidates are drawn from."""
    known = counts or {}
    weight = np.array([max(float(known.get(value, 0.0)), 0.5) for value in values]) if known else np.ones(len(values))
    prior = weight / weight.sum()
    if pool == "matched":  # drawn with probability min(1, l * p): given the set, a frequent value is no likelier
        return Rules(prior, 1 / np.minimum(1.0, l * prior))
    if pool == "empirical":
        return Rules(prior, 1 / prior)
    return Rules(prior, np.ones(len(prior)))


def barred_groups(transcript: Transcript) -> dict[int, Int64s]:
    """Per tuple, the groups that hold its quasi-identifier already; tuples without such groups are left out."""
    held: dict[int, list[int]] = {}
    rules = {}
    for time, (group, qi) in enumerate(zip(transcript.group.tolist(), transcript.quasi.tolist(), strict=True)):
        if qi in held:
            rules[time] = np.array(held[qi], dtype=np.int64)
        held.setdefault(qi, []).append(group)
    return rules
