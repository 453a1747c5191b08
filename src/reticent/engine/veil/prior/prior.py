"""The prior: shares of the values by stratum, the stratum of a record, and the veil's channel in numpy for measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats, Int32s, Int64s, Integers, UInt64s
from reticent.engine.veil.prior.fields import Field
from reticent.engine.veil.prior.strata import Stratum
from reticent.errors import DataError

SLOT_LENGTH = 1 << 40
"""The length of a slot on the cumulative line."""


# Least distance of l p from an integer. At 0.1, standard errors are a fifth to a half smaller than at 0, and no share of such a
# value changes by more than a tenth.
_MIN_GAP = 0.1
_MAX_ROUNDS = 50


@dataclass(frozen=True, repr=False)
class Prior:
    """What an attacker is assumed to know.

    Attributes:
        labels: the domain, in canonical order.
        strata: conditions of each stratum; a record belongs to the first stratum that matches.
        shares: strata x values; 0 means that the stratum does not offer the value.
        sizes: number of records that each stratum was counted on.
    """

    labels: tuple[str, ...]
    strata: tuple[Stratum, ...]
    shares: Floats
    sizes: Floats

    @property
    def columns(self) -> tuple[str, ...]:
        """The published columns that some stratum depends on."""
        return tuple(dict.fromkeys(name for stratum in self.strata for name in stratum))

    def assign_strata(self, fields: Mapping[str, Field], records: int) -> Int32s:
        """Return the stratum of each record; refuses records that match none."""
        out = np.full(records, -1, dtype=np.int32)
        for number, conditions in enumerate(self.strata):
            inside = out < 0
            for name, label in conditions.items():
                inside &= fields[name].matches(label)[fields[name].codes]
            out[inside] = number
        unmatched = int((out < 0).sum())
        if unmatched:
            raise DataError(
                f"{unmatched} of {records} records belong to no stratum of the prior.",
                hint="Add a last stratum with * in every column.",
            )
        return out

    def segments(self, l: int) -> UInt64s:
        """Return integer segments, strata x values, that sum to exactly l `SLOT_LENGTH` in each stratum.

        Rounding never reduces a share above 0 to an empty segment.
        """
        return np.array([_integer_segments(shares, l * SLOT_LENGTH) for shares in self.shares], dtype=np.uint64)


def nudge_shares(shares: Floats, l: int) -> Floats:
    """Move shares of one stratum a little where l times a share is about an integer; values not offered stay so.

    Such a value is in every set equally often, so neither it nor any other value of its stratum could be estimated.
    """
    copies = shares * l
    for _ in range(_MAX_ROUNDS):
        whole = np.round(copies)
        near = (whole >= 1) & (np.abs(copies - whole) < _MIN_GAP)
        room = copies[~near].sum()
        if not near.any() or room <= 0:
            break
        # A little more than the gap, so that a moved value does not count as near again.
        moved = whole[near] + np.where(copies[near] >= whole[near], 1, -1) * _MIN_GAP * 1.01
        if moved.sum() >= l:
            break
        copies[~near] *= (l - moved.sum()) / room
        copies[near] = moved
    return np.asarray(copies / copies.sum())


def _integer_segments(shares: Floats, whole: int) -> Int64s:
    out = np.where(shares > 0, np.maximum(np.floor(shares / shares.sum() * whole), 1), 0).astype(np.int64)
    # Floats of this size are integers, but their sum may be off: the largest segment takes the difference.
    out[np.argmax(out)] += whole - int(out.sum())
    return out


def random_permutations(values: int, rng: np.random.Generator, number: int = 64) -> Int64s:
    """Return random permutations of the codes, value orders x values."""
    return np.array([rng.permutation(values) for _ in range(number)])


def draw_candidates(
    true_values: Integers, strata: Integers, segments: UInt64s, permutations: Integers, rng: np.random.Generator
) -> Int32s:
    """Draw candidates, records x l unsorted codes, from each record's true value and stratum, segments and value orders."""
    lengths = segments.astype(np.int64)
    whole = int(lengths[0].sum())
    out = np.empty((len(true_values), whole // SLOT_LENGTH), dtype=np.int32)
    drawn = rng.integers(len(permutations), size=len(true_values))
    for number, order in enumerate(permutations):
        at = np.flatnonzero(drawn == number)
        ends = np.cumsum(lengths[:, order], axis=1)
        place = np.argsort(order)[true_values[at]]
        own = lengths[strata[at], true_values[at]]
        offset = (rng.random(len(at)) * own).astype(np.int64)
        free = rng.integers(SLOT_LENGTH, size=len(at))
        start = np.where(own > 0, ends[strata[at], place] - own + offset, free) % SLOT_LENGTH
        # The lines of all strata are joined end to end, so that one search serves all.
        line = (ends + np.arange(len(ends))[:, None] * whole).ravel()
        points = (start + strata[at].astype(np.int64) * whole)[:, None] + np.arange(out.shape[1]) * SLOT_LENGTH
        out[at] = order[np.searchsorted(line, points, side="right") % len(order)]
    return out
