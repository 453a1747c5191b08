"""The veil as a channel: which sets of candidates a value can stand in, and how often.

A row of the prior gives each value a stretch of a line of length l (whole numbers, `ONE` to a unit). A set is the values
at U, U + ONE, ..., in one of the published orders; U is uniform. As U grows, the set changes only where a stretch ends,
so at most K pieces of U per order say everything: moments are sums over pieces, not samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent.arrays import Floats, Int32s, Int64s, Integers, UInt64s
from reticent.errors import DataError

SLOT_LENGTH = 1 << 40
"""A unit of the line."""

# Pairs of candidates counted at a time: bounds the memory of the moments.
_MAX_PAIRS = 4_000_000
# Directions this much weaker than the strongest one count as invisible; an estimate along them would be noise only.
_MIN_EIGENVALUE = 1e-9


@dataclass(frozen=True, repr=False)
class Channel:
    """One row of the prior: every set that can be published under it, with its probability.

    Attributes:
        pi: mean number of copies of each value in a set, l p; 0 for values the row never offers.
        sets: the candidates of each piece, as codes; one line of l codes per piece.
        weights: probability of each piece.

    Cost: K l^2 steps per order and one inversion of K x K; both once per row.
    """

    pi: Floats
    sets: Int32s
    weights: Floats

    @property
    def shares(self) -> Floats:
        """The prior's share of each value."""
        return np.asarray(self.pi / self.sets.shape[1])

    @cached_property
    def offered_codes(self) -> Int64s:
        """Codes of the values that can be offered."""
        return np.flatnonzero(self.pi)

    @cached_property
    def moments(self) -> Floats:
        """E[M M'] of the copies M of the seen values in a set."""
        size, l = len(self.offered_codes), self.sets.shape[1]
        dense = np.searchsorted(self.offered_codes, self.sets)
        out = np.zeros(size * size)
        step = max(1, _MAX_PAIRS // (l * l))
        for start in range(0, len(dense), step):
            part = dense[start : start + step]
            pairs = part[:, :, None] * size + part[:, None, :]
            weight = np.repeat(self.weights[start : start + step], l * l)
            out += np.bincount(pairs.ravel(), weight, minlength=size * size)
        return out.reshape(size, size)

    @cached_property
    def _inverse(self) -> tuple[Floats, Floats | None]:
        """The inverse of the scaled moments, and what is invisible: a basis of their null space, if there is one."""
        root = np.sqrt(self.pi[self.offered_codes])
        scaled = self.moments / np.outer(root, root)
        try:
            inverse = np.linalg.inv(scaled)
            if np.abs(inverse).sum(axis=0).max() * _MIN_EIGENVALUE < 1:
                return inverse, None
        except np.linalg.LinAlgError:
            pass
        values, vectors = np.linalg.eigh(scaled)
        visible = values > _MIN_EIGENVALUE * values[-1]
        basis = vectors[:, visible]
        return (basis / values[visible]) @ basis.T, vectors[:, ~visible]

    def is_estimable(self, target: Floats) -> bool:
        """Whether the sets say anything certain of a target; they do not where it needs an invisible direction."""
        invisible = self._inverse[1]
        if invisible is None:
            return True
        wanted = np.sqrt(self.pi[self.offered_codes]) * target[self.offered_codes]
        return bool(np.abs(wanted @ invisible).max() <= np.sqrt(_MIN_EIGENVALUE))

    def coefficients(self, target: Floats) -> Floats:
        """Weights c of the candidates: the mean of c's sum over a set, given the true value v, is the target of v.

        Args:
            target: one number per value, such as 1 for the values to count and 0 for the others; `tells` must say yes.
        """
        root, inverse = np.sqrt(self.pi[self.offered_codes]), self._inverse[0]
        out, wanted = np.zeros(len(self.pi)), root * target[self.offered_codes]
        asked = np.flatnonzero(wanted)
        # One value alone, as in a count by value: its column is the product, number for number.
        product = inverse[:, asked[0]] * wanted[asked[0]] if len(asked) == 1 else inverse @ wanted
        out[self.offered_codes] = product / root
        return out

    def estimates(self, copies: Integers) -> Floats:
        """HT2 of every value at once, from how often each is offered; what is invisible counts as nothing."""
        root = np.sqrt(self.pi[self.offered_codes])
        out = np.zeros(len(self.pi))
        out[self.offered_codes] = root * (self._inverse[0] @ (copies[self.offered_codes] / root))
        return out

    def squares(self, coefficients: Floats) -> Floats:
        """E[h^2 | v] of a set's sum h of coefficients, for each seen value v; 0 for the others."""
        sums = self.weights * coefficients[self.sets].sum(axis=1) ** 2
        each = np.repeat(sums, self.sets.shape[1])
        total = np.bincount(self.sets.ravel(), each, minlength=len(self.pi))
        return np.divide(total, self.pi, out=np.zeros_like(total), where=self.pi > 0)


def build_channel(segments: UInt64s, permutations: Integers) -> Channel:
    """The channel of one row.

    Args:
        stretches: length of each value on the line, in canonical order; they sum to l times `ONE`.
        orders: one permutation of the codes per line; a person has each with the same probability.

    Example:
        >>> row = channel(np.array([ONE, ONE // 2, ONE // 2], dtype=np.uint64), np.array([[0, 1, 2]]))
        >>> row.sets.tolist(), row.weights.tolist()
        ([[0, 1], [0, 2]], [0.5, 0.5])
    """
    lengths = segments.astype(np.int64)
    total = int(lengths.sum())
    if total == 0 or total % SLOT_LENGTH:
        raise DataError("A row of the prior does not fill its line.", hint="Take the veil.json of the release again.")
    parts = [_pieces(lengths[order], order, total // SLOT_LENGTH) for order in np.asarray(permutations)]
    weights = np.concatenate([weight for _, weight in parts]) / (SLOT_LENGTH * len(parts))
    return Channel(lengths / SLOT_LENGTH, np.concatenate([sets for sets, _ in parts]).astype(np.int32), weights)


def normalize_rows(weights: Floats) -> Floats:
    """Rows that sum to one; a row of zeros stays."""
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))


def _pieces(lengths: Int64s, permutation: Integers, l: int) -> tuple[Integers, Int64s]:
    """The sets of one order and the lengths of U that give them."""
    ends = np.cumsum(lengths)
    starts = np.unique(np.append(ends % SLOT_LENGTH, 0))
    points = starts[:, None] + np.arange(l, dtype=np.int64) * SLOT_LENGTH
    # A stretch of no length ends where the one before it ends, so the first end beyond a point is never its own.
    return permutation[np.searchsorted(ends, points, side="right")], np.diff(np.append(starts, SLOT_LENGTH))
