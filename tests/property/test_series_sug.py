"""Forward-backward equals path enumeration in exact rationals; Lemmas 1 to 4 of Li and Zhou; Example 4."""

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

from reticent.engine.series.history import History
from reticent.engine.series.update_graph import risk_of
from reticent.policy.updates import Updates


def enumerate_paths(layers, weights, edge):
    """The reference implementation: every path, one by one. Gives per layer and value the share of path weight, or None."""
    shares = [dict.fromkeys(layer, Fraction(0)) for layer in layers]
    total = Fraction(0)
    for path in product(*layers):
        weight = Fraction(1)
        for i, value in enumerate(path):
            weight *= weights[i][value]
            if i:
                weight *= edge.get((path[i - 1], value), Fraction(0))
        total += weight
        for i, value in enumerate(path):
            shares[i][value] += weight
    return None if total == 0 else [{v: w / total for v, w in layer.items()} for layer in shares]


def forward_backward(layers, weights, edge):
    """The same by sums over layers, still in rationals: what the core computes in floating point."""
    alpha = [{v: weights[0][v] for v in layers[0]}]
    for i in range(1, len(layers)):
        alpha.append({v: weights[i][v] * sum(a * edge.get((u, v), 0) for u, a in alpha[-1].items()) for v in layers[i]})
    beta = [{v: Fraction(1) for v in layers[-1]}]
    for i in range(len(layers) - 2, -1, -1):
        beta.insert(
            0, {u: sum(edge.get((u, v), 0) * weights[i + 1][v] * b for v, b in beta[0].items()) for u in layers[i]}
        )
    total = sum(alpha[-1].values())
    return None if total == 0 else [{v: a[v] * b[v] / total for v in a} for a, b in zip(alpha, beta, strict=True)]


def pruned(layers, edge):
    """The feasible sub-SUG by Definition 11: delete nodes without an edge in or out until nothing changes."""
    kept = [set(layer) for layer in layers]
    changed = True
    while changed:
        changed = False
        for i, layer in enumerate(kept):
            for v in list(layer):
                no_in = i > 0 and not any((u, v) in edge for u in kept[i - 1])
                no_out = i < len(kept) - 1 and not any((v, w) in edge for w in kept[i + 1])
                if no_in or no_out:
                    layer.discard(v)
                    changed = True
    return kept


@st.composite
def graphs(draw):
    size = draw(st.integers(2, 6))
    edge = {}
    for u in range(size):
        row = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
        if not sum(row):
            row[u] = 1
        edge |= {(u, v): Fraction(w, sum(row)) for v, w in enumerate(row) if w}
    groups = draw(st.lists(st.lists(st.integers(0, size - 1), min_size=1, max_size=4), min_size=1, max_size=4))
    return size, edge, [tuple(sorted(g)) for g in groups]


def share_of(group):
    return {v: Fraction(group.count(v), len(group)) for v in group}


def measured(size, edge, groups, true_values=None):
    """What the core says of one person who was in these groups."""
    matrix = np.zeros((size, size))
    for (u, v), w in edge.items():
        matrix[u, v] = float(w)
    history = History()
    person = np.array([7], dtype=np.uint64)
    for i, group in enumerate(groups):
        offsets = np.array([0, len(group)], dtype=np.int64)
        value = np.array([group[0] if true_values is None else true_values[i]], dtype=np.int32)
        history = history.extend(
            person, person, np.zeros(1, dtype=np.int32), value, (offsets, np.array(group, dtype=np.int32))
        )
    return risk_of(history, Updates(tuple(map(str, range(size))), sparse.csr_array(matrix)))


@given(graphs())
@example((3, {(0, 0): Fraction(1), (1, 1): Fraction(1), (2, 2): Fraction(1)}, [(0, 1), (1, 2), (0, 1)]))
def test_forward_backward_equals_enumeration(graph):
    size, edge, groups = graph
    layers = [tuple(dict.fromkeys(g)) for g in groups]
    weights = [share_of(g) for g in groups]
    exact = enumerate_paths(layers, weights, edge)
    assert forward_backward(layers, weights, edge) == exact
    risk = measured(size, edge, groups)
    if exact is None:
        assert risk.worst[0] == 1.0
        return
    np.testing.assert_allclose(risk.worst[0], float(max(max(layer.values()) for layer in exact)), rtol=1e-9)
    np.testing.assert_allclose(
        risk.true_value[0], float(max(layer[g[0]] for layer, g in zip(exact, groups, strict=True))), atol=1e-9
    )


@given(graphs())
def test_lemma_2_risk_one_means_one_feasible_value(graph):
    size, edge, groups = graph
    layers = [tuple(dict.fromkeys(g)) for g in groups]
    kept = pruned(layers, edge)
    exact = enumerate_paths(layers, [share_of(g) for g in groups], edge)
    if exact is None:
        assert any(not layer for layer in kept)
        return
    for layer, shares in zip(kept, exact, strict=True):
        assert layer == {v for v, share in shares.items() if share > 0}
        assert (len(layer) == 1) == (max(shares.values()) == 1)
    assert measured(size, edge, groups).disclosed[0] == sum(len(layer) == 1 for layer in kept)


@given(st.data())
def test_lemma_3_a_legal_update_instance_prunes_nothing(data):
    size = data.draw(st.integers(3, 7))
    closed = {u: {u} | {v for v in range(size) if v // 3 == u // 3} for u in range(size)}
    edge = {(u, v): Fraction(1, len(closed[u])) for u in closed for v in closed[u]}
    groups = [tuple(data.draw(st.permutations(range(size)))[: data.draw(st.integers(2, size))])]
    for _ in range(data.draw(st.integers(1, 3))):
        following, used = [], set()
        for value in groups[-1]:
            options = sorted(closed[value] - used)
            if not options:
                break
            following.append(data.draw(st.sampled_from(options)))
            used.add(following[-1])
        else:
            groups.append(tuple(following))
            continue
        break
    kept = pruned(groups, edge)
    assert [len(layer) for layer in kept] == [len(g) for g in groups]
    assert measured(size, edge, groups).disclosed[0] == 0


@given(st.integers(2, 4), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_lemma_1_random_updates_leave_earlier_risks_alone(size, sizes):
    edge = {(u, v): Fraction(1, size) for u in range(size) for v in range(size)}
    groups = [tuple(range(min(n, size))) for n in sizes]
    exact = enumerate_paths(groups, [share_of(g) for g in groups], edge)
    assert all(share == Fraction(1, len(g)) for g, layer in zip(groups, exact, strict=True) for share in layer.values())


def test_lemma_4_does_not_hold_for_sets_of_different_sizes():
    """Value 0 stays or becomes 1, value 2 stays: a person with candidates 0 and 2 both times has 2 with probability 2/3, not 1/2."""
    half, one = Fraction(1, 2), Fraction(1)
    edge = {(0, 0): half, (0, 1): half, (1, 1): one, (2, 2): one}
    np.testing.assert_allclose(measured(3, edge, [(0, 2), (0, 2)], (2, 2)).true_value[0], 2 / 3)


def test_example_4():
    """Five paths of weights 1/18, 1/36, 1/72, 1/72, 1/18; the true one is the third: 1/3, 1/6, 1/12.

    The text gives the path weights; the drawing with the node weights is not in it. Equal node weights inside a layer and these
    edges give paths in the proportions of the text, and only those matter.
    """
    half, one = Fraction(1, 2), Fraction(1)
    edge = {(0, 3): one, (3, 7): one, (1, 4): half, (1, 5): half, (4, 8): one, (5, 9): half, (5, 10): half}
    edge |= {(2, 6): one, (6, 11): one}
    groups = [(0, 1, 2), (3, 4, 5, 6), (7, 8, 9, 10, 11)]
    exact = enumerate_paths(groups, [share_of(g) for g in groups], edge)
    assert (exact[0][1], exact[1][5], exact[2][9]) == (Fraction(1, 3), Fraction(1, 6), Fraction(1, 12))
    for true, expected in (((1, 3, 7), 1 / 3), ((0, 5, 7), 1 / 3), ((1, 5, 9), 1 / 3)):
        np.testing.assert_allclose(measured(12, edge, groups, true).true_value[0], expected)
    for layer, value, expected in ((1, 5, 1 / 6), (2, 9, 1 / 12)):
        np.testing.assert_allclose(float(exact[layer][value]), expected)


def test_a_person_who_misses_a_release_is_linked_over_two_steps():
    edge = {(0, 0): Fraction(1, 2), (0, 1): Fraction(1, 2), (1, 1): Fraction(1)}
    matrix = np.array([[0.5, 0.5], [0.0, 1.0]])
    history = History()
    person, nobody = np.array([7], dtype=np.uint64), np.array([8], dtype=np.uint64)
    zero = np.zeros(1, dtype=np.int32)
    for who in (person, nobody, person):
        history = history.extend(who, who, zero, zero, (np.array([0, 2]), np.array([0, 1], dtype=np.int32)))
    twice = {(u, v): sum(edge.get((u, w), 0) * edge.get((w, v), 0) for w in (0, 1)) for u in (0, 1) for v in (0, 1)}
    exact = enumerate_paths([(0, 1), (0, 1)], [share_of((0, 1))] * 2, twice)
    risk = risk_of(history, Updates(("0", "1"), sparse.csr_array(matrix)), history.last(person))
    np.testing.assert_allclose(risk.true_value[0], float(max(exact[0][0], exact[1][0])))
