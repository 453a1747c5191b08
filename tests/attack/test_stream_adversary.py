"""An attacker who knows the algorithm, the design, all quasi-identifiers and the order: exact, by enumeration.

The published method of delay-free streams does not hold against this attacker; the model that shows it is the core's own process.
"""

from collections import Counter

import numpy as np
import pytest
from stream_model import DelayFreeModel, transcripts, worst_posterior

from reticent._core import stream

# Counts of the values, l, and who sends each tuple: alone, or coming back.
CASES = [
    ((1, 1, 1), 2, (0, 1, 2, 3, 4, 5)),
    ((2, 3, 1), 2, (0, 1, 2, 3, 4)),
    ((1, 1, 1), 2, (0, 1, 0, 2, 0, 1)),
    ((2, 3, 1), 2, (0, 1, 0, 0, 1)),
    ((1, 1, 1), 3, (0, 1, 0, 2, 3, 4)),
    ((3, 2, 2, 1), 2, (0, 1, 2, 0, 1)),
    ((3, 2, 2, 1), 2, (0, 1, 2, 3)),
    ((3, 3, 2, 2), 3, (0, 1, 2, 3, 4)),
    ((3, 3, 2, 2), 3, (0, 1, 0, 1, 2)),
    ((4, 3, 2, 2, 1), 2, (0, 1, 2, 0)),
    ((3, 3, 3, 2, 1), 3, (0, 1, 2, 0)),
    ((2, 2, 2, 2, 1), 3, (0, 1, 2, 3)),
]


def shares(counts):
    return [count / sum(counts) for count in counts]


@pytest.mark.parametrize(("counts", "l", "persons"), [case for case in CASES if case[1] < len(case[0])])
def test_the_same_attacker_breaks_the_published_method(counts, l, persons):
    model = DelayFreeModel(len(counts), l)
    assert worst_posterior(model, shares(counts), persons) > 1.1 / l


def test_the_papers_own_example_ends_in_certainty():
    """Three tuples, l = 2: t1 opens {a, b}, t2 opens {a, c}, t3 opens {b, c}; then t2 = c."""
    assert worst_posterior(DelayFreeModel(3, 2), [1 / 3] * 3, (0, 1, 2)) == pytest.approx(1)


# The model above is the core's own process: its transcripts have the model's exact distribution.
STREAM = [(0, 0), (1, 1), (0, 0), (2, 2), (3, 0), (4, 1)]
RUNS = 10_000


def core_transcripts(build):
    """Many runs of the core at once: each run takes its own key."""
    found = Counter()
    ids = np.array([person for person, _ in STREAM], dtype=np.uint64)
    codes = np.array([value for _, value in STREAM], dtype=np.int32)
    seqs = np.arange(len(STREAM), dtype=np.uint64)
    for run in range(RUNS):
        placed = build(run.to_bytes(32, "little")).push(seqs, ids, codes)
        groups, opened, at, offsets, listed = placed.groups, placed.opened, placed.at, placed.offsets, placed.codes
        number = {g: i for i, g in enumerate(opened.tolist())}
        shown = {int(a): tuple(listed[offsets[i] : offsets[i + 1]].tolist()) for i, a in enumerate(at)}
        found[tuple((number[g], shown.get(i)) for i, g in enumerate(groups.tolist()))] += 1
    return found


def assert_same(found, exact):
    assert set(found) <= set(exact)
    for events, chance in exact.items():
        spread = 5 * (float(chance) * (1 - float(chance)) / RUNS) ** 0.5 + 1e-9
        assert abs(found[events] / RUNS - float(chance)) <= spread, (events, float(chance))


def test_the_core_runs_the_published_model():
    weights, rank = np.ones(3, dtype=np.uint64), np.arange(3, dtype=np.uint32)

    def build(key):
        return stream.DelayFree(
            key=key, shard=0, l=2, pool="uniform", weights=weights, rank=rank, retire_after=0, literal=0
        )

    assert_same(core_transcripts(build), transcripts(DelayFreeModel(3, 2), STREAM))
