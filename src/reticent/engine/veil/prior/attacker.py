"""The informed reader: a model of her own over everything that is published, used against the veil.

Her belief is a softmax over all published nodes on all levels, and over what the most telling fields say together, on top of the
prior itself (she has read it too), so that she knows at least as much as the prior does. Given a set of candidates she multiplies her belief by what the channel
tells: copies / (l p).

Of several ridges the one counts with which she is right most often, veil and all: what she is after is no likelihood.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from reticent.arrays import Floats, Integers
from reticent.engine.veil.prior.fields import Field

# Fields with more nodes than this on a level are read on coarser levels only: nobody learns a postcode by heart.
_MAX_NODES = 300
# Fields that she looks at together, two and three at a time; nodes of each, and records that a meeting of nodes needs.
_MAX_FIELDS, _MAX_COARSE_NODES, _MIN_RECORDS = 5, 30, 20
# Strengths of the ridge that are tried, each from where the one before ended.
_RIDGES = (300.0, 100.0, 30.0, 10.0)
_MAX_STEPS = 20


@dataclass(frozen=True, repr=False)
class Sample:
    """Records as the reader sees them: `marks` (records x nodes, sparse), rows of the prior, and the true values."""

    features: Any
    strata: Integers
    values: Integers

    def take(self, at: Integers) -> Sample:
        """Some of the records."""
        return Sample(self.features[at], self.strata[at], self.values[at])

    def __len__(self) -> int:
        return len(self.values)


def sample_of(fields: Iterable[Field], strata: Integers, values: Integers, *, stratum_count: int) -> Sample:
    """One column per node of every level of every field, per meeting of nodes of telling fields, and per row of the prior."""
    from scipy import sparse  # loaded where needed: only fitting reads minds

    fields, at = list(fields), np.arange(len(values))
    blocks = [
        sparse.csr_array((np.ones(len(at)), (at, nodes[field.codes])), shape=(len(at), len(labels)))
        for field in fields
        for nodes, labels in zip(field.levels, field.labels, strict=True)
        if len(labels) <= _MAX_NODES
    ]
    for codes, size in _iter_interactions(fields, values):
        known = np.flatnonzero(codes >= 0)
        blocks.append(sparse.csr_array((np.ones(len(known)), (known, codes[known])), shape=(len(at), size)))
    mine = sparse.csr_array((np.ones(len(at)), (at, strata)), shape=(len(at), stratum_count))
    return Sample(sparse.csr_array(sparse.hstack([*blocks, mine], format="csr")), strata, values)


def _iter_interactions(fields: Sequence[Field], values: Integers) -> Iterator[tuple[Integers, int]]:
    """Which nodes of two or three telling fields meet in each record (-1: hardly ever any do), and how many such meetings there are."""
    nodes = [coarse for field in fields if (coarse := _coarse_nodes(field)) is not None]
    telling = sorted(nodes, key=lambda codes: -_mutual_information(codes, values))[:_MAX_FIELDS]
    for number in (2, 3):
        for together in combinations(telling, number):
            _, code, count = np.unique(np.stack(together), axis=1, return_inverse=True, return_counts=True)
            often = count >= _MIN_RECORDS
            yield np.where(often, np.cumsum(often) - 1, -1)[code.reshape(-1)], int(often.sum())


def _coarse_nodes(field: Field) -> Integers | None:
    """The nodes of a field on its first level that has few of them, if they say anything."""
    for nodes, labels in zip(field.levels, field.labels, strict=True):
        if 1 < len(labels) <= _MAX_COARSE_NODES:
            return np.asarray(nodes[field.codes])
    return None


def _mutual_information(nodes: Integers, values: Integers) -> float:
    """Nats that the nodes say of the values, chance included, which is about the same for all of them."""
    size = int(values.max(initial=0)) + 1
    table = np.bincount(nodes * size + values, minlength=(int(nodes.max()) + 1) * size).reshape(-1, size) / len(values)
    apart = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float((table * np.log(np.divide(table, apart, out=np.ones_like(table), where=table > 0))).sum())


@dataclass(frozen=True, repr=False)
class Attacker:
    """Weights of the marks (marks x values) on top of the prior's logarithms."""

    offset: Floats
    weights: Floats

    def belief(self, records: Sample) -> Floats:
        """Records x values: what she thinks before she looks at the candidates."""
        return _softmax(self.offset[records.strata] + records.features @ self.weights)


def train_attackers(records: Sample, shares: Floats) -> list[Attacker]:
    """Readers of a sample, from one who believes the prior to one who believes every accident of the sample."""
    # Values that a row does not offer are thought as likely as one record in the sample.
    offset = np.log(np.maximum(shares, 1 / max(len(records), 1)))
    readers = [Attacker(offset, np.zeros((records.features.shape[1], offset.shape[1])))]
    for ridge in _RIDGES:
        readers.append(_train_attacker(records, readers[-1], ridge))
    return readers


def likelihood(belief: Floats, values: Integers) -> float:
    """Mean logarithm of what was believed of the truth."""
    return float(np.log(np.maximum(belief[np.arange(len(values)), values], np.finfo(float).tiny)).mean())


def posterior(belief: Floats, sets: Integers, shares: Floats) -> Floats:
    """Records x values: her belief once she has seen the candidates, records x l codes, that were made with these shares of the prior."""
    copies = np.zeros(belief.shape)
    np.add.at(copies, (np.arange(len(sets))[:, None], sets), 1)
    weight = np.divide(belief * copies, shares, out=np.zeros_like(belief), where=shares > 0)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _train_attacker(records: Sample, start: Attacker, ridge: float) -> Attacker:
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    shape = start.weights.shape
    base, at = start.offset[records.strata], np.arange(len(records))

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        belief = _softmax(base + records.features @ weights)
        value = -np.log(belief[at, records.values]).sum() + ridge / 2 * float(flat @ flat)
        belief[at, records.values] -= 1
        return float(value), np.asarray(records.features.T @ belief + ridge * weights).ravel()

    # Its steps are small: threads that wait for each other by turning take ten times as long on a busy machine.
    with threadpool_limits(1):
        best = minimize(loss, start.weights.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _MAX_STEPS})
    return Attacker(start.offset, best.x.reshape(shape))


def _softmax(logits: Floats) -> Floats:
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(power / power.sum(axis=1, keepdims=True))
