"""The native kernels equal their reference implementations in Python, choice by choice, and come back from snapshots unchanged."""

import itertools
import random

import numpy as np
import pytest
from stream_reference import ARC, DelayFreeReference, Keyed, chacha20, derive, siphash

from reticent._core import stream
from reticent.engine.stream.values import inclusion_probabilities

KEY = bytes(range(32))


def test_the_reference_of_chacha20_is_chacha20():
    block = chacha20(bytes(32), 0, 0)
    assert block[:4] == [0xADE0B876, 0x903DF1A0, 0xE56A5D40, 0x28BD8653]


def test_the_reference_of_siphash_is_siphash():
    assert siphash(bytes(range(32)), bytes(range(15))) == 0xA129CA6149BE45E5


def tuples(seed, n, domain, people):
    rng = random.Random(seed)
    persons = [rng.randrange(people) for _ in range(n)]
    return [(i, p, p, rng.randrange(domain) if rng.random() < 0.5 else p % domain) for i, p in enumerate(persons)]


def arrays(rows):
    seqs, quasi, persons, codes = zip(*rows, strict=True)
    wide = [np.array(column, dtype=np.uint64) for column in (seqs, quasi, persons)]
    return *wide, np.array(codes, dtype=np.int32)


def read(placed):
    """Groups in the order of opening, as the reference numbers them, and the candidates by group."""
    opened, at, offsets, codes, counts = placed.opened, placed.at, placed.offsets, placed.codes, placed.counts
    number = {int(g): i for i, g in enumerate(opened)}
    assert len(number) == len(opened), "a group id came twice"
    listed = [
        [(int(c), int(n)) for c, n in zip(codes[a:b], counts[a:b], strict=True)] for a, b in itertools.pairwise(offsets)
    ]
    assert list(at) == sorted(at)
    return [number[int(g)] for g in placed.groups], listed


def run_reference(reference, rows):
    groups, listed = [], []
    for row in rows:
        group, cells = reference.push(*row)
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
def test_delay_free_equals_the_reference_implementation(pool, literal, retire, people):
    counts, l = [9, 7, 5, 4, 3, 1, 1, 0], 3
    weights = inclusion_probabilities([max(1, c) for c in counts], l).tolist() if pool == "matched" else counts
    rows = tuples(people, 300, len(counts), people)
    core = delay_free(pool, weights, l, retire_after=retire, literal=literal)
    seqs, quasi, _, codes = arrays(rows)
    reference = DelayFreeReference(Keyed(KEY), Keyed(derive(KEY, 2)), l, pool, weights, retire, literal)
    expected = run_reference(reference, [(s, q, c) for s, q, _, c in rows])
    assert read(core.push(seqs, quasi, codes)) == expected


def build():
    return delay_free("matched", inclusion_probabilities(range(1, 9), 3), 3, retire_after=60)


def _three(rows):
    seqs, quasi, _, codes = arrays(rows)
    return seqs, quasi, codes


def test_cutting_and_restarting_change_nothing():
    rows = tuples(3, 400, 8, 50)
    whole, parts = build(), build()
    expected = whole.push(*_three(rows))
    groups, opened = [], []
    for start in range(0, 400, 37):
        again = build()
        again.restore(parts.snapshot())
        parts = again
        placed = parts.push(*_three(rows[start : start + 37]))
        groups += placed.groups.tolist()
        opened += placed.opened.tolist()
    assert groups == expected.groups.tolist()
    assert opened == expected.opened.tolist()
    assert parts.snapshot() == whole.snapshot()


def test_a_corrupt_snapshot_is_refused_or_read_but_never_crashes():
    core = build()
    core.push(*_three(tuples(3, 100, 8, 50)))
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


def test_arcs_are_inclusion_probabilities():
    found = inclusion_probabilities([50, 30, 10, 5, 3, 2], 3)
    assert int(found.sum()) == 3 * ARC
    assert found.max() == ARC
    assert found[0] == found[1] == ARC


def test_matched_draws_every_value_with_its_probability():
    counts, l, n = [6, 5, 4, 3, 2], 2, 20_000
    weights = inclusion_probabilities(counts, l)
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
