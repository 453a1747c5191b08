"""Subtract one publication from the next: it works on the methods of the paper. What the veil does: test_veil_evolving.py."""

from dataclasses import replace

import evolving_cases as cases
import numpy as np
import pyarrow as pa
import pytest

from reticent.errors import GuaranteeError
from reticent.release import Ledger
from reticent.verify import verify
from reticent.verify.published import read_release
from reticent.verify.sequence import CandidateElimination, Publication, unique_keys


def attack(run):
    """Candidates per person after a run; linked by the quasi-identifiers alone."""
    found, releases = CandidateElimination(), []
    for release, engine, values in run:  # noqa: B007 - the last one is returned
        shown = read_release(release, "")
        qit, st = shown.tables["qit"], shown.tables["st"]
        found.add(Publication.from_tables(qit, st, unique_keys(qit, engine.policy)))
        releases.append(release)
    return found, releases, engine, values


def test_enc_gives_single_persons_away():
    run = cases.churn("enc", n=2000, l=10, domain=40, publications=5, seed=12)
    found, releases, engine, values = attack(run)
    counts = np.array(list(found.candidates().values()))
    assert (counts == 1).mean() >= 0.25
    assert (counts < 10).mean() >= 0.8
    # The attack is sound: the true value is always among those that remain.
    right = [f"v{values[int(zip_code[1:])]:02d}" in candidates for (_, zip_code), candidates in found.values().items()]
    assert all(right)
    assert not verify(releases, engine.policy).holds
    assert verify(releases[:1], engine.policy).holds


@pytest.mark.parametrize("method", ["indexed", "encc", "eac", "red"])
def test_the_other_strategies_are_refuted_too(method):
    run = cases.churn(method, n=600, l=5, domain=20, publications=4, seed=13)
    found, releases, engine, _ = attack(run)
    assert min(found.candidates().values()) == 1
    assert not verify(releases, engine.policy).holds


def test_the_worked_example_one_insertion_discloses_its_value():
    engine = cases.build("enc", 3)
    engine.insert(cases.table(range(3), [0, 1, 2]))
    found = CandidateElimination()
    for step in range(2):
        if step:
            engine.insert(cases.table([3], [0]))
        (release,) = engine.cut(again=True)
        shown = read_release(release, "")
        found.add(
            Publication.from_tables(
                shown.tables["qit"], shown.tables["st"], unique_keys(shown.tables["qit"], engine.policy)
            )
        )
    assert found.values()["23", "z3"] == {"v00"}


@pytest.mark.parametrize("method", ["indexed", "enc", "encc", "eac", "red"])
def test_a_second_publication_must_be_asked_for(method):
    engine = cases.build(method, 2)
    engine.insert(cases.table(range(4), [0, 1, 0, 1]))
    (release,) = engine.cut()
    assert release.explain["label"] == "safe for one publication only"
    with pytest.raises(GuaranteeError, match="one publication only"):
        engine.cut()
    assert engine.cut(again=True)


def test_the_gate_links_persons_by_the_ledger_whose_quasi_identifiers_say_nothing():
    engine = cases.build("enc", 3)
    engine.insert(cases.table(range(3), [0, 1, 2], zips=[7, 7, 7]))
    releases, ledger = engine.cut(), Ledger()
    cases.enter(ledger, releases[0], engine.members())
    engine.insert(cases.table([3], [0], zips=[7]))
    releases += engine.cut(again=True)
    cases.enter(ledger, releases[1], engine.members())
    alike = [release_with(release, age=40) for release in releases]
    assert verify(alike, engine.policy).holds
    assert not verify(alike, engine.policy, ledger=ledger).holds


def release_with(release, age):
    qit = release.tables["qit"]
    return replace(release, tables=release.tables | {"qit": qit.set_column(1, "age", pa.array([age] * len(qit)))})


def test_the_attack_ignores_groups_with_spare_seats():
    st = pa.table({"group": ["1", "1"], "value": ["a", "b"], "count": ["1", "1"]})
    found = CandidateElimination()
    found.add(Publication.from_tables(pa.table({"group": ["1"]}), st, ["p"]))
    found.add(Publication.from_tables(pa.table({"group": ["1", "1"]}), st, ["p", "q"]))
    assert found.candidates() == {"p": 2, "q": 2}
