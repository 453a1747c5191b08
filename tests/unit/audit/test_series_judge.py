"""The judge of a series against obvious twins: matchings by permutation, shares by the engine's own measure."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from reticent.audit.series import View, matched, shares
from reticent.engine.series.history import History
from reticent.engine.series.sug import risk_of
from reticent.policy.updates import Updates

SETS = st.lists(st.frozensets(st.integers(0, 5), max_size=4), min_size=1, max_size=4)


@given(SETS, st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_matched_equals_trying_every_order(sets, values):
    tried = len(sets) == len(values) and any(
        all(value in found for value, found in zip(order, sets, strict=True)) for order in permutations(values)
    )
    assert matched(sets, values) == tried


@pytest.mark.parametrize("seed", range(5))
def test_shares_equal_the_engines_risk(seed):
    """Two implementations of equation (2), one native and one in numpy, on persons who miss releases."""
    rng = np.random.default_rng(seed)
    size, m = 8, 3
    matrix = rng.random((size, size)) + 0.01
    updates = Updates(tuple(map(str, range(size))), sparse.csr_array(matrix / matrix.sum(axis=1, keepdims=True)))
    history, views = History(), []
    for number in range(1, 6):
        groups = [tuple(sorted(rng.permutation(size)[:m].tolist())) for _ in range(6)]
        people = np.sort(rng.choice(40, 18, replace=False)).astype(np.uint64)
        group = rng.integers(0, 6, 18).astype(np.int32)
        own = np.array([groups[g][0] for g in group], dtype=np.int32)
        offsets = np.arange(0, 6 * m + 1, m, dtype=np.int64)
        history = history.extend(people, people, group, own, (offsets, np.array(groups, dtype=np.int32).ravel()))
        views.append(View(number, people, group + 1, {g + 1: values for g, values in enumerate(groups)}, 0))
    found = shares(views, updates)
    risk = risk_of(history, updates)
    expected = dict(zip(history.persons.tolist(), risk.worst.tolist(), strict=True))
    assert found.keys() == expected.keys()
    np.testing.assert_allclose([found[p] for p in expected], list(expected.values()), rtol=1e-9)
