"""`value_order: hierarchy`: every first set contains every node of the value hierarchy with its prior's share, rounded down or up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reticent._core import veil

SEED = bytes(range(32))


@st.composite
def trees(draw):
    """Levels from the nearest parents to the root, each node under one node of the next."""
    size = draw(st.integers(2, 30))
    level = list(range(size))
    levels = []
    for _ in range(draw(st.integers(1, 3))):
        nodes = max(level) + 1
        above = draw(st.lists(st.integers(0, max(0, nodes // 2)), min_size=nodes, max_size=nodes))
        level = [above[node] for node in level]
        levels.append(level)
    return levels


@st.composite
def records(draw):
    levels = draw(trees())
    size, l = len(levels[0]), draw(st.integers(2, 8))
    counts = draw(st.lists(st.integers(0, 30), min_size=size, max_size=size).filter(any))
    people = draw(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(-1, size - 1)), min_size=1, max_size=30))
    return levels, l, counts, people


def first_sets(l, counts, people, permutations):
    units = veil.segments_of_counts(np.array([counts], np.uint64), l=l)
    mechanism = veil.Veil(key=SEED, l=l, segments=units, permutations=permutations)
    persons, values = zip(*people, strict=True)
    strata = np.zeros(len(people), np.uint32)
    return units[0], mechanism.candidates(np.array(persons, np.uint64), strata, np.array(values, np.int32))


def worst_gap(levels, units, sets):
    """Largest distance of a node's copies from l times its prior, over all nodes and sets, in units of a slot."""
    gaps = [0]
    for level in np.array(levels):
        for node in np.unique(level):
            expected = int(units[level == node].sum())
            copies = (level[sets] == node).sum(axis=1)
            gaps += [abs(int(count) * veil.SLOT_LENGTH - expected) for count in copies]
    return max(gaps)


@given(records())
def test_every_node_has_its_share_in_every_set(case):
    """Copies are the floor or the ceiling of l p(node): the distance is strictly below one slot, the share's below 1/l."""
    levels, l, counts, people = case
    permutations = veil.hierarchy_permutations(np.array(levels, np.uint32), count=8, seed=SEED)
    units, sets = first_sets(l, counts, people, permutations)
    assert worst_gap(levels, units, sets) < veil.SLOT_LENGTH


def test_random_value_orders_do_not_keep_shares_of_nodes():
    """The same check fails for the other value order, so it can fail."""
    levels = [[v // 4 for v in range(16)]]
    people = [(person, person % 16) for person in range(200)]
    units, sets = first_sets(4, [1] * 16, people, veil.random_permutations(16, count=8, seed=SEED))
    assert worst_gap(levels, units, sets) >= 2 * veil.SLOT_LENGTH


def test_children_come_in_every_order():
    """Three nodes of three values: each value is first about equally often, so no value is favoured by its place."""
    levels = np.array([[v // 3 for v in range(9)]], np.uint32)
    permutations = veil.hierarchy_permutations(levels, count=9000, seed=SEED)
    firsts = np.bincount(permutations[:, 0], minlength=9)
    assert abs(firsts - 1000).max() < 150
