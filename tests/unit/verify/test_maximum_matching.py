"""Matchings and runs of ranks without a library, compared with exhaustive search and plain sets."""

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reticent.verify.labels.coverage import Segments
from reticent.verify.original.maximum_matching import matching_size


@given(st.lists(st.sets(st.integers(0, 4), max_size=5), max_size=5))
def test_a_matching_is_as_large_as_possible(wishes):
    best = max(
        sum(value in wishes[head] for head, value in enumerate(order[: len(wishes)]))
        for order in permutations(range(5))
    )
    assert matching_size(wishes) == best
    assert matching_size(wishes, 2) == min(best, 2)


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 3))))
def test_segments_contain_each_pair_once_and_no_others(pairs):
    value, label = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    rank = np.array([3, 1, 0, 2, 5, 4])
    segments = Segments.from_pairs(value, label, rank, 4)
    contained = [
        (row, column)
        for column in range(4)
        for segment in range(segments.first[column], segments.first[column + 1])
        for row in range(segments.low[segment], segments.high[segment])
    ]
    assert sorted(contained) == sorted((rank[row], column) for row, column in pairs)
    assert round(segments.fit_probability(np.arange(6), np.arange(4)) * 24) == len(pairs)
