"""The privacy models against plain twins: a few lines of exact rational arithmetic each."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from reticent.errors import InternalError, PolicyError
from reticent.policy.models import (
    DistinctL,
    EntropyL,
    EqualT,
    FrequencyL,
    HierarchicalT,
    Histograms,
    KAnonymity,
    OrderedT,
    RecursiveL,
)

DENSE = (
    st.integers(1, 6)
    .flatmap(
        lambda width: st.lists(
            st.lists(st.integers(0, 6), min_size=width, max_size=width).filter(any), min_size=1, max_size=6
        )
    )
    .map(lambda rows: np.array(rows, dtype=np.int64))
)


def tree(width, fanout=2):
    """A balanced hierarchy: codes divided by the fan-out until one node is left."""
    tables = [np.arange(width, dtype=np.int32)]
    while tables[-1].max() > 0 or len(tables) < 2:
        tables.append((tables[-1] // fanout).astype(np.int32))
    return tuple(tables)


def ground(tables):
    """Distance of two leaves: level of the lowest common ancestor over the height."""
    width, height = len(tables[0]), len(tables) - 1
    level = lambda a, b: next(i for i, table in enumerate(tables) if table[a] == table[b])  # noqa: E731
    return np.array([[level(a, b) / height for b in range(width)] for a in range(width)])


def transport(p, q, cost):
    """EMD as a linear programme."""
    size = len(p)
    rows = np.kron(np.eye(size), np.ones(size))
    columns = np.kron(np.ones(size), np.eye(size))
    answer = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([p, q]), method="highs")
    return answer.fun


@pytest.mark.parametrize(
    "build",
    [
        lambda: KAnonymity(0),
        lambda: KAnonymity(-1),
        lambda: KAnonymity(2.5),
        lambda: KAnonymity(True),
        lambda: DistinctL(0),
        lambda: EntropyL(0.5),
        lambda: EntropyL(math.nan),
        lambda: RecursiveL(0, 3),
        lambda: RecursiveL(2, 0),
        lambda: FrequencyL(math.inf),
        lambda: EqualT(1.5),
        lambda: OrderedT(-0.1),
        lambda: HierarchicalT("0.2"),
    ],
)
def test_impossible_numbers_are_refused(build):
    with pytest.raises(PolicyError):
        build()


@settings(max_examples=80, deadline=None)
@given(DENSE, st.integers(1, 6), st.fractions(Fraction(1, 4), 5, max_denominator=7))
def test_k_distinct_frequency_and_recursive_equal_their_twins(dense, l, c):
    for row, k, distinct, frequency, recursive in zip(
        dense,
        KAnonymity(l).holds_all(dense),
        DistinctL(l).holds_all(dense),
        FrequencyL(c + 1).holds_all(dense),
        RecursiveL(c, l).holds_all(dense),
        strict=True,
    ):
        counts = sorted((int(x) for x in row if x), reverse=True)
        assert k == (sum(counts) >= l)
        assert distinct == (len(counts) >= l)
        assert frequency == (counts[0] * (c + 1) <= sum(counts))
        assert recursive == (len(counts) >= l and counts[0] < c * sum(counts[l - 1 :]))


@settings(max_examples=80, deadline=None)
@given(DENSE, st.one_of(st.integers(1, 6), st.sampled_from([1.5, 2.5, 3.25])))
def test_entropy_equals_integer_comparison(dense, l):
    bound = Fraction(l)
    for row, holds in zip(dense, EntropyL(l).holds_all(dense), strict=True):
        n, counts = int(row.sum()), [int(x) for x in row if x]
        product = math.prod(x**x for x in counts) * bound.numerator**n
        assert holds == (n**n * bound.denominator**n >= product)


@pytest.mark.parametrize("each", [1, 2, 7, 1000, 3_333_333])
@pytest.mark.parametrize("l", [2, 3, 5, 10])
def test_entropy_accepts_the_boundary_and_nothing_below_it(each, l):
    boundary = np.full(l, each, dtype=np.int64)
    assert EntropyL(l).holds(boundary)
    boundary[0] += 1  # uneven: strictly below log l, by as little as 1e-14
    assert not EntropyL(l).holds(boundary)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(DENSE, st.fractions(0, 1, max_denominator=12))
def test_t_equals_twins_and_linear_programme(dense, t):
    width, reference, tables = dense.shape[1], dense.sum(axis=0), tree(dense.shape[1])
    live = np.flatnonzero(reference)
    p = reference / reference.sum()
    equal, ordered, hierarchical = (
        model.against(reference, tables=tables) for model in (EqualT(t), OrderedT(t), HierarchicalT(t))
    )
    costs = {equal: 1 - np.eye(width), hierarchical: ground(tables)}
    for model, cost in costs.items():
        for row, distance in zip(dense, model.distances(dense), strict=True):
            assert distance == pytest.approx(transport(row / row.sum(), p, cost), abs=1e-9)
    for row, distance in zip(dense, ordered.distances(dense), strict=True):
        places = np.arange(len(live)) / max(1, len(live) - 1)
        assert distance == pytest.approx(wasserstein_distance(places, places, row[live], reference[live]), abs=1e-9)
    for row, verdict in zip(dense, equal.holds_all(dense), strict=True):
        n, total = int(row.sum()), int(reference.sum())
        exact = sum(abs(Fraction(int(a), n) - Fraction(int(b), total)) for a, b in zip(row, reference, strict=True)) / 2
        assert verdict == (exact <= t)


def test_t_on_the_boundary_is_accepted_whatever_the_decimal():
    # shares 0.3 / 0.7 against 0.5 / 0.5 are exactly 0.2 apart; in doubles 0.7 - 0.5 > 0.2
    assert EqualT(0.2).against(np.array([500, 500])).holds(np.array([7, 3]))
    assert not EqualT(0.1999999999999999).against(np.array([500, 500])).holds(np.array([7, 3]))


def test_hierarchical_t_does_not_overflow_at_billions_of_rows():
    tables = (np.arange(4, dtype=np.int32), np.array([0, 0, 1, 1], np.int32), np.zeros(4, np.int32))
    reference = np.array([10**9] * 4)
    group = np.array([4, 1, 2, 1]) * 10**9
    # surplus 1/4 at the first leaf: 1/8 settles with its sibling at half the height, 1/8 crosses the root
    model = HierarchicalT(0.1875).against(reference, tables=tables)
    assert model.distances(group[None])[0] == pytest.approx(0.1875)
    assert model.holds(group)
    assert not HierarchicalT(0.1874999999999).against(reference, tables=tables).holds(group)
    assert OrderedT(1).against(reference).holds(group)


def test_order_of_values_is_what_the_caller_says():
    reference, group = np.array([1, 1, 1]), np.array([[1, 1, 0]])
    line = OrderedT(1).against(reference).distances(group)[0]
    assert OrderedT(1).against(reference, order=np.array([0, 2, 1])).distances(group)[0] != line


def test_sparse_and_dense_agree_and_empty_groups_never_hold():
    dense = np.array([[2, 0, 1], [0, 0, 0], [1, 1, 1]], dtype=np.int64)
    sparse = Histograms.from_dense(dense)
    reference = dense.sum(axis=0)
    models = [KAnonymity(1), DistinctL(1), EntropyL(1), RecursiveL(9, 1), FrequencyL(1)]
    models += [m.against(reference, tables=tree(3)) for m in (EqualT(1), OrderedT(1), HierarchicalT(1))]
    for model in models:
        assert model.holds_all(dense).tolist() == model.holds_all(sparse).tolist() == [True, False, True]
    np.testing.assert_array_equal(sparse.dense(0, 3), dense)


def test_t_needs_the_table_and_only_its_values():
    with pytest.raises(InternalError):
        EqualT(0.2).holds(np.array([1]))
    with pytest.raises(InternalError):
        EqualT(0.2).against(np.array([1, 0])).holds(np.array([0, 1]))
    with pytest.raises(InternalError):
        HierarchicalT(0.2).against(np.array([1, 1])).holds(np.array([1, 1]))


def test_models_are_values_without_data_in_their_repr():
    bound = EqualT(0.2).against(np.array([12345, 1]))
    assert bound == EqualT(0.2)
    assert hash(bound) == hash(EqualT(0.2))
    assert repr(bound) == "EqualT(t=0.2)"
