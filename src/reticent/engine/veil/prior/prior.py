"""Prior: shares of the values, row by row, which row a record belongs to; and the veil's channel in numpy, for measuring a prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats, Int32s, Int64s, Integers, UInt64s
from reticent.engine.veil.prior.fields import Field
from reticent.engine.veil.prior.strata import Stratum
from reticent.errors import DataError

SLOT_LENGTH = 1 << 40
"""A unit of the veil's line, as whole numbers see it."""


# Distance of l p from a whole number: at a tenth, standard errors are a fifth to a half smaller than at none, and no share
# of such a value moves by more than a tenth.
_MIN_GAP = 0.1
_MAX_ROUNDS = 50


@dataclass(frozen=True, repr=False)
class Prior:
    """What a reader is assumed to know.

    Attributes:
        labels: the domain, in canonical order.
        strata: conditions of each row; the first row that matches a record is its row.
        shares: rows x values; 0 is a value that the row does not offer.
        sizes: records that each row was counted on.
    """

    labels: tuple[str, ...]
    strata: tuple[Stratum, ...]
    shares: Floats
    sizes: Floats

    @property
    def columns(self) -> tuple[str, ...]:
        """The published columns that some row asks for."""
        return tuple(dict.fromkeys(name for row in self.strata for name in row))

    def assign_strata(self, fields: Mapping[str, Field], records: int) -> Int32s:
        """The row of each record; refuses records that no row matches."""
        out = np.full(records, -1, dtype=np.int32)
        for number, row in enumerate(self.strata):
            inside = out < 0
            for name, label in row.items():
                inside &= fields[name].matches(label)[fields[name].codes]
            out[inside] = number
        strangers = int((out < 0).sum())
        if strangers:
            raise DataError(
                f"{strangers} of {records} records belong to no row of the prior.",
                hint="Add a last row with * in every column.",
            )
        return out

    def segments(self, l: int) -> UInt64s:
        """Rows x values: whole stretches of the veil's line that sum to exactly l `ONE` in each row.

        A share above 0 keeps a stretch above 0, whatever rounding says.
        """
        return np.array([_integer_segments(row, l * SLOT_LENGTH) for row in self.shares], dtype=np.uint64)


def nudge_shares(shares: Floats, l: int) -> Floats:
    """Shares of one row, moved a little where l times a share is about a whole number; values not offered stay so.

    Such a value stands in every set equally often, so that nobody could count it, nor anything else in its row.
    """
    copies = shares * l
    for _ in range(_MAX_ROUNDS):
        whole = np.round(copies)
        near = (whole >= 1) & (np.abs(copies - whole) < _MIN_GAP)
        room = copies[~near].sum()
        if not near.any() or room <= 0:
            break
        # A hair more than the gap, so that what was moved does not count as near again.
        moved = whole[near] + np.where(copies[near] >= whole[near], 1, -1) * _MIN_GAP * 1.01
        if moved.sum() >= l:
            break
        copies[~near] *= (l - moved.sum()) / room
        copies[near] = moved
    return np.asarray(copies / copies.sum())


def _integer_segments(shares: Floats, whole: int) -> Int64s:
    out = np.where(shares > 0, np.maximum(np.floor(shares / shares.sum() * whole), 1), 0).astype(np.int64)
    # Floats of this size are whole numbers, but their sum may miss: the largest stretch takes up the difference.
    out[np.argmax(out)] += whole - int(out.sum())
    return out


def random_permutations(values: int, rng: np.random.Generator, number: int = 64) -> Int64s:
    """Orders x values: random permutations of the codes."""
    return np.array([rng.permutation(values) for _ in range(number)])


def draw_candidates(
    true_values: Integers, strata: Integers, segments: UInt64s, permutations: Integers, rng: np.random.Generator
) -> Int32s:
    """Records x l codes, unsorted: by the truth and the row of the prior of each record, stretches (rows x values) and orders (orders x values)."""
    lengths = segments.astype(np.int64)
    whole = int(lengths[0].sum())
    out = np.empty((len(true_values), whole // SLOT_LENGTH), dtype=np.int32)
    mine = rng.integers(len(permutations), size=len(true_values))
    for number, order in enumerate(permutations):
        at = np.flatnonzero(mine == number)
        ends = np.cumsum(lengths[:, order], axis=1)
        place = np.argsort(order)[true_values[at]]
        own = lengths[strata[at], true_values[at]]
        offset = (rng.random(len(at)) * own).astype(np.int64)
        free = rng.integers(SLOT_LENGTH, size=len(at))
        start = np.where(own > 0, ends[strata[at], place] - own + offset, free) % SLOT_LENGTH
        # All rows' lines one behind the other, so that one search serves them all.
        line = (ends + np.arange(len(ends))[:, None] * whole).ravel()
        points = (start + strata[at].astype(np.int64) * whole)[:, None] + np.arange(out.shape[1]) * SLOT_LENGTH
        out[at] = order[np.searchsorted(line, points, side="right") % len(order)]
    return out
