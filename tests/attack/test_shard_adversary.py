"""A reader of two shards at once, who knows the algorithm, the design, who is where and when: exact, by enumeration.

Persons come back, and move from one shard to the other as they do when shards are added.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from stream_model import SealedModel, transcripts, worst_posterior

from reticent._core import stream
from reticent.engine.classes import design


@dataclass(frozen=True)
class Shards:
    """Several sealed shards under one key: groups apart, the class of a (person, value) pair the same everywhere."""

    inner: SealedModel
    route: tuple[int, ...]
    """The shard of every tuple."""
    one_key: bool = True

    @property
    def start(self):
        return ((), ()), ((), ()), 0

    def outcomes(self, hidden, person, qi, value, *, returns=True):
        groups, memos, at = hidden
        here = self.route[at]
        memo = 0 if self.one_key else here
        for event, (grown, known), chance in self.inner.outcomes(
            (groups[here], memos[memo]), person, qi, value, returns=returns
        ):
            after = tuple(grown if i == here else part for i, part in enumerate(groups))
            kept = tuple(known if i == memo else part for i, part in enumerate(memos))
            yield (here, *event), (after, kept, at + 1), chance


def sharded(counts, l, route, **more):
    classes = design(dict(enumerate(counts)), l)
    model = SealedModel(tuple(c.values for c in classes), tuple(float(c.weight) for c in classes))
    return Shards(model, route, **more)


# Counts of the prior, l, who sends each tuple, and to which shard.
CASES = [
    ((1, 1, 1), 2, (0, 1, 2, 3, 4), (0, 1, 0, 1, 0)),
    ((2, 3, 1), 2, (0, 1, 2, 3), (0, 1, 1, 0)),
    ((1, 1, 1), 2, (0, 1, 0, 2, 0), (0, 0, 1, 1, 1)),
    ((2, 3, 1), 2, (0, 1, 0, 1), (0, 0, 1, 1)),
    ((3, 2, 2, 1), 2, (0, 1, 0, 2), (0, 1, 1, 0)),
    ((3, 3, 2, 2), 3, (0, 1, 0, 1), (0, 1, 1, 0)),
]


@pytest.mark.parametrize(("counts", "l", "persons", "route"), CASES)
def test_two_shards_keep_every_posterior_at_one_in_l(counts, l, persons, route):
    prior = [count / sum(counts) for count in counts]
    assert worst_posterior(sharded(counts, l, route), prior, persons) <= 1 / l + 1e-9


def test_a_key_per_shard_would_give_a_moved_person_away():
    """The planted bug: each shard draws classes of its own, so a person who moves is intersected."""
    apart = sharded((1, 1, 1), 2, (0, 1), one_key=False)
    assert worst_posterior(apart, [1 / 3] * 3, (0, 0)) == pytest.approx(1)


# The model is the core's own process. Person 0 moves from shard 0 to shard 1.
STREAM = [(0, 0), (1, 1), (0, 0), (2, 0), (1, 1)]
ROUTE = (0, 0, 1, 1, 0)
RUNS = 6_000


def core_transcript(key, rows, weights):
    cores = []
    for shard in (0, 1):
        core = stream.Sealed(key=key, shard=shard, width=2, retire_after=0, provision=None)
        core.begin(rows, weights, domain=3, other=None, marks=64)
        cores.append(core)
    events, numbers = [], ({}, {})
    for at, ((person, value), shard) in enumerate(zip(STREAM, ROUTE, strict=True)):
        who = np.array([person], dtype=np.uint64)
        placed = cores[shard].push(np.array([at], dtype=np.uint64), who, who, np.array([value], dtype=np.int32))
        groups, opened, listed = placed.groups, placed.opened, placed.codes
        for group in opened.tolist():
            numbers[shard][group] = len(numbers[shard])
        events.append((shard, numbers[shard][int(groups[0])], tuple(listed.tolist()) if len(opened) else None))
    return tuple(events)


def test_two_cores_run_the_model():
    classes = design({0: 2, 1: 2, 2: 1}, 2)
    rows = np.array([c.values for c in classes], dtype=np.int32)
    weights = np.array([int(c.weight * 5) for c in classes], dtype=np.uint64)
    found = Counter(core_transcript(run.to_bytes(32, "little"), rows, weights) for run in range(RUNS))
    exact = transcripts(sharded((2, 2, 1), 2, ROUTE), STREAM)
    assert set(found) <= set(exact)
    for events, chance in exact.items():
        spread = 5 * (float(chance) * (1 - float(chance)) / RUNS) ** 0.5 + 1e-9
        assert abs(found[events] / RUNS - float(chance)) <= spread, (events, float(chance))
