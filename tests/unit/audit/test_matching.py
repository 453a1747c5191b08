"""Matchings and relations without a library: against exhaustive search and plain sets."""

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reticent.audit.matching import matching
from reticent.audit.relation import Relation


@given(st.lists(st.sets(st.integers(0, 4), max_size=5), max_size=5))
def test_a_matching_is_as_large_as_can_be(wishes):
    heads = {head: sorted(values) for head, values in enumerate(wishes)}
    best = max(
        sum(value in wishes[head] for head, value in enumerate(order[: len(wishes)]))
        for order in permutations(range(5))
    )
    assert matching(heads) == best


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 3))))
def test_a_relation_holds_its_pairs_and_no_others(pairs):
    relation = Relation.of(np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2), 6, 4)
    wanted = np.array([[(row, column) in pairs for column in range(4)] for row in range(6)])
    rows, columns = (part.reshape(-1) for part in np.indices((6, 4)))
    assert relation.holds(rows, columns).reshape(6, 4).tolist() == wanted.tolist()
    assert relation.block(np.array([3, 0, 5])).tolist() == wanted[[3, 0, 5]].tolist()
