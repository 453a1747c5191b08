"""Join-or-open inference: exact on short transcripts, sampled on long ones; it works on delay-free streams."""

from __future__ import annotations

import audit_cases as cases
import numpy as np
import pytest
from bench.join_or_open import Effort, infer, join_or_open
from bench.join_or_open.rules import rules_from_prior

from reticent.audit.attack import Evidence
from reticent.audit.attack.averaging import averaging
from reticent.audit.attack.transcript import Transcript
from reticent.verify.published import read_release, text_table

FLAT = np.full(30, 1 / 30)
QUICK = Effort(tuples=300, particles=200, chains=40, sweeps=16, burn_in=4)


def seen(group, slots, quasi=None):
    group = np.array(group)
    opens = np.zeros(len(group), dtype=bool)
    opens[np.unique(group, return_index=True)[1]] = True
    width = max(len(row) for row in slots)
    table = np.full((len(slots), width), -1)
    for row, codes in enumerate(slots):
        table[row, : len(codes)] = codes
    order = np.arange(len(group))
    return Transcript(group, opens, order, order if quasi is None else np.array(quasi), table, ("a", "b", "c", "d"))


def posterior(transcript, effort=Effort()):  # noqa: B008
    known = rules_from_prior(transcript.values, None, 2, "uniform")
    return infer(transcript, known, np.random.default_rng(5), effort)


def test_the_worked_example_two_groups():
    """t1 opens {a,b}, t2 opens {a,c}: worlds aa, ac, bc without aa's contradiction leave P(t2 = c) = 2/3."""
    found = posterior(seen([0, 1], [[0, 1], [0, 2]]))
    assert found.exact
    assert found.guess[1].tolist() == pytest.approx([1 / 3, 2 / 3])


def test_the_worked_example_becomes_certain():
    found = posterior(seen([0, 1, 2], [[0, 1], [0, 2], [1, 2]]))
    assert found.guess[1].tolist() == pytest.approx([0, 1])


def test_a_repeated_quasi_identifier_explains_the_opening():
    """The second tuple may not join the group that holds its own quasi-identifier, so its opening discloses nothing."""
    found = posterior(seen([0, 1], [[0, 1], [0, 2]], quasi=[7, 7]))
    assert found.guess[1].tolist() == pytest.approx([1 / 2, 1 / 2])


@pytest.mark.parametrize("groups", [[0, 1, 0, 2, 1, 3], [0, 0, 1, 2, 1, 2], [0, 1, 2, 3, 1, 0]])
def test_sampling_agrees_with_enumeration(groups):
    slots = [[0, 1, 2], [0, 1, 3], [1, 2, 3], [0, 2, 3]][: max(groups) + 1]
    short = seen(groups, slots, quasi=[0, 1, 2, 0, 3, 4])
    exact = posterior(short)
    assert exact.exact
    sampled = posterior(short, Effort(worlds=-1, particles=400, chains=200, sweeps=120, burn_in=20))
    assert not sampled.exact
    assert np.abs((sampled.guess + sampled.evaluation) / 2 - exact.guess).max() < 0.05


def evidence(run, seed=1):
    releases, policy, table = run
    return Evidence(
        tuple(read_release(release, "") for release in releases),
        policy,
        text_table(table),
        rng=np.random.default_rng(seed),
        key=b"test",
    )


def test_faithful_delay_free_is_broken(tmp_path):
    """The stated size: 1,000 tuples, 30 values, l = 10. Chance is 10%."""
    sloping = 1 / (np.arange(30) + 8.0)
    sloping /= sloping.sum()
    effort = Effort(particles=300, chains=40, sweeps=16, burn_in=4)
    run = cases.stream(tmp_path, method="delay-free", n=1000, l=10, shares=sloping, seed=0, pool="uniform")
    broken = join_or_open(evidence(run), effort)
    assert broken.counted
    assert broken.accuracy >= 0.2


SLIGHT = Effort(particles=24, chains=8, sweeps=4, burn_in=1)


def test_the_true_values_only_score_the_guesses(tmp_path):
    """Other true values, the same transcript: the attacker believes and guesses the same."""
    releases, policy, table = cases.stream(tmp_path, method="delay-free", n=120, l=4, shares=FLAT[:12] * 2.5, seed=3)
    shown = []
    for turn in range(6):
        other = table.set_column(2, "ill", table["ill"].take(np.roll(np.arange(120), turn)))
        outcome = join_or_open(evidence((releases, policy, other)), SLIGHT)
        shown.append((outcome.figures["expected_accuracy"], outcome.bins, outcome.worst))
    assert shown == [shown[0]] * 6


def test_a_stream_that_claims_one_in_l_against_this_attacker_is_refuted(tmp_path):
    sloping = 1 / (np.arange(30) + 3.0)
    releases, policy, table = cases.stream(
        tmp_path, method="delay-free", n=600, l=10, shares=sloping / sloping.sum(), seed=4, pool="uniform"
    )
    renamed = [read_release(release, "") for release in releases]
    for release in renamed:
        object.__setattr__(release, "claims", {"posterior": 0.1})
    outcome = join_or_open(Evidence(tuple(renamed), policy, text_table(table), rng=np.random.default_rng(1)), QUICK)
    assert outcome.refuted


def test_averaging_finds_returning_patients(tmp_path):
    run = cases.stream(tmp_path, method="delay-free", n=600, l=5, shares=FLAT, seed=2, persons=100)
    outcome = averaging(evidence(run))
    assert outcome.counted
    assert outcome.accuracy > 0.8
