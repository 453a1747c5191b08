"""The native query kernels equal their reference implementations."""

import numpy as np
import pytest

from reticent.engine.series.grouping import Grouping
from reticent.errors import GuaranteeError
from reticent.reproduce.census_series import l_diverse
from reticent.reproduce.m_distinct import Queries, relative_errors


def reference_estimate(queries, grouping, positions):
    out = []
    for low, high in zip(queries.low, queries.high, strict=True):
        total = 0.0
        for g in range(len(grouping)):
            places = slice(grouping.offsets[g], grouping.offsets[g + 1])
            part = float((grouping.row[places] >= 0).sum())
            shown = positions[grouping.donor[places]]
            for axis in range(positions.shape[1]):
                domain = range(shown[:, axis].min(), shown[:, axis].max() + 1)
                part *= sum(low[axis] <= x <= high[axis] for x in domain) / len(domain)
            values = grouping.value[places]
            total += part * sum(low[-1] <= v <= high[-1] for v in values) / len(values)
        out.append(total)
    return np.array(out)


@pytest.mark.parametrize("seed", range(4))
def test_estimates_and_counts(seed):
    rng = np.random.default_rng(seed)
    positions = rng.integers(0, 9, (40, 3)).astype(np.int32)
    values = rng.integers(0, 6, 40).astype(np.int32)
    row = np.where(rng.random(40) < 0.2, -1, np.arange(40)).astype(np.int32)
    grouping = Grouping(
        np.arange(0, 41, 4, dtype=np.int64), row, values, np.arange(40, dtype=np.int32), np.zeros(40, dtype=np.uint8)
    )
    queries = Queries.draw([9, 9, 9, 6], 0.5, 30, rng)
    np.testing.assert_allclose(queries.estimate(grouping, positions), reference_estimate(queries, grouping, positions))
    records = np.column_stack([positions, values])
    inside = (records[None] >= queries.low[:, None]) & (records[None] <= queries.high[:, None])
    assert queries.count(records).tolist() == inside.all(axis=2).sum(axis=1).tolist()


def test_ranges_cover_the_share_asked_for():
    queries = Queries.draw([100, 2, 50], 0.3, 200, np.random.default_rng(1))
    assert set((queries.high - queries.low + 1)[:, 0].tolist()) == {30}
    assert (queries.low >= 0).all()
    assert (queries.high < [100, 2, 50]).all()


def test_error_is_the_papers():
    found = relative_errors(np.array([2.0, 4.0, 0.0, 0.0]), np.array([1, 5, 0, 3]))
    assert found.tolist() == [0.5, 0.25, 0.0, np.inf]


@pytest.mark.parametrize("l", [2, 4])
def test_l_diverse_groups(l):
    rng = np.random.default_rng(3)
    values = rng.integers(0, 8, 300).astype(np.int32)
    found = l_diverse(values, rng.random((300, 2)).astype(np.float32), l=l)
    assert sorted(found.row.tolist()) == list(range(300))
    for a, b in zip(found.offsets, found.offsets[1:], strict=False):
        assert len(set(found.value[a:b].tolist())) >= l


def test_l_diverse_refuses_a_table_with_too_few_values():
    with pytest.raises(GuaranteeError):
        l_diverse(np.zeros(5, dtype=np.int32), np.zeros((5, 1), dtype=np.float32), l=2)
