"""Random series under one-way updates: every release is m-unique and legal by the verifier's own matching, one to one."""

import os

import numpy as np
import pytest
from scipy import sparse

from reticent.engine.series.history import History
from reticent.engine.series.m_distinct import FirstGroupRules, form_groups
from reticent.engine.series.update_graph import People
from reticent.policy.updates import Updates
from reticent.verify.series import can_match

SERIES = int(os.environ.get("RETICENT_SERIES", "60"))
"""How many; a thousand take half a minute."""


def one_way(rng, size):
    """A random transitive relation: every value may stay, and become some of those after it."""
    reach = np.triu(rng.random((size, size)) < rng.choice([0.1, 0.25, 0.4]), 1) | np.eye(size, dtype=bool)
    for _ in range(4):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    return reach


def play(seed):
    """Publishes a series; yields what each person's group showed before and shows now, and every group."""
    rng = np.random.default_rng(seed)
    size, m, persons = int(rng.integers(6, 13)), int(rng.integers(2, 5)), int(rng.integers(8, 60))
    reach = one_way(rng, size)
    updates = Updates(tuple(map(str, range(size))), sparse.csr_array(reach / reach.sum(axis=1, keepdims=True)))
    sets = [frozenset(np.flatnonzero(row).tolist()) for row in reach]
    value, history = rng.integers(0, size, persons), History()
    where = rng.random((persons, 2)).astype(np.float32)
    for number in range(4):
        here = np.flatnonzero(rng.random(persons) < 0.7)
        value = np.array([rng.choice(sorted(sets[v])) for v in value])
        people = People(
            (here + 1).astype(np.uint64), np.zeros(len(here), dtype=np.uint64), value[here].astype(np.int32)
        )
        last = history.last(people.hashes)
        order = FirstGroupRules(m, np.arange(size, dtype=np.int32), int(seed * 10 + number).to_bytes(32, "little"))
        release = form_groups(history, updates, people, where[here], order)
        yield sets, m, people, history, last, release
        rows, group, shown = release.published_records()
        history = history.extend(
            people.hashes[rows], people.traits[rows], group, shown, (release.offsets, release.value)
        )


@pytest.mark.parametrize("first", range(0, SERIES, 20))
def test_random_series_are_m_unique_and_legal(first):
    for seed in range(first, min(first + 20, SERIES)):
        for sets, m, people, history, last, release in play(seed):
            groups = np.split(release.value, release.offsets[1:-1])
            assert all(len(shown) == len(set(shown.tolist())) == m for shown in groups)
            rows, group, value = release.published_records()
            assert (people.values[rows] == value).all()
            assert sorted([*rows.tolist(), *np.flatnonzero(release.withheld).tolist()]) == list(
                range(len(people.values))
            )
            for row, now in zip(rows[last[rows] >= 0].tolist(), group[last[rows] >= 0].tolist(), strict=True):
                was = history.group[last[row]]
                before = history.values[history.offsets[was] : history.offsets[was + 1]]
                assert can_match([sets[v] for v in before.tolist()], groups[now].tolist())


def test_intersections_save_counterfeits():
    """The same series with buckets by signature alone would need more: two persons of different signatures share a group."""
    shared = 0
    for seed in range(40):
        for *_, history, last, release in play(seed):
            rows, group, _ = release.published_records()
            old = last[rows] >= 0
            kinds = {}
            for row, now in zip(rows[old].tolist(), group[old].tolist(), strict=True):
                was = history.group[last[row]]
                shown = tuple(sorted(history.values[history.offsets[was] : history.offsets[was + 1]].tolist()))
                kinds.setdefault(now, set()).add(shown)
            shared += sum(len(kind) > 1 for kind in kinds.values())
    assert shared > 50
