"""Two sets of arithmetic that share no code must decide every group alike, boundaries included."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reticent.audit import groups, requirements
from reticent.policy import Policy
from reticent.policy.hierarchy import ladder
from reticent.policy.models import DistinctL, EntropyL, EqualT, FrequencyL, HierarchicalT, OrderedT, RecursiveL

TREE = {"X": {"XX": ["a", "b"], "XY": ["c"]}, "Y": {"YY": ["d", "e"]}}
POLICY = Policy.from_dict({"version": 1, "columns": {"v": {"role": "sensitive", "hierarchy": {"tree": TREE}}}})
VALUES = pa.array(list("abcde"))
TABLES = ladder(POLICY.columns["v"].hierarchy, VALUES, column="v").tables
DENSE = st.lists(st.lists(st.integers(0, 5), min_size=5, max_size=5).filter(any), min_size=1, max_size=4)
NUMBERS = st.fractions(0, 1, max_denominator=10)


def judged(dense, model, kind, *numbers):
    rows = np.repeat(np.arange(len(dense)), dense.sum(axis=1))
    cells = pa.chunked_array([VALUES.take(pa.array(np.concatenate([np.repeat(np.arange(5), row) for row in dense])))])
    found = groups.histograms(rows, len(dense), cells)
    wanted = requirements.Requirement(model, kind, tuple(Fraction(str(number)) for number in numbers))
    if model == "l":
        return requirements.check_l(found, wanted, "").holds
    return requirements.check_t(found, wanted, found.totals(), POLICY, "v").holds


@settings(max_examples=150, deadline=None)
@given(DENSE, st.integers(1, 5), st.fractions(Fraction(1, 5), 4, max_denominator=6), NUMBERS)
@example([[2, 2, 2, 0, 0]], 3, Fraction(2), Fraction(0))
@example([[3, 7, 0, 0, 0], [7, 3, 0, 0, 0]], 2, Fraction(7, 3), Fraction(1, 5))
@example([[5, 0, 0, 0, 0], [0, 0, 0, 5, 0]], 1, Fraction(1), Fraction(1, 2))
def test_models_and_judge_decide_alike(rows, l, c, t):
    dense = np.array(rows, dtype=np.int64)
    reference = dense.sum(axis=0)
    pairs = [
        (DistinctL(l), ("l", "distinct", l)),
        (EntropyL(l), ("l", "entropy", l)),
        (RecursiveL(c, l), ("l", "recursive", c, l)),
        (FrequencyL(l), ("l", "frequency", l)),
        (EqualT(t), ("t", "equal", t)),
        (OrderedT(t), ("t", "ordered", t)),
        (HierarchicalT(t), ("t", "hierarchical", t)),
    ]
    for model, claim in pairs:
        ours = model.against(reference, tables=TABLES).holds_all(dense).all()
        assert judged(dense, *claim) == ours, (model, dense.tolist())
