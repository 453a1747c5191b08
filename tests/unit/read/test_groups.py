"""Groups: exact over everybody, unbiased over regions, where the groups' own shares are not."""

import numpy as np
import pytest

from reticent.errors import PolicyError
from reticent.read.estimate.groups import Groups


def count(table, region, target):
    return table.counts_by(region, np.zeros(len(region), dtype=np.int64), target, size=1)


def anatomy(rng, values, l):
    """Groups of l records with different values, drawn from the l fullest buckets: the group of each record."""
    buckets = [rng.permutation(np.flatnonzero(values == value)).tolist() for value in range(values.max() + 1)]
    group, number = np.full(len(values), -1), 0
    while sum(bool(bucket) for bucket in buckets) >= l:
        fullest = sorted(range(len(buckets)), key=lambda value: (-len(buckets[value]), rng.random()))[:l]
        for value in fullest:
            group[buckets[value].pop()] = number
        number += 1
    return group


def groups_of(values, group, size):
    kept = group >= 0
    pairs, counts = np.unique(group[kept] * size + values[kept], return_counts=True)
    return Groups(size, pairs // size, pairs % size, counts)


def world(rng, n=2_000, size=12):
    """A region of a quarter, in which value 3 is three times as frequent as elsewhere."""
    inside = rng.random(n) < 0.25
    odds = np.array([np.full(size, 1 / size)] * 2)
    odds[1, 3] *= 3
    odds /= odds.sum(axis=1, keepdims=True)
    values = (rng.random(n)[:, None] > odds.cumsum(axis=1)[inside.astype(int)]).sum(axis=1)
    return inside, values


def test_everybody_is_exact():
    rng = np.random.default_rng(1)
    _, values = world(rng)
    group = anatomy(rng, values, 4)
    table = groups_of(values, group, 12)
    answer = count(table, group[group >= 0], np.eye(12)[3])
    assert answer.estimate[0] == pytest.approx((values[group >= 0] == 3).sum())
    assert answer.variance[0] == pytest.approx(0, abs=1e-6)


def test_a_region_is_unbiased_and_covered():
    rng, errors, naive, inside_interval = np.random.default_rng(2), [], [], []
    target = np.eye(12)[3]
    for _ in range(150):
        region, values = world(rng)
        group = anatomy(rng, values, 4)
        table, mine = groups_of(values, group, 12), group[region & (group >= 0)]
        true = (values[region & (group >= 0)] == 3).sum()
        answer = count(table, mine, target)
        listed = np.zeros(group.max() + 1)
        listed[table.groups[table.values == 3]] = table.counts[table.values == 3]
        naive.append((listed / 4)[mine].sum() - true)
        errors.append(answer.estimate[0] - true)
        inside_interval.append(answer.low[0] <= true <= answer.high[0])
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))
    assert np.mean(naive) < -20
    assert np.mean(inside_interval) >= 0.93


def test_groups_that_all_list_the_same_tell_nothing():
    table = Groups(3, np.repeat([0, 1, 2], 3), np.tile([0, 1, 2], 3), np.ones(9, dtype=int))
    with pytest.raises(PolicyError, match="cannot be estimated"):
        count(table, np.array([0, 1]), np.eye(3)[0])
    assert count(table, np.array([0, 1]), np.ones(3)).estimate == pytest.approx([2])


def test_persons_of_several_records_in_one_group_widen_the_interval():
    rng, size, holds = np.random.default_rng(5), 12, []
    for _ in range(60):
        persons = rng.choice(size, 500, p=np.arange(size, 0, -1) / 78)
        home = rng.random(500) < 0.3
        values, inside = np.repeat(persons, 4), np.repeat(home, 4)
        group = np.repeat(anatomy(rng, persons, 3), 4)
        kept = group >= 0
        target = np.isin(np.arange(size), [0, 5]).astype(float)
        answer = count(groups_of(values, group, size), group[kept & inside], target)
        true = target[values[kept & inside]].sum()
        holds.append(answer.low[0] <= true <= answer.high[0])
    assert np.mean(holds) >= 0.9


def test_what_is_asked_of_everybody_is_not_exact_where_groups_are_not_full():
    rng, size = np.random.default_rng(6), 8
    values = rng.integers(0, size, 4_000)
    group = anatomy(rng, values, 4)
    kept = (group >= 0) & ~((values == 0) & (rng.random(4_000) < 0.08)) & (rng.random(4_000) < 0.9)
    whole = groups_of(values, group, size)
    records = np.bincount(group[kept], minlength=group.max() + 1)
    some = Groups(size, whole.groups, whole.values, whole.counts, records)
    for value in range(size):
        answer = count(some, group[kept], np.eye(size)[value])
        assert answer.low[0] <= (values[kept] == value).sum() <= answer.high[0]
