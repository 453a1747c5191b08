"""The three phases on codes: what the repairs of the paper are there for."""

import numpy as np
import pytest
from scipy import sparse

from reticent import _core
from reticent.policy.updates import Updates
from reticent.verify.series import can_match


def knowledge(sets):
    matrix = np.zeros((len(sets), len(sets)))
    for value, reach in enumerate(sets):
        matrix[value, sorted(reach)] = 1 / len(reach)
    return Updates(tuple(map(str, range(len(sets)))), sparse.csr_array(matrix))


def publish(updates, values, previous, before, groups, *, m=2, colours=None, relax=False, key=bytes(32)):
    n = len(values)
    return _core.series.publish(
        np.array(values, dtype=np.int32),
        np.array(previous, dtype=np.int32),
        np.array(before, dtype=np.int32),
        np.linspace(0, 1, n, dtype=np.float32).reshape(-1, 1),
        past=(
            np.concatenate([[0], np.cumsum([len(g) for g in groups])]).astype(np.int64),
            np.array([v for g in groups for v in g], dtype=np.int32),
        ),
        sets=updates.steps(1)[0],
        colors=np.arange(len(updates), dtype=np.int32) if colours is None else np.array(colours, dtype=np.int32),
        relax=relax,
        m=m,
        key=key,
    )


def groups_of(found):
    offsets, row, value = found.offsets, found.rows, found.values
    return [
        (row[a:b].tolist(), value[a:b].tolist()) for a, b in zip(offsets.tolist(), offsets.tolist()[1:], strict=False)
    ]


def test_distinct_representatives_are_kept():
    """Entries {0} and {0, 1}: value 0 must not take the second entry, or the first is left without a value."""
    updates = knowledge([{0}, {0, 1}, {2}])
    found = publish(updates, [0, 0], [0, 0], [0, 1], [(0, 1)])
    for _, values in groups_of(found):
        assert sorted(values) == [0, 1]
    assert len(groups_of(found)) == 2


def test_an_update_outside_the_knowledge_is_withheld():
    updates = knowledge([{0}, {1}, {2}])
    found = publish(updates, [2, 1], [0, 0], [0, 1], [(0, 1)])
    assert found.withheld.tolist() == [1, 0]
    assert groups_of(found) == [([-1, 1], [0, 1])]


def test_new_records_take_the_places_of_counterfeits():
    updates = knowledge([{0, 1}, {0, 1}, {2, 3}, {2, 3}])
    found = publish(updates, [0, 3], [0, -1], [0, 0], [(0, 2)])
    assert groups_of(found) == [([0, 1], [0, 3])]


def test_a_group_of_counterfeits_alone_is_not_published():
    updates = knowledge([{0}, {1}, {2}])
    found = publish(updates, [2], [0], [0], [(0, 1)])
    assert groups_of(found) == []


def test_too_few_colours_give_nothing():
    assert publish(knowledge([{0}, {1}]), [0], [-1], [0], [], m=3) is None


@pytest.mark.parametrize("m", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(6))
def test_random_buckets_split_legally(seed, m):
    """Overlapping sets, skewed values: every group is distinct and matched one to one, whatever the bucket."""
    rng = np.random.default_rng(seed)
    size = 12
    sets = [{v} | {int(x) for x in rng.integers(0, size, 3)} for v in range(size)]
    changed = True
    while changed:  # transitive
        bigger = [set().union(*(sets[x] for x in s)) for s in sets]
        changed, sets = bigger != sets, bigger
    updates = knowledge(sets)
    groups = [tuple(rng.permutation(size)[:m].tolist()) for _ in range(6)]
    previous, before, values = [], [], []
    for _ in range(60):
        group = int(rng.integers(0, len(groups)))
        old = int(rng.choice(groups[group]))
        previous.append(group)
        before.append(old)
        values.append(int(rng.choice(sorted(sets[old]))))
    for _ in range(40):
        previous.append(-1)
        before.append(0)
        values.append(int(rng.integers(0, size)))
    found = publish(updates, values, previous, before, groups, m=m)
    seen = []
    for rows, shown in groups_of(found):
        assert len(set(shown)) == len(shown) == m
        for row, value in zip(rows, shown, strict=True):
            if row >= 0:
                seen.append(row)
                assert values[row] == value
                if previous[row] >= 0:
                    assert can_match([frozenset(sets[v]) for v in groups[previous[row]]], shown)
    held = np.flatnonzero(found.withheld).tolist()
    assert sorted(seen + held) == list(range(100))
    assert all(previous[row] >= 0 for row in held)


def test_same_key_same_groups_and_other_key_other_order():
    updates = knowledge([{v} for v in range(6)])
    values = [v for v in range(6) for _ in range(20)]
    news = [-1] * 120
    runs = [publish(updates, values, news, values, [], m=3, key=key) for key in (bytes(32), bytes(32), b"1" * 32)]
    assert groups_of(runs[0]) == groups_of(runs[1])
    assert groups_of(runs[0]) != groups_of(runs[2])


def test_first_groups_spread_over_components_where_that_costs_nothing():
    updates = knowledge([{0, 1}, {0, 1}, {2, 3}, {2, 3}])
    values = [0, 1, 2, 3] * 10
    found = publish(updates, values, [-1] * 40, values, [], colours=updates.components, relax=True)
    assert all({v // 2 for v in shown} == {0, 1} for _, shown in groups_of(found))


def test_a_component_too_frequent_gets_groups_of_its_own():
    updates = knowledge([{0, 1}, {0, 1}, {2, 3}, {2, 3}])
    values = [0, 1] * 15 + [2, 3] * 5
    found = publish(updates, values, [-1] * 40, values, [], colours=updates.components, relax=True)
    kinds = [len({v // 2 for v in shown}) for _, shown in groups_of(found)]
    assert len(kinds) == 20
    assert kinds.count(1) == 10
    assert min(found.rows) >= 0  # no counterfeit
