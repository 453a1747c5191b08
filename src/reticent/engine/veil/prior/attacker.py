"""The informed attacker: a model of everything that is published, trained to attack the veil.

The belief is a softmax over all published nodes of all levels, and over combinations of the most disclosive fields, on top of the
prior, so that the attacker knows at least as much as the prior. Given a set of candidates, the attacker multiplies the belief by
the likelihood of the set: copies / (l p).

Of several ridge penalties the one counts whose attacker is right most often after seeing the candidates, not the most likely one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from reticent.arrays import Floats, Integers
from reticent.engine.veil.prior.fields import Field

# A level with more nodes than this is skipped: nobody can learn every postcode.
_MAX_NODES = 300
# Fields combined in twos and threes; nodes of each such field; records that a combination of nodes needs.
_MAX_FIELDS, _MAX_COARSE_NODES, _MIN_RECORDS = 5, 30, 20
# Ridge penalties to try; each fit starts from the one before.
_RIDGES = (300.0, 100.0, 30.0, 10.0)
_MAX_STEPS = 20


@dataclass(frozen=True, repr=False)
class Sample:
    """Records as the attacker sees them: features (records x nodes, sparse), strata of the prior, and the true values."""

    features: Any
    strata: Integers
    values: Integers

    def take(self, at: Integers) -> Sample:
        """Return the records at the given positions."""
        return Sample(self.features[at], self.strata[at], self.values[at])

    def __len__(self) -> int:
        return len(self.values)


def sample_of(fields: Iterable[Field], strata: Integers, values: Integers, *, stratum_count: int) -> Sample:
    """Build one feature per node of every level, per combination of nodes of disclosive fields, and per stratum."""
    from scipy import sparse  # only fitting a prior needs scipy

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
    own_stratum = sparse.csr_array((np.ones(len(at)), (at, strata)), shape=(len(at), stratum_count))
    return Sample(sparse.csr_array(sparse.hstack([*blocks, own_stratum], format="csr")), strata, values)


def _iter_interactions(fields: Sequence[Field], values: Integers) -> Iterator[tuple[Integers, int]]:
    """Yield for groups of two or three disclosive fields the combination of each record (-1: a rare one) and their number."""
    nodes = [coarse for field in fields if (coarse := _coarse_nodes(field)) is not None]
    disclosive = sorted(nodes, key=lambda codes: -_mutual_information(codes, values))[:_MAX_FIELDS]
    for number in (2, 3):
        for group in combinations(disclosive, number):
            _, code, count = np.unique(np.stack(group), axis=1, return_inverse=True, return_counts=True)
            frequent = count >= _MIN_RECORDS
            yield np.where(frequent, np.cumsum(frequent) - 1, -1)[code.reshape(-1)], int(frequent.sum())


def _coarse_nodes(field: Field) -> Integers | None:
    """Return the nodes of a field on its first level with few nodes but more than one; None if there is no such level."""
    for nodes, labels in zip(field.levels, field.labels, strict=True):
        if 1 < len(labels) <= _MAX_COARSE_NODES:
            return np.asarray(nodes[field.codes])
    return None


def _mutual_information(nodes: Integers, values: Integers) -> float:
    """Return the mutual information of nodes and values in nats, with a bias that is about the same for all fields."""
    size = int(values.max(initial=0)) + 1
    table = np.bincount(nodes * size + values, minlength=(int(nodes.max()) + 1) * size).reshape(-1, size) / len(values)
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float((table * np.log(np.divide(table, independent, out=np.ones_like(table), where=table > 0))).sum())


@dataclass(frozen=True, repr=False)
class Attacker:
    """Weights of the features (features x values) on top of the prior's logarithms."""

    offset: Floats
    weights: Floats

    def belief(self, records: Sample) -> Floats:
        """Return the belief before the candidates are seen, records x values."""
        return _softmax(self.offset[records.strata] + records.features @ self.weights)


def train_attackers(records: Sample, shares: Floats) -> list[Attacker]:
    """Train attackers on a sample, from one who believes only the prior to one with the weakest ridge penalty."""
    # Values that a stratum does not offer count as likely as one record of the sample.
    offset = np.log(np.maximum(shares, 1 / max(len(records), 1)))
    attackers = [Attacker(offset, np.zeros((records.features.shape[1], offset.shape[1])))]
    for ridge in _RIDGES:
        attackers.append(_train_attacker(records, attackers[-1], ridge))
    return attackers


def likelihood(belief: Floats, values: Integers) -> float:
    """Return the mean logarithm of the belief in the true value."""
    return float(np.log(np.maximum(belief[np.arange(len(values)), values], np.finfo(float).tiny)).mean())


def posterior(belief: Floats, sets: Integers, shares: Floats) -> Floats:
    """Return the belief (records x values) after the candidates `sets` (records x l codes), drawn with these shares."""
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

    # The steps are small: threads that wait busily for each other take ten times as long on a busy machine.
    with threadpool_limits(1):
        best = minimize(loss, start.weights.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _MAX_STEPS})
    return Attacker(start.offset, best.x.reshape(shape))


def _softmax(logits: Floats) -> Floats:
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(power / power.sum(axis=1, keepdims=True))
