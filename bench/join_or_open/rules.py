"""The attacker's model of the algorithm `delay-free`, as the paper states it.

A tuple joins a random group that has a free slot for its value and does not contain its quasi-identifier. It opens a
group only if there is none. So a tuple that opens a group discloses that no slot was free for its value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats, Int64s
from reticent.audit.attack.transcript import Transcript

MISFIT = 1e-6
"""Weight of a tuple that opens a group although a slot was free; not zero, because engines may retire old groups."""


@dataclass(frozen=True, repr=False)
class Rules:
    """The public parameters of the algorithm.

    Attributes:
        prior: the probability of each value, by code.
        opening: likelihood of a group's candidates given that this value opens the group, up to a factor.
    """

    prior: Floats
    opening: Floats


def rules_from_prior(values: tuple[str | None, ...], counts: dict[str | None, int] | None, l: int, pool: str) -> Rules:
    """Derive the rules from the published prior (counts per value) and the pool that candidates are drawn from."""
    known = counts or {}
    weight = np.array([max(float(known.get(value, 0.0)), 0.5) for value in values]) if known else np.ones(len(values))
    prior = weight / weight.sum()
    if pool == "matched":  # drawn with probability min(1, l * p): given the set, frequent values are not more likely
        return Rules(prior, 1 / np.minimum(1.0, l * prior))
    if pool == "empirical":
        return Rules(prior, 1 / prior)
    return Rules(prior, np.ones(len(prior)))


def barred_groups(transcript: Transcript) -> dict[int, Int64s]:
    """Return, per tuple, the groups that already contain its quasi-identifier; omit tuples without such groups."""
    groups_of: dict[int, list[int]] = {}
    barred = {}
    for time, (group, quasi) in enumerate(zip(transcript.group.tolist(), transcript.quasi.tolist(), strict=True)):
        if quasi in groups_of:
            barred[time] = np.array(groups_of[quasi], dtype=np.int64)
        groups_of.setdefault(quasi, []).append(group)
    return barred
