"""The veil as a channel: the candidate sets that can contain a value, with their probabilities.

A stratum of the prior gives each value a segment of a cumulative line of length l (integers, `SLOT_LENGTH` per slot). A
set contains the values at U, U + SLOT_LENGTH, ..., in one of the published value orders; U is uniform. The set changes
only where a segment ends, so at most K pieces of U per order describe the channel: moments are exact sums, not samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent.arrays import Floats, Int32s, Int64s, Integers, UInt64s
from reticent.errors import DataError

SLOT_LENGTH = 1 << 40
"""Length of a slot on the cumulative line."""

# Pairs of candidates per batch; limits the memory for the moments.
_MAX_PAIRS = 4_000_000
# Directions with a smaller relative eigenvalue cannot be estimated; an estimate along them would be only noise.
_MIN_EIGENVALUE = 1e-9


@dataclass(frozen=True, repr=False)
class Channel:
    """One stratum of the prior: all candidate sets that can be published, with their probabilities.

    Attributes:
        pi: mean number of copies of each value in a set, l p; 0 for values that the stratum omits.
        sets: the candidates of each piece, as codes; one row of l codes per piece.
        weights: probability of each piece.

    Cost: K l^2 steps per value order and one inversion of K x K; both once per stratum.
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
        """Codes of the values that can be candidates."""
        return np.flatnonzero(self.pi)

    @cached_property
    def moments(self) -> Floats:
        """E[M M'], where M is the number of copies of each possible candidate in a set."""
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
        """The inverse of the scaled moments, and a basis of their null space (None if it is empty)."""
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
        """Whether a target can be estimated without bias: it has no component in the null space."""
        invisible = self._inverse[1]
        if invisible is None:
            return True
        wanted = np.sqrt(self.pi[self.offered_codes]) * target[self.offered_codes]
        return bool(np.abs(wanted @ invisible).max() <= np.sqrt(_MIN_EIGENVALUE))

    def coefficients(self, target: Floats) -> Floats:
        """Return weights c of the candidates: the mean of the sum of c over a set, given the true value v, is target(v).

        Args:
            target: one number per value, such as 1 for the values to count and 0 for the others; must be estimable.
        """
        root, inverse = np.sqrt(self.pi[self.offered_codes]), self._inverse[0]
        out, wanted = np.zeros(len(self.pi)), root * target[self.offered_codes]
        codes = np.flatnonzero(wanted)
        # For a single value, as in counts by value, the product is one column.
        product = inverse[:, codes[0]] * wanted[codes[0]] if len(codes) == 1 else inverse @ wanted
        out[self.offered_codes] = product / root
        return out

    def estimates(self, copies: Integers) -> Floats:
        """Return HT2 estimates of all values from their numbers of copies; components in the null space are 0."""
        root = np.sqrt(self.pi[self.offered_codes])
        out = np.zeros(len(self.pi))
        out[self.offered_codes] = root * (self._inverse[0] @ (copies[self.offered_codes] / root))
        return out

    def squares(self, coefficients: Floats) -> Floats:
        """Return E[h^2 | v] of a set's sum h of coefficients for each possible value v; 0 for the others."""
        sums = self.weights * coefficients[self.sets].sum(axis=1) ** 2
        each = np.repeat(sums, self.sets.shape[1])
        total = np.bincount(self.sets.ravel(), each, minlength=len(self.pi))
        return np.divide(total, self.pi, out=np.zeros_like(total), where=self.pi > 0)


def build_channel(segments: UInt64s, permutations: Integers) -> Channel:
    """Build the channel of one stratum.

    Args:
        segments: length of each value on the cumulative line, in canonical order; the sum is l times `SLOT_LENGTH`.
        permutations: one permutation of the codes per row; a person has each with the same probability.

    Example:
        >>> segments = np.array([SLOT_LENGTH, SLOT_LENGTH // 2, SLOT_LENGTH // 2], dtype=np.uint64)
        >>> channel = build_channel(segments, np.array([[0, 1, 2]]))
        >>> channel.sets.tolist(), channel.weights.tolist()
        ([[0, 1], [0, 2]], [0.5, 0.5])
    """
    lengths = segments.astype(np.int64)
    total = int(lengths.sum())
    if total == 0 or total % SLOT_LENGTH:
        raise DataError("veil.json: the segments of a stratum do not sum to l.", hint="Get the release again.")
    parts = [_pieces(lengths[order], order, total // SLOT_LENGTH) for order in np.asarray(permutations)]
    weights = np.concatenate([weight for _, weight in parts]) / (SLOT_LENGTH * len(parts))
    return Channel(lengths / SLOT_LENGTH, np.concatenate([sets for sets, _ in parts]).astype(np.int32), weights)


def normalize_rows(weights: Floats) -> Floats:
    """Scale each row to sum to 1; leave rows of zeros unchanged."""
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))


def _pieces(lengths: Int64s, permutation: Integers, l: int) -> tuple[Integers, Int64s]:
    """Return the candidate sets of one value order, and the length of U for each set."""
    ends = np.cumsum(lengths)
    starts = np.unique(np.append(ends % SLOT_LENGTH, 0))
    points = starts[:, None] + np.arange(l, dtype=np.int64) * SLOT_LENGTH
    # A segment of length 0 ends where the previous one ends, so `side="right"` never selects it.
    return permutation[np.searchsorted(ends, points, side="right")], np.diff(np.append(starts, SLOT_LENGTH))
