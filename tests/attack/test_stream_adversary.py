"""A reader who knows the algorithm, the design, all quasi-identifiers and the order: exact, by enumeration.

For `sealed` every posterior is at most 1/l; for the published method the same reader succeeds, so the test can fail.
"""

from collections import Counter

import numpy as np
import pytest
from stream_model import DelayFreeModel, SealedModel, transcripts, worst_posterior

from reticent._core import stream
from reticent.engine.classes import design

# Counts of the design prior, l, and who sends each tuple: alone, or coming back.
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


def sealed_model(counts, l, **more):
    classes = design(dict(enumerate(counts)), l)
    return SealedModel(tuple(c.values for c in classes), tuple(float(c.weight) for c in classes), **more)


def shares(counts):
    return [count / sum(counts) for count in counts]


@pytest.mark.parametrize(("counts", "l", "persons"), CASES)
def test_sealed_keeps_every_posterior_at_one_in_l(counts, l, persons):
    assert worst_posterior(sealed_model(counts, l), shares(counts), persons) <= 1 / l + 1e-9


@pytest.mark.parametrize(("counts", "l", "persons"), [case for case in CASES if case[1] < len(case[0])])
def test_the_same_reader_breaks_the_published_method(counts, l, persons):
    model = DelayFreeModel(len(counts), l)
    assert worst_posterior(model, shares(counts), persons) > 1.1 / l


def test_the_papers_own_example_ends_in_certainty():
    """Three tuples, l = 2: t1 opens {a, b}, t2 opens {a, c}, t3 opens {b, c}; then t2 = c."""
    assert worst_posterior(DelayFreeModel(3, 2), [1 / 3] * 3, (0, 1, 2)) == pytest.approx(1)


def test_without_the_memo_a_returning_person_is_lost():
    """The planted bug: a class drawn anew each time leaves one candidate after two visits."""
    forgetful = sealed_model((1, 1, 1), 2, memo=False)
    assert worst_posterior(forgetful, [1 / 3] * 3, (0, 0)) == pytest.approx(1)


def test_classes_that_do_not_fit_the_prior_are_noticed():
    """The planted bug: a design for another prior."""
    wrong = sealed_model((1, 1, 1), 2)
    assert worst_posterior(wrong, shares((4, 1, 1)), (0, 1)) > 0.51


def test_a_person_with_changing_values_is_the_stated_exception():
    """Values drawn anew for the same person: two classes that share s of l values give l / (l*l - s), as documented."""
    found = worst_posterior(sealed_model((1, 1, 1), 2), [1 / 3] * 3, (0, 0), constant=False)
    assert found == pytest.approx(2 / (2 * 2 - 1))


# The models above are the core's own process: its transcripts have the models' exact distribution.
STREAM = [(0, 0), (1, 1), (0, 0), (2, 2), (3, 0), (4, 1)]
RUNS = 10_000


def core_transcripts(build, with_persons):
    """Many runs of the core at once: each run takes its own key."""
    found = Counter()
    ids = np.array([person for person, _ in STREAM], dtype=np.uint64)
    codes = np.array([value for _, value in STREAM], dtype=np.int32)
    seqs = np.arange(len(STREAM), dtype=np.uint64)
    for run in range(RUNS):
        columns = (seqs, ids, ids, codes) if with_persons else (seqs, ids, codes)
        placed = build(run.to_bytes(32, "little")).push(*columns)
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


def test_the_core_runs_the_sealed_model():
    classes = design({0: 2, 1: 2, 2: 1}, 2)
    rows = np.array([c.values for c in classes], dtype=np.int32)
    weights = np.array([int(c.weight * 5) for c in classes], dtype=np.uint64)

    def build(key):
        core = stream.Sealed(key=key, shard=0, width=2, retire_after=0, provision=None)
        core.begin(rows, weights, domain=3, other=None, marks=64)
        return core

    exact = transcripts(sealed_model((2, 2, 1), 2), STREAM)
    assert_same(core_transcripts(build, with_persons=True), exact)


def test_the_core_runs_the_published_model():
    weights, rank = np.ones(3, dtype=np.uint64), np.arange(3, dtype=np.uint32)

    def build(key):
        return stream.DelayFree(
            key=key, shard=0, l=2, pool="uniform", weights=weights, rank=rank, retire_after=0, literal=0
        )

    assert_same(core_transcripts(build, with_persons=False), transcripts(DelayFreeModel(3, 2), STREAM))
