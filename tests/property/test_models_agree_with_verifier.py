"""The engines' models and the verifier's share no code and must agree on every group, boundaries included."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from reticent import _core
from reticent.policy import Policy
from reticent.policy.hierarchy import build_levels
from reticent.verify import groups, requirements

TREE = {"X": {"XX": ["a", "b"], "XY": ["c"]}, "Y": {"YY": ["d", "e"]}}
POLICY = Policy.from_dict({"version": 1, "columns": {"v": {"role": "sensitive", "hierarchy": {"tree": TREE}}}})
VALUES = pa.array(list("abcde"))
TABLES = build_levels(POLICY.columns["v"].hierarchy, VALUES, column="v").node_ids
DENSE = st.lists(st.lists(st.integers(0, 5), min_size=5, max_size=5).filter(any), min_size=1, max_size=4)
NUMBERS = st.fractions(0, 1, max_denominator=10)


def is_verified(dense, model, kind, *numbers):
    return finding(dense, model, kind, *numbers).holds


def finding(dense, model, kind, *numbers):
    rows = np.repeat(np.arange(len(dense)), dense.sum(axis=1))
    cells = pa.chunked_array([VALUES.take(pa.array(np.concatenate([np.repeat(np.arange(5), row) for row in dense])))])
    found = groups.histograms(rows, len(dense), cells)
    wanted = requirements.Requirement(model, kind, tuple(Fraction(str(number)) for number in numbers))
    if model == "l":
        return requirements.check_l(found, wanted, "")
    return requirements.check_t(found, wanted, found.totals(), POLICY, "v")


def is_accepted(dense, model):
    """Whether the core accepts every group; it knows the values that occur, as the engines' dictionaries do."""
    live = np.flatnonzero(dense.sum(axis=0))
    rows = np.repeat(np.arange(len(dense)), dense.sum(axis=1)).astype(np.int32)
    codes = np.concatenate([np.repeat(np.arange(len(live)), row) for row in dense[:, live]]).astype(np.int32)
    each, one = np.arange(len(dense), dtype=np.int32), np.zeros(len(dense), dtype=np.int32)
    hierarchies = [([each, one], [np.ones(len(dense), dtype=np.int64), np.array([len(dense)])], len(dense))]
    tree = [np.unique(table[live], return_inverse=True)[1].astype(np.int32) for table in TABLES]
    collapsed = _core.table.CollapsedTable([rows], hierarchies, [(codes, len(live), tree)])
    return bool((collapsed.classes(_core.table.Model(**model), [0]) >= 0).all())


@settings(max_examples=150, deadline=None)
@given(DENSE, st.integers(1, 5), st.fractions(Fraction(1, 5), 4, max_denominator=6), NUMBERS)
@example([[2, 2, 2, 0, 0]], 3, Fraction(2), Fraction(0))
@example([[3, 7, 0, 0, 0], [7, 3, 0, 0, 0]], 2, Fraction(7, 3), Fraction(1, 5))
@example([[5, 0, 0, 0, 0], [0, 0, 0, 5, 0]], 1, Fraction(1), Fraction(1, 2))
def test_models_and_verifier_agree(rows, l, c, t):
    dense = np.array(rows, dtype=np.int64)
    claims = [
        ({"l": ("distinct", [l])}, ("l", "distinct", l)),
        ({"l": ("entropy", [l, 1])}, ("l", "entropy", l)),
        ({"l": ("recursive", [c.numerator, c.denominator, l])}, ("l", "recursive", c, l)),
        ({"l": ("frequency", [l, 1])}, ("l", "frequency", l)),
        *(({"t": (kind, t.numerator, t.denominator)}, ("t", kind, t)) for kind in ("equal", "ordered", "hierarchical")),
    ]
    for model, claim in claims:
        assert is_verified(dense, *claim) == is_accepted(dense, model), (model, dense.tolist())


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(DENSE)
def test_distances_are_those_of_the_linear_programme(rows):
    dense = np.array(rows, dtype=np.int64)
    live = np.flatnonzero(dense.sum(axis=0))
    table, shares = dense.sum(axis=0)[live] / dense.sum(), dense[:, live] / dense.sum(axis=1)[:, None]
    line, height = np.arange(len(live)) / max(1, len(live) - 1), len(TABLES) - 1
    levels = [[next(i for i, t in enumerate(TABLES) if t[a] == t[b]) for b in live] for a in live]
    costs = {
        "equal": 1 - np.eye(len(live)),
        "ordered": np.abs(line[:, None] - line),
        "hierarchical": np.array(levels) / height,
    }
    for kind, cost in costs.items():
        farthest = max(transport(share, table, cost) for share in shares)
        assert finding(dense, "t", kind, 1).measured == pytest.approx(farthest, abs=1e-9), kind


def transport(p, q, cost):
    """The earth mover's distance as a linear programme."""
    size = len(p)
    sums = np.vstack([np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))])
    return linprog(cost.ravel(), A_eq=sums, b_eq=np.concatenate([p, q]), method="highs").fun
