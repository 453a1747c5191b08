"""Choose the strata of the prior: which published fields the prior depends on, and how finely.

A tree of questions "does the field lie below this node?" over every published field, at its published level and all coarser
ones. Each step asks the question that gains most held-out likelihood. Records that answer yes become a stratum, the others go on.
Written down, the tree is a list of strata, and a record belongs to the first one that matches.

Guarantee: none of its own; the strata decide how close the prior comes to what an attacker can know (the odds ratio).

Not covered: the chosen questions disclose something about the sample. Where the sample is the data to be protected, use fixed
fields and levels (`fixed_tree`), which depend on the sizes of cells only.

Cost: records x fields x levels for every stratum.

Reference: F. Provost and P. Domingos, Tree induction for probability-based ranking, Machine Learning 52, 2003.

Differences from the paper: held-out likelihood instead of impurity; shrinkage toward the parent instead of toward even shares;
the noise of the final counts is charged while the tree grows, so that it stops in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reticent.arrays import Bools, Floats, Integers
from reticent.engine.veil.prior.fields import Field

MAX_STRATA = 64
"""Most strata of a prior: finer ones are noise, and an attacker gains from noise in the prior."""

SHRINKAGE = 150.0
"""Pseudo-records of the parent stratum's shares in a stratum's own shares."""

# The rest of a stratum may be small if its share of the records is below this.
_NEGLIGIBLE = 0.03
# Least held-out gain of a split, in nats.
_MIN_GAIN = 2.0
# Cost in nats of a held-out record whose value its stratum would not offer: no count can use such a record.
_OMISSION_COST = 1.0

Stratum = dict[str, str]
"""Conditions of a stratum: column -> label of a node; a column without a condition may have any value."""


@dataclass(frozen=True)
class Split:
    """A question, and the trees of the records that answer yes and no; `None` is a stratum."""

    column: str
    label: str
    yes: Split | None
    no: Split | None


def strata(tree: Split | None) -> tuple[Stratum, ...]:
    """Return the strata of a tree, in the order in which they must be tried.

    Example:
        >>> strata(Split("ward", "surgery", Split("sex", "male", None, None), None))
        ({'ward': 'surgery', 'sex': 'male'}, {'ward': 'surgery'}, {})
    """
    return tuple(_iter_strata(tree, {}))


def _iter_strata(tree: Split | None, above: Stratum) -> Iterator[Stratum]:
    if tree is None:
        yield above
        return
    # A finer node of the same column replaces the coarser one that it lies below.
    yield from _iter_strata(tree.yes, above | {tree.column: tree.label})
    yield from _iter_strata(tree.no, above)


def shrink_shares(tree: Split | None, counts: Floats, *, shrinkage: float = SHRINKAGE) -> Floats:
    """Return the shares of every stratum, shrunk toward its parent, from counts (strata x values) that noise may make negative."""
    clipped = np.maximum(counts, 0).astype(np.float64)
    whole = clipped.sum(axis=0)
    return np.array(list(_iter_shares(tree, clipped, whole / whole.sum(), shrinkage)))


def _iter_shares(tree: Split | None, counts: Floats, above: Floats, shrinkage: float) -> Iterator[Floats]:
    own = shrink_toward(counts.sum(axis=0), above, shrinkage)
    if tree is None:
        yield own
        return
    size = len(strata(tree.yes))
    yield from _iter_shares(tree.yes, counts[:size], own, shrinkage)
    yield from _iter_shares(tree.no, counts[size:], own, shrinkage)


def shrink_toward(counts: Floats, above: Floats, shrinkage: float) -> Floats:
    """Return the shares of counts (values last), shrunk toward the shares above."""
    return np.asarray((counts + shrinkage * above) / (counts.sum(axis=-1, keepdims=True) + shrinkage))


@dataclass(frozen=True)
class Growth:
    """How a tree grows.

    Attributes:
        min_records: fewest records of a stratum in the part it is counted on.
        max_strata: most strata.
        shrinkage: pseudo-records of the parent stratum.
        noise: variance of the noise of the final counts, on the scale of that part.
        min_count: expected records that a value needs in a stratum to be offered.
    """

    min_records: float
    max_strata: int = MAX_STRATA
    shrinkage: float = SHRINKAGE
    noise: float = 0.0
    min_count: float = 0.0


Question = tuple[int, int, int]
"""The numbers of field, level and node."""


@dataclass(frozen=True)
class _Leaf:
    """A stratum that may still be split: its records for counting and for testing, its shares, and its best question."""

    count: Integers
    test: Integers
    shares: Floats
    gain: float
    question: Question | None


def grow(fields: Sequence[Field], values: Integers, size: int, test: Bools, growth: Growth) -> Split | None:
    """Grow a tree over the published fields; `test` records score the questions, the others are counted."""
    return _Grower(fields, values, size, growth).tree(np.flatnonzero(~test), np.flatnonzero(test))


class _Grower:
    def __init__(self, fields: Sequence[Field], values: Integers, size: int, growth: Growth) -> None:
        self._fields, self._values, self._size, self._growth = fields, values, size, growth

    def tree(self, count: Integers, test: Integers) -> Split | None:
        shares = (self._table(count) + 0.5) / (len(count) + 0.5 * self._size)
        leaves: dict[str, _Leaf] = {"": self._leaf(count, test, shares)}
        questions: dict[str, Question] = {}
        while len(leaves) < self._growth.max_strata:
            path, leaf = max(leaves.items(), key=lambda pair: pair[1].gain)
            if leaf.question is None or leaf.gain < _MIN_GAIN:
                break
            questions[path] = leaf.question
            del leaves[path]
            leaves[path + "y"], leaves[path + "n"] = self._parts(leaf, leaf.question)
        return self._assemble(questions, "")

    def _assemble(self, questions: dict[str, Question], path: str) -> Split | None:
        if path not in questions:
            return None
        field, level, node = questions[path]
        label = self._fields[field].labels[level][node]
        parts = [self._assemble(questions, path + answer) for answer in "yn"]
        return Split(self._fields[field].name, label, parts[0], parts[1])

    def _parts(self, leaf: _Leaf, question: Question) -> tuple[_Leaf, _Leaf]:
        field, level, node = question
        column = self._fields[field]
        yes = [column.levels[level][column.codes[at]] == node for at in (leaf.count, leaf.test)]
        halves = [(leaf.count[yes[0] == side], leaf.test[yes[1] == side]) for side in (1, 0)]
        shares = [shrink_toward(self._table(count), leaf.shares, self._growth.shrinkage) for count, _ in halves]
        return self._leaf(*halves[0], shares[0]), self._leaf(*halves[1], shares[1])

    def _leaf(self, count: Integers, test: Integers, shares: Floats) -> _Leaf:
        gain, question = 0.0, None
        base = float(self._worth(shares, len(count), self._table(test)))
        for number, field in enumerate(self._fields):
            at = field.codes[count], field.codes[test]
            for level, table in enumerate(field.levels):
                nodes = [(table[codes], self._values[who]) for codes, who in zip(at, (count, test), strict=True)]
                large, sums = self._gains(nodes[0], nodes[1], shares)
                if len(large) and sums.max() - base > gain:
                    gain, question = float(sums.max() - base), (number, level, int(large[sums.argmax()]))
        return _Leaf(count, test, shares, gain, question)

    def _gains(
        self, count: tuple[Integers, Integers], test: tuple[Integers, Integers], shares: Floats
    ) -> tuple[Integers, Floats]:
        """Return the nodes that are large enough to split off, and the worth of the two strata for each."""
        sizes = np.bincount(count[0])
        least = self._growth.min_records
        large = np.flatnonzero((sizes >= least) & (len(count[0]) - sizes >= least))
        sums = np.zeros(len(large))
        if not len(large):
            return large, sums
        cells = [_cells(*part, large, self._size) for part in (count, test)]
        wholes = [np.bincount(part[1], minlength=self._size) for part in (count, test)]
        rests = [whole - cell for cell, whole in zip(cells, wholes, strict=True)]
        for counts, test_counts in (cells, rests):
            sums += self._worth(shrink_toward(counts, shares, self._growth.shrinkage), counts.sum(axis=1), test_counts)
        return large, sums

    def _worth(self, shares: Floats, size: Floats | int, test_counts: Floats) -> Floats:
        """Return the held-out likelihood of strata, less the cost of omitted values and of noise.

        Noise of variance s in a count c biases its logarithm by s / 2 c^2 on average, for c records.
        """
        expected = shares * np.asarray(size)[..., None]
        omitted = expected < self._growth.min_count
        blur = np.divide(self._growth.noise / 2, expected, out=np.zeros_like(expected), where=~omitted).sum(axis=-1)
        share = test_counts.sum(axis=-1) / np.maximum(size, 1)
        return np.asarray((test_counts * (np.log(shares) - _OMISSION_COST * omitted)).sum(axis=-1) - share * blur)

    def _table(self, at: Integers) -> Floats:
        return np.bincount(self._values[at], minlength=self._size).astype(np.float64)


def _cells(nodes: Integers, values: Integers, large: Integers, size: int) -> Floats:
    """Return counts, large nodes x values."""
    place = np.full(int(max(nodes.max(initial=0), large.max())) + 1, -1)
    place[large] = np.arange(len(large))
    inside = place[nodes] >= 0
    flat = place[nodes[inside]] * size + values[inside]
    return np.bincount(flat, minlength=len(large) * size).reshape(len(large), size).astype(np.float64)


def fixed_tree(fields: Sequence[Field], sizes: Integers, least: float) -> Split | None:
    """Return the tree of given fields and levels; cells that are too small are merged as `*`.

    The merged cells are large enough as well, or negligible: the smallest cells join them until they are. Fields are asked in
    order, each on its lowest level; `sizes` are (noisy) counts of each combination of published nodes, one axis per field.
    """
    if not fields:
        return None
    totals = sizes.reshape(fields[0].size, -1).sum(axis=1)
    alone = [int(node) for node in np.argsort(-totals, kind="stable") if totals[node] >= least]
    rest = totals.sum() - totals[alone].sum()
    while alone and _NEGLIGIBLE * totals.sum() < rest < least:
        rest += totals[alone.pop()]
    tree = None
    for node in sorted(alone, reverse=True):
        label = fields[0].labels[0][fields[0].levels[0][node]]
        tree = Split(fields[0].name, label, fixed_tree(fields[1:], sizes[node], least), tree)
    return tree
