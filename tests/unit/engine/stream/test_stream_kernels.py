"""The native kernels equal their Python twins, choice by choice, and come back from snapshots unchanged."""

import itertools
import random

import numpy as np
import pytest
from stream_twin import ARC, DelayFreeTwin, Keyed, SealedTwin, chacha20, derive, keyed_memo, siphash

from reticent._core import stream
from reticent.engine.classes import design
from reticent.engine.stream.pools import arcs

KEY = bytes(range(32))


def test_the_twin_of_chacha20_is_chacha20():
    block = chacha20(bytes(32), 0, 0)
    assert block[:4] == [0xADE0B876, 0x903DF1A0, 0xE56A5D40, 0x28BD8653]


def test_the_twin_of_siphash_is_siphash():
    assert siphash(bytes(range(32)), bytes(range(15))) == 0xA129CA6149BE45E5


def tuples(seed, n, domain, people):
    rng = random.Random(seed)
    persons = [rng.randrange(people) for _ in range(n)]
    return [(i, p, p, rng.randrange(domain) if rng.random() < 0.5 else p % domain) for i, p in enumerate(persons)]


def arrays(rows):
    seqs, qis, persons, codes = zip(*rows, strict=True)
    wide = [np.array(column, dtype=np.uint64) for column in (seqs, qis, persons)]
    return *wide, np.array(codes, dtype=np.int32)


def read(placed):
    """Groups in the order of opening, as the twins number them, and the candidates by group."""
    opened, at, offsets, codes, counts = placed.opened, placed.at, placed.offsets, placed.codes, placed.counts
    number = {int(g): i for i, g in enumerate(opened)}
    assert len(number) == len(opened), "a group id came twice"
    listed = [
        [(int(c), int(n)) for c, n in zip(codes[a:b], counts[a:b], strict=True)] for a, b in itertools.pairwise(offsets)
    ]
    assert list(at) == sorted(at)
    return [number[int(g)] for g in placed.groups], listed


def twin_run(twin, rows):
    groups, listed = [], []
    for row in rows:
        group, cells = twin.push(*row)
        groups.append(group)
        if cells is not None:
            listed.append(cells)
    return groups, listed


def delay_free(pool, weights, l, **more):
    settings = {"retire_after": 0, "literal": 0} | more
    domain = len(weights)
    rank = np.arange(domain, dtype=np.uint32)
    weights = np.array(weights, dtype=np.uint64)
    return stream.DelayFree(key=KEY, shard=0, l=l, pool=pool, weights=weights, rank=rank, **settings)


@pytest.mark.parametrize("people", [5, 400])
@pytest.mark.parametrize(
    ("pool", "literal", "retire"), [("uniform", 0, 0), ("empirical", 0, 40), ("matched", 0, 30), ("uniform", 500, 0)]
)
def test_delay_free_equals_its_twin(pool, literal, retire, people):
    counts, l = [9, 7, 5, 4, 3, 1, 1, 0], 3
    weights = arcs([max(1, c) for c in counts], l).tolist() if pool == "matched" else counts
    rows = tuples(people, 300, len(counts), people)
    core = delay_free(pool, weights, l, retire_after=retire, literal=literal)
    seqs, qis, _, codes = arrays(rows)
    twin = DelayFreeTwin(Keyed(KEY), Keyed(derive(KEY, 2)), l, pool, weights, retire, literal)
    expected = twin_run(twin, [(s, q, c) for s, q, _, c in rows])
    assert read(core.push(seqs, qis, codes)) == expected


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("people", [6, 400])
def test_sealed_equals_its_twin(copies, people):
    counts = [9, 8, 6, 5, 4, 3, 2, 1]
    classes = design(dict(enumerate(counts)), 3, copies=copies)
    rows_of = [list(entry.values) for entry in classes]
    weights = [int(entry.weight * sum(counts)) for entry in classes]
    core = sealed(rows_of, weights, len(counts), retire_after=50)
    rows = tuples(people, 300, len(counts), people)
    twin = SealedTwin(Keyed(KEY), rows_of, weights, keyed_memo(KEY), retire_after=50)
    assert read(core.push(*arrays(rows))) == twin_run(twin, rows)


def sealed(classes, weights, domain, *, retire_after=0, provision=None, key=KEY):
    core = stream.Sealed(key=key, shard=0, width=len(classes[0]), retire_after=retire_after, provision=provision)
    begin(core, classes, weights, domain)
    return core


def begin(core, classes, weights, domain):
    rows = np.array(classes, dtype=np.int32)
    core.begin(rows, np.array(weights, dtype=np.uint64), domain=domain, other=None, marks=1000)


def engines():
    classes = design(dict(enumerate([9, 8, 6, 5, 4, 3, 2, 1])), 3)
    rows = [list(entry.values) for entry in classes]
    weights = [int(entry.weight * 38) for entry in classes]
    yield lambda: sealed(rows, weights, 8, retire_after=60, provision=1.0), arrays
    yield lambda: delay_free("matched", arcs(range(1, 9), 3), 3, retire_after=60), lambda r: _three(arrays(r))


def _three(columns):
    seqs, qis, _, codes = columns
    return seqs, qis, codes


@pytest.mark.parametrize("which", [0, 1])
def test_cutting_and_restarting_change_nothing(which):
    build, shape = list(engines())[which]
    rows = tuples(3, 400, 8, 50)
    whole, parts = build(), build()
    expected = whole.push(*shape(rows))
    groups, opened = [], []
    for start in range(0, 400, 37):
        again = build()
        again.restore(parts.snapshot())
        parts = again
        placed = parts.push(*shape(rows[start : start + 37]))
        groups += placed.groups.tolist()
        opened += placed.opened.tolist()
    assert groups == expected.groups.tolist()
    assert opened == expected.opened.tolist()
    assert parts.snapshot() == whole.snapshot()


@pytest.mark.parametrize("which", [0, 1])
def test_a_damaged_snapshot_is_refused_or_read_but_never_crashes(which):
    build, shape = list(engines())[which]
    core = build()
    core.push(*shape(tuples(3, 100, 8, 50)))
    state = core.snapshot()
    rng = random.Random(5)
    for _ in range(300):
        at = rng.randrange(len(state))
        bad = state[:at] + bytes([rng.randrange(256)]) + state[at + 1 :]
        for data in (bad, state[:at]):
            try:
                build().restore(data)
            except ValueError as error:
                assert str(error)  # noqa: PT017
    with pytest.raises(ValueError, match="snapshot"):
        build().restore(state + b"x")


def test_a_returning_pair_keeps_its_class_in_later_epochs():
    """Two classes for one value would be intersected."""
    first = [[0, 1], [0, 2], [1, 2]]
    core = sealed(first, [1, 1, 1], 6)
    rows = [(i, i, i, i % 3) for i in range(60)]
    _, before = follow(core, rows, {})
    begin(core, [[0, 3], [1, 4], [2, 5]], [2, 2, 2], 6)
    again = [(100 + i, 1000 + i, i, i % 3) for i in range(60)]
    fresh = [(200 + i, 2000 + i, 5000 + i, i % 3) for i in range(60)]
    known, offered = follow(core, again, {})
    for person, group in enumerate(known):
        options = offered.get(group) or candidates_of(core, group, before)
        assert options in [[0, 1], [0, 2], [1, 2]], person
    new, offered = follow(core, fresh, offered)
    assert all(max(offered[group]) >= 3 for group in new)


def follow(core, rows, offered):
    placed = core.push(*arrays(rows))
    for i, group in enumerate(placed.opened.tolist()):
        offered[group] = placed.codes[placed.offsets[i] : placed.offsets[i + 1]].tolist()
    return placed.groups.tolist(), offered


def candidates_of(core, group, before):
    return before[group]


def test_arcs_are_inclusion_probabilities():
    found = arcs([50, 30, 10, 5, 3, 2], 3)
    assert int(found.sum()) == 3 * ARC
    assert found.max() == ARC
    assert found[0] == found[1] == ARC


def test_matched_draws_every_value_with_its_probability():
    counts, l, n = [6, 5, 4, 3, 2], 2, 20_000
    weights = arcs(counts, l)
    core = delay_free("matched", weights, l)
    rng = np.random.default_rng(4)
    own = rng.choice(5, n, p=np.array(counts) / 20).astype(np.int32)
    # A fresh quasi-identifier each, and every group retired at once: each tuple opens a group.
    core = delay_free("matched", weights, l, retire_after=1)
    rows = np.arange(0, 3 * n, 3, dtype=np.uint64)
    placed = core.push(rows, rows, own)
    assert len(placed.opened) == n
    share = np.bincount(placed.codes, minlength=5) / n
    assert np.abs(share - np.array(counts) / 20 * l).max() < 0.02
