"""The gs factor: the search finds what looking at every node finds, by formulas written out record by record."""

import itertools
import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import reticent
from reticent.policy import Policy

LEAVES = {"a": [str(n) for n in range(8)], "b": list("uvwxyz")}
TREES = {
    "a": {str(n): (str(n), f"{n // 2 * 2}-{n // 2 * 2 + 1}", f"{n // 4 * 4}+", "*") for n in range(8)},
    "b": {letter: (letter, "uvw" if letter in "uvw" else "xyz", "*") for letter in "uvwxyz"},
}
SPECS = {
    "a": {"0+": {"0-1": ["0", "1"], "2-3": ["2", "3"]}, "4+": {"4-5": ["4", "5"], "6-7": ["6", "7"]}},
    "b": {"uvw": ["u", "v", "w"], "xyz": ["x", "y", "z"]},
}
FACTORS = (0.0, 0.1, 0.5, 0.8, 1.0)
LOSSES = ("loss", "precision", "entropy", "average_class_size")


def rows(seed):
    random = np.random.default_rng(seed)
    first = np.minimum(random.geometric(0.35, 60) - 1, 7)
    return [
        (str(a), str(b))
        for a, b in zip(first, random.choice(LEAVES["b"], 60, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05]), strict=True)
    ]


def share(name, level, value):
    label = TREES[name][value][level]
    return sum(TREES[name][leaf][level] == label for leaf in LEAVES[name]) / len(LEAVES[name])


def by_hand(data, levels, gone, loss, factor):
    """The measure of one node: g weighs what is generalized, s what is suppressed."""
    g, s = min(1, 2 - 2 * factor), min(1, 2 * factor)
    n, lost = len(data), sum(gone)
    if loss == "average_class_size":
        classes = {label(row, levels) for row, out in zip(data, gone, strict=True) if not out}
        return n / (s * len(classes) + g * (lost > 0) or 1)
    columns = []
    for at, name in enumerate("ab"):
        level, height, size = levels[at], len(TREES[name]["0" if name == "a" else "u"]) - 1, len(LEAVES[name])
        if loss == "precision":
            columns.append(((n - lost) * level / height * g + lost * s) / n)
        elif loss == "loss":
            shares = [share(name, level, row[at]) for row in data]
            spent = sum((x + s * (1 - x) if out else g * x) for x, out in zip(shares, gone, strict=True))
            value = (spent - g * n / size) / (n - g * n / size)
            columns.append(math.floor(max(0, value) * 1e10) / 1e10)
        else:
            original = Counter(row[at] for row in data)
            general = Counter(TREES[name][row[at]][level] for row in data)
            left = Counter(TREES[name][row[at]][level] for row, out in zip(data, gone, strict=True) if out)
            bits = -g * sum(c * math.log2(c / general[TREES[name][v][level]]) for v, c in original.items())
            bits -= s * sum(c * math.log2(c / lost) for c in left.values())
            columns.append(math.floor(bits * 1e10) / 1e10)
    if loss == "loss":
        return math.prod((1 + value) ** 0.5 for value in columns) - 1
    return sum(columns) / (2 if loss == "precision" else 1)


def label(row, levels):
    return tuple(TREES[name][row[at]][levels[at]] for at, name in enumerate("ab"))


def best(data, k, limit, loss, factor):
    scores = []
    for levels in itertools.product(range(4), range(3)):
        sizes = Counter(label(row, levels) for row in data)
        gone = [sizes[label(row, levels)] < k for row in data]
        if sum(gone) <= limit and sum(gone) < len(data):
            scores.append(by_hand(data, levels, gone, loss, factor))
    return min(scores)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("factor", FACTORS)
def test_the_optimum_is_that_of_every_node(loss, factor):
    for seed, k, suppression in itertools.product((1, 2), (2, 5), (0.0, 0.2, 0.9)):
        data = rows(seed)
        columns = {name: {"role": "quasi", "hierarchy": {"tree": SPECS[name]}} for name in "ab"}
        policy = Policy(
            columns=columns,
            privacy={"k": k, "suppression": suppression},
            table={"method": "optimal", "loss": loss, "gs_factor": factor},
        )
        release = reticent.anonymize(
            pa.table(dict(zip("ab", map(list, zip(*data, strict=True)), strict=True))), policy, seed=1
        )
        expected = best(data, k, int(suppression * 60), loss, factor)
        assert release.metrics[loss] == pytest.approx(expected, abs=1e-9), (seed, k, suppression)
        if math.isfinite(release.explain["score"]):
            assert release.explain["score"] == pytest.approx(expected, abs=1e-9)


def test_the_factor_moves_the_choice():
    data = rows(1)
    table = pa.table(dict(zip("ab", map(list, zip(*data, strict=True)), strict=True)))
    lost = []
    for factor in (0.0, 1.0):
        columns = {name: {"role": "quasi", "hierarchy": {"tree": SPECS[name]}} for name in "ab"}
        settings = {"method": "optimal", "gs_factor": factor}
        policy = Policy(columns=columns, privacy={"k": 4, "suppression": 0.6}, table=settings)
        lost.append(reticent.anonymize(table, policy, seed=1).records.suppressed)
    assert lost[0] > lost[1]
