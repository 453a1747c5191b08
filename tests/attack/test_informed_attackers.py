"""Attackers who know how values depend on published fields, compare publications, or notice who is missing.

They attack naive releases and the veil.
"""

import json

import naive
import numpy as np
import pyarrow as pa
import pytest

from reticent.api import anonymize
from reticent.audit.attack.definetti import definetti
from reticent.audit.attack.informed_attacker import informed_attacker
from reticent.audit.attack.joint import joint
from reticent.audit.attack.observations import observations_of
from reticent.audit.attack.presence import presence
from reticent.audit.attack.risk_bound import odds_ratio_bound
from reticent.policy import Policy
from reticent.verify.published import Published, read_release

L = 5


@pytest.fixture(scope="module")
def past():
    return naive.world(20_000, 1)


@pytest.fixture(scope="module")
def now():
    return naive.world(5000, 2)


@pytest.fixture(scope="module")
def rules(past, tmp_path_factory):
    return naive.policy(tmp_path_factory.mktemp("strata"), past, L)


@pytest.fixture(scope="module")
def plain(past, tmp_path_factory):
    """A prior that knows nothing of age and sex."""
    return naive.policy(tmp_path_factory.mktemp("plain"), past, L, by=False)


def groups(table, past, rules, kind):
    if kind == "naive":
        return naive.sealed(table, naive.counted(past), L)
    return anonymize(table, rules, method="anatomy", seed=1)


@pytest.mark.parametrize("kind", ["naive", "anatomy"])
def test_who_knows_medicine_reads_groups(kind, past, now, rules):
    outcome = informed_attacker(naive.evidence([groups(now, past, rules, kind)], rules, now))
    assert outcome.counted
    assert outcome.claim is None
    assert outcome.figures["ratio"] > 1.6
    assert outcome.figures["above_half"] > 0.02


def test_the_veil_leaves_her_what_she_knew(now, rules):
    outcome = informed_attacker(naive.evidence([naive.veiled(now, rules)], rules, now))
    assert outcome.figures["ratio"] < 1.15
    assert not outcome.refuted
    assert [part["knew"] for part in outcome.figures["strata"]] == sorted(p["knew"] for p in outcome.figures["strata"])


def test_a_prior_without_fields_holds_within_its_odds_ratio(now, plain):
    outcome = informed_attacker(naive.evidence([naive.veiled(now, plain)], plain, now))
    assert outcome.figures["ratio"] > 1.5
    assert outcome.accuracy <= outcome.claim
    assert not outcome.refuted


def quoting(release, right):
    document = release.metadata["veil"] | {"figures": {"l": L, "attacker": {"after": {"right": right}}}}
    object.__setattr__(release, "metadata", {"veil": document})
    return release


def test_a_release_that_quotes_less_than_she_reaches_is_flagged(now, plain):
    outcome = informed_attacker(naive.evidence([quoting(naive.veiled(now, plain), 0.21)], plain, now))
    assert outcome.claim == 0.21
    assert outcome.refuted
    assert "The release states 21.0%" in outcome.notes[-1]


def test_her_model_may_come_from_outside(past, now, rules, plain):
    external = past.slice(0, 5000).cast(past.schema.set(3, pa.field("age", pa.string())))
    outcome = informed_attacker(naive.evidence([naive.veiled(now, plain)], plain, now, external=external))
    assert "external table" in outcome.notes[0]
    assert outcome.figures["ratio"] > 1.5


def test_nobody_is_attacked_with_her_own_value(now, rules, plain):
    """Values that depend on nothing: an attacker who had learnt from the attacked records would seem to know something."""
    rng = np.random.default_rng(9)
    lot = naive.with_value(now, range(now.num_rows), "v00")
    drawn = pa.array([f"v{v:02}" for v in rng.integers(0, naive.VALUES, now.num_rows)])
    lot = lot.set_column(lot.column_names.index("ill"), "ill", drawn)
    outcome = informed_attacker(naive.evidence([groups(lot, lot, rules, "anatomy")], rules, lot))
    assert outcome.figures["before"] < 0.06
    assert abs(outcome.accuracy - 1 / L) < 0.03


def test_generalised_classes_are_read_with_what_is_known_of_the_person(past, now):
    columns = {"id": "identifier", "ticket": "identifier", "sex": "quasi", "ill": "sensitive"}
    columns |= {"age": {"role": "quasi", "hierarchy": {"intervals": [30, 90]}}}
    policy = Policy.from_dict({"version": 1, "person": "id", "columns": columns, "privacy": {"k": 1000}})
    outcome = informed_attacker(naive.evidence([anonymize(now, policy, method="optimal", seed=1)], policy, now))
    assert outcome.figures["after"] >= outcome.figures["before"] - 0.01
    assert outcome.figures["strata"][-1]["after"] > 1.3 * outcome.figures["chance"]


def test_the_release_alone_teaches_who_has_what(past, now, rules, plain):
    broken = definetti(naive.evidence([groups(now, past, rules, "anatomy")], rules, now))
    assert broken.accuracy > 1.5 / L
    wrong = definetti(naive.evidence([naive.veiled(now, plain)], plain, now))
    assert wrong.accuracy > 1.4 / L  # a prior without fields can be improved by its attackers
    assert not wrong.refuted
    exact = definetti(naive.evidence([naive.veiled(now, rules)], rules, now))
    assert exact.figures["ratio"] < 1.1
    assert not exact.refuted


def test_two_anatomies_of_the_same_persons_leave_few_values(past, now, rules):
    first, second = (anonymize(now, rules, method="anatomy", seed=seed) for seed in (1, 2))
    outcome = joint(naive.evidence([first, second], rules, now))
    assert outcome.tried == now.num_rows
    assert outcome.accuracy > 2 / L


def test_two_publications_of_one_parameter_set_agree_and_two_parameter_sets_disclose(now, rules):
    first, again, other = (naive.veiled(now, rules, seed=seed) for seed in (3, 3, 4))
    same = joint(naive.evidence([first, again], rules, now))
    weight = same.claim
    assert abs(same.accuracy - weight) < 4 * (weight * (1 - weight) / same.tried) ** 0.5
    object.__setattr__(other, "metadata", {"veil": other.metadata["veil"] | {"parameters_digest": "another"}})
    different = joint(naive.evidence([first, other], rules, now))
    assert different.claim is None
    assert different.accuracy > 2 * weight
    assert "2 veil parameter sets" in different.notes[-1]


def test_absence_discloses_the_value_for_which_persons_are_withheld(past, now, rules):
    """A release that withholds everyone with an unknown value; the veil publishes them."""
    table = naive.with_value(now, range(0, now.num_rows, 20), "v99")
    shown = [at for at, value in enumerate(table["ill"].to_pylist()) if value != "v99"]
    outcome = presence(naive.evidence([anonymize(table.take(shown), rules, method="anatomy", seed=1)], rules, table))
    assert outcome.accuracy == 1
    assert outcome.figures["absent"] == len(range(0, now.num_rows, 20))
    assert presence(naive.evidence([naive.veiled(table, rules)], rules, table)) is None


def test_the_odds_ratio_moves_a_weight_as_stated():
    assert odds_ratio_bound(0.1, 1) == pytest.approx(0.1)
    assert odds_ratio_bound(0.1, 9) == pytest.approx(0.5)


def test_a_veiled_stream_is_read_from_its_lines_and_codebook(tmp_path, now, rules):
    release = naive.veiled(now, rules)
    rows = release.tables["data"].to_pylist()
    wire = tmp_path / "out.ndjson"
    lines = [
        {
            "type": "record",
            "seq": int(row["ticket"][1:]),
            "quasi": {"sex": row["sex"], "age": row["age"]},
            "plain": {"ticket": row["ticket"]},
            "stratum": row["stratum"],
            "event": row["event"],
            "candidates": [row[f"ill_{slot}"] for slot in range(1, L + 1)],
        }
        for row in rows
    ]
    wire.write_text("".join(json.dumps(line) + "\n" for line in lines))
    stream = Published("out", "stream", stream_file=wire, metadata=release.metadata)
    seen, table = observations_of(stream, rules), observations_of(read_release(release, ""), rules)
    assert (seen.candidates == table.candidates).all()
    assert (seen.strata == table.strata).all()
    assert seen.fields.column("age").equals(table.fields.column("age"))
    assert seen.position[0] == int(rows[0]["ticket"][1:])
