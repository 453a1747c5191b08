"""Searches that a time limit may end: the answer is feasible, and the bound is below the true optimum."""

from __future__ import annotations

import numpy as np
import pytest

from reticent import _core


def table(attributes, rows=300, seed=2):
    rng = np.random.default_rng(seed)
    codes, hierarchies = [], []
    for _ in range(attributes):
        tables = [np.arange(8, dtype=np.int32) // w for w in (1, 2, 4)] + [np.zeros(8, dtype=np.int32)]
        codes.append(rng.choice(8, rows, p=rng.dirichlet(np.ones(8))).astype(np.int32))
        hierarchies.append(([t.astype(np.int32) for t in tables], [np.bincount(t).astype(np.int64) for t in tables], 8))
    return _core.table.CollapsedTable(codes, hierarchies, [])


def within(seconds):
    return _core.table.CancellationToken().with_limits(seconds=seconds)


@pytest.mark.parametrize("limit", [0, 15])
def test_a_lattice_too_large_to_finish_gives_an_answer_and_a_bound(limit):
    collapsed = table(10)
    assert collapsed.nodes == 4**10
    model = _core.table.Model(k=3)
    found = collapsed.search(model, loss="loss", weights=[1.0] * 10, limit=limit, cancellation=within(0.3))
    node = collapsed.evaluate(model, found["levels"], loss="loss", weights=[1.0] * 10)
    assert node.suppressed == found["suppressed"] <= limit
    assert node.score == pytest.approx(found["score"])
    assert 0 <= found["bound"] <= found["score"]


@pytest.mark.parametrize("limit", [0, 15, 300])
def test_the_bound_of_an_unfinished_search_is_below_the_optimum(limit):
    collapsed = table(5)
    model, weights = _core.table.Model(k=3), [1.0] * 5
    whole = collapsed.search(model, loss="loss", weights=weights, limit=limit)
    assert whole["complete"]
    for seconds in (1e-9, 1e-3, 1e-2):
        part = collapsed.search(model, loss="loss", weights=weights, limit=limit, cancellation=within(seconds))
        assert part["bound"] <= whole["score"] <= part["score"]
        assert part["complete"] == (part["bound"] == part["score"]) or part["score"] == whole["score"]


def test_a_wide_lattice_is_searched_to_the_end_where_bounds_allow():
    collapsed = table(10, rows=2000)
    model, weights = _core.table.Model(k=1), [1.0] * 10
    found = collapsed.search(model, loss="loss", weights=weights, limit=0)
    assert found["complete"]
    assert found["levels"] == [0] * 10
