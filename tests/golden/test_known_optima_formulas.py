"""The measures and models against published optima of another tool on Adult, where the data folder is at hand.

The data cannot be shipped. `test_metrics.py` holds the twin that always runs.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

from reticent.policy import HierarchySpec
from reticent.policy.hierarchy import ladder
from reticent.policy.models import (
    DistinctL,
    EntropyL,
    EqualT,
    HierarchicalT,
    KAnonymity,
    OrderedT,
    RecursiveL,
)
from reticent.utility import Recoding, measure

ADULT = Path(os.environ.get("RETICENT_ADULT", Path(__file__).parents[3] / "shared/data/adult"))


@cache
def adult():
    """Distinct combinations of quasi-identifiers with counts and sensitive histograms, and the ladders."""
    known = json.loads((ADULT / "known_optima.json").read_text())
    table = pc.read_csv(ADULT / "adult_30162.csv", parse_options=pc.ParseOptions(delimiter=";"))
    names = [*known["qi_order"], known["sensitive"]]
    encoded = [table[name].combine_chunks().dictionary_encode() for name in names]
    ladders = [
        ladder(HierarchySpec(file=f"adult_hierarchy_{name}.csv"), column.dictionary, column=name, base=ADULT)
        for name, column in zip(names, encoded, strict=True)
    ]
    codes = np.stack([column.indices.to_numpy() for column in encoded], axis=1)
    combos, inverse = np.unique(codes[:, :-1], axis=0, return_inverse=True)
    histograms = np.zeros((len(combos), len(encoded[-1].dictionary)), dtype=np.int64)
    np.add.at(histograms, (inverse.reshape(-1), codes[:, -1]), 1)
    order = np.array(pa.compute.sort_indices(encoded[-1].dictionary))
    return known, combos, histograms, ladders, order


def model(spec):
    match spec["model"]:
        case "k-anonymity":
            return KAnonymity(spec["k"])
        case "distinct-l-diversity":
            return DistinctL(spec["l"])
        case "entropy-l-diversity":
            return RoundedEntropyL(spec["l"])
        case "recursive-cl-diversity":
            return RecursiveL(spec["c"], spec["l"])
    return {"equal": EqualT, "ordered": OrderedT, "hierarchical": HierarchicalT}[spec["distance"]](spec["t"])


class RoundedEntropyL(EntropyL):
    """The rule in doubles, as the other tool computes it: some classes exactly on the boundary are refused."""

    def _holds(self, groups):
        counts = [groups.counts[a:b].tolist() for a, b in itertools.pairwise(groups.starts)]
        left = [sum(c) * (math.log(sum(c)) - math.log(self.l)) for c in counts]
        return np.array([side >= sum(f * math.log(f) for f in c) for side, c in zip(left, counts, strict=True)])


def outliers(nodes, histograms, models):
    """Which combinations lie in a class that violates a model, and the number of classes that hold."""
    key = np.zeros(len(nodes), dtype=np.int64)
    for column in nodes.T:
        key = key * (column.max() + 1) + column
    _, place = np.unique(key, return_inverse=True)
    classes = np.zeros((place.max() + 1, histograms.shape[1]), dtype=np.int64)
    np.add.at(classes, place, histograms)
    holds = np.logical_and.reduce([m.holds_all(classes) for m in models])
    _only_the_boundary_differs(classes, models)
    return ~holds[place], int(holds.sum())


def _only_the_boundary_differs(classes, models):
    """Case by case: what exact arithmetic accepts and doubles refuse satisfies n^n = l^n * prod f^f."""
    for rounded in (m for m in models if isinstance(m, RoundedEntropyL)):
        exact, doubles = EntropyL(rounded.l).holds_all(classes), rounded.holds_all(classes)
        assert not (doubles & ~exact).any()
        for row in classes[exact & ~doubles].tolist():
            assert sum(row) ** sum(row) == int(rounded.l) ** sum(row) * math.prod(f**f for f in row if f)


def score(case):
    known, combos, histograms, ladders, order = adult()
    reference = histograms.sum(axis=0)
    models = [model(s).against(reference, tables=ladders[-1].tables, order=order) for s in case["models"]]
    recodings = {
        name: Recoding.from_levels(combos[:, i], ladders[i], level)
        for i, (name, level) in enumerate(zip(known["qi_order"], case["expected"]["transformation"], strict=True))
    }
    nodes = np.stack([recoding.node for recoding in recodings.values()], axis=1)
    suppressed, classes = outliers(nodes, histograms, models)
    counts = histograms.sum(axis=1)
    metrics = measure(recodings, suppressed=suppressed, counts=counts)
    names = {"aecs": "average_class_size", "non_uniform_entropy": "entropy"}
    name = (
        "discernibility_star"
        if case["loss"].get("variant") == "DM*"
        else names.get(case["loss"]["name"], case["loss"]["name"])
    )
    return getattr(metrics, name), int(counts[suppressed].sum()), classes


if (ADULT / "known_optima.json").exists():

    def _cases():
        return json.loads((ADULT / "known_optima.json").read_text())["cases"]

    @pytest.mark.parametrize("case", _cases(), ids=lambda case: case["id"])
    def test_the_listed_optimum_has_the_listed_score(case):
        if not case["expected"]["solution"]:
            return
        value, suppressed, classes = score(case)
        expected = case["expected"]
        assert (suppressed, classes) == (expected["suppressed_records"], expected["equivalence_classes_excl_outliers"])
        assert value == pytest.approx(expected["information_loss"], rel=1e-9)
