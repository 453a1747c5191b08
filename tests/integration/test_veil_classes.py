"""Equivalence classes under the veil: k persons share every published combination; the verifier compares a veil with its input."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.engine.table.veil import Veil
from reticent.engine.veil.batch_veiler import BatchVeiler
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.publication import table
from reticent.publication.gate import pass_gate
from reticent.verify import verify
from reticent.verify.original.persons import Input

ILLS = ["asthma", "croup", "flu", "gout", "hiv", "mumps", "ulcer"]
POLICY = """\
version: 1
person: {column: id, events: visit}
columns:
  id: identifier
  visit: identifier
  sex: quasi
  age: {role: quasi, hierarchy: {intervals: [10, 40]}}
  ill: sensitive
privacy: {k: 5, l: 3, suppression: 0.05}
prior: {file: prior.csv}
table: {method: veil}
series: {method: veil}
"""
PRIOR = "sex,value,count\n" + "".join(f"{sex},{ill},{n}\n" for sex in ("f", "m", "*") for n, ill in enumerate(ILLS, 30))
OMISSION = "the true value is among the candidates except at the stated omission rate"
ORIGIN = "every published record comes from the input"


@pytest.fixture
def policy(tmp_path):
    return load(tmp_path)


def load(folder, old="", new=""):
    (folder / "policy.yaml").write_text(POLICY.replace(old, new))
    (folder / "prior.csv").write_text(PRIOR)
    return Policy.load(folder / "policy.yaml")


def people(n=600, visits=1, seed=1, sexes="fm"):
    rng = np.random.default_rng(seed)
    sex, age, ill = rng.choice(list(sexes), n), rng.integers(0, 90, n), rng.choice(ILLS, n)
    who = np.repeat(np.arange(n), visits)
    return pa.table(
        {
            "id": [f"p{at}" for at in who],
            "visit": np.tile(np.arange(visits), n),
            "sex": sex[who],
            "age": age[who],
            "ill": ill[who],
        }
    )


def engine(policy, rows, seed=1):
    one = Veil(policy, rng=Rng.from_seed(seed))
    one.push(rows)
    (release,) = one.close()
    return release, one.original()


def classes(release, original):
    """Persons by all that is published of the fields."""
    data, ids = release.tables["data"], original.table["id"].to_pylist()
    heads = defaultdict(set)
    for at, cells in enumerate(zip(*(data[name].to_pylist() for name in ("sex", "age", "stratum")), strict=True)):
        heads[cells].add(ids[original.source_rows[at]])
    return heads


@pytest.mark.parametrize("visits", [1, 4])
def test_every_published_combination_holds_k_persons(policy, visits):
    release, original = engine(policy, people(visits=visits))
    sizes = [len(persons) for persons in classes(release, original).values()]
    assert min(sizes) >= 5
    assert len(sizes) > 40  # the finest that was asked for is kept where it is a class of k persons
    assert release.guarantee.claims == {"veil": 3, "k": {"persons": 5}}
    pass_gate(release, policy, "table", original=original)


def test_a_persons_set_does_not_depend_on_others_in_the_table(policy):
    whole = people()
    observations = []
    for rows in (whole, whole.slice(0, 120)):
        release, original = engine(policy, rows)
        data, ids = release.tables["data"], original.table["id"].to_pylist()
        sets = zip(data["stratum"].to_pylist(), *(data[f"ill_{slot}"].to_pylist() for slot in (1, 2, 3)), strict=True)
        observations.append({ids[original.source_rows[at]]: shown for at, shown in enumerate(sets)})
    assert all(observations[0][person] == shown for person, shown in observations[1].items())


def test_strata_with_too_few_persons_are_suppressed_and_counted(policy):
    rows = pa.concat_tables([people(200, sexes="f"), rename(people(4, sexes="m", seed=2))])
    release, original = engine(policy, rows)
    assert (release.records.published, release.records.suppressed) == (200, 4)
    pass_gate(release, policy, "table", original=original)
    with pytest.raises(GuaranteeError, match="stratum of the prior"):
        engine(policy, pa.concat_tables([people(40, sexes="f"), rename(people(4, sexes="m", seed=2))]))


def rename(rows):
    return rows.set_column(0, "id", pa.array([f"q{at}" for at in rows["id"].to_pylist()]))


def test_k_is_refused_where_it_is_not_kept(tmp_path):
    policy = load(tmp_path, "{column: id, events: visit}", "id")
    for kind in ("series", "evolving", "stream"):
        with pytest.raises(PolicyError, match="does not guarantee k"):
            publisher(policy, kind, "veil", rng=Rng.from_seed(1))
    with pytest.raises(PolicyError, match="link"):
        table.publish(people(), load(tmp_path, "prior.csv}", "prior.csv, link: true}"), seed=1)


# The verifier


def refuted(release, policy, original):
    inside = verify(release, policy, kind="table", original=Input(original.table, original.source_rows))
    outside = verify(release, policy, kind="table", original=Input(original.table))
    return {finding.claim for finding in inside.refuted}, {finding.claim for finding in outside.refuted}


def with_column(release, name, cells):
    data = release.tables["data"]
    return replace(release, tables={"data": data.set_column(data.column_names.index(name), name, pa.array(cells))})


@pytest.mark.parametrize("visits", [1, 3])
def test_an_honest_release_holds_inside_and_outside(policy, visits):
    release, original = engine(policy, people(visits=visits))
    assert refuted(release, policy, original) == (set(), set())


def test_a_veil_that_loses_the_true_value_is_refuted(policy, monkeypatch):
    honest = BatchVeiler.veil

    def forgetful(self, rows, **words):
        ills = rows["ill"].to_pylist()
        third = int(len(ills) * 0.3)
        other = {ill: ILLS[(at + 3) % len(ILLS)] for at, ill in enumerate(ILLS)}
        lies = [other[ill] for ill in ills[:third]] + ills[third:]
        return honest(self, rows.set_column(rows.column_names.index("ill"), "ill", pa.array(lies)), **words)

    monkeypatch.setattr(BatchVeiler, "veil", forgetful)
    release, original = engine(policy, people())
    inside, outside = refuted(release, policy, original)
    assert inside == {OMISSION}
    assert outside <= {OMISSION}  # true values exchanged between records that read alike cannot be seen from the files


def test_the_files_show_a_lost_true_value_where_records_do_not_read_alike(tmp_path):
    policy = load(tmp_path, "k: 5, ", "")
    rows = people(2000)
    rows = rows.set_column(rows.column_names.index("age"), "age", pa.array(np.arange(2000)))
    release, original = engine(policy, rows)
    assert refuted(release, policy, original) == (set(), set())
    data = release.tables["data"]
    swapped = data.take(pa.array([*np.arange(1400), *np.roll(np.arange(1400, 2000), 1)]))
    for name in ("sex", "age"):
        swapped = swapped.set_column(swapped.column_names.index(name), name, data[name])
    swapped = swapped.set_column(swapped.column_names.index("stratum"), "stratum", data["stratum"])
    assert refuted(replace(release, tables={"data": swapped}), policy, original) == ({OMISSION}, {OMISSION})


def test_a_share_that_is_not_stated_is_none(policy):
    release, original = engine(policy, people())
    veil = dict(release.metadata["veil"])
    for rate in (None, [], [2.0] * 3, "none"):
        inside, outside = refuted(replace(release, metadata={"veil": veil | {"omission_rate": rate}}), policy, original)
        assert OMISSION in inside & outside


def test_rows_that_are_not_the_inputs_are_refuted(policy):
    release, original = engine(policy, people())
    ages = release.tables["data"]["age"].to_pylist()
    stranger = with_column(release, "age", ["[1000, 1010)", *ages[1:]])
    inside, outside = refuted(stranger, policy, original)
    assert ORIGIN in inside & outside


def test_a_level_below_the_published_one_is_refuted(tmp_path):
    release, original = engine(load(tmp_path, "k: 5, ", ""), people())
    coarse = load(tmp_path, "{role: quasi, hierarchy", "{role: quasi, level: 1, hierarchy")
    inside, outside = refuted(release, coarse, original)
    assert ORIGIN in inside & outside


def test_a_class_of_one_person_is_refuted(tmp_path):
    loose = load(tmp_path, "k: 5, ", "")
    rows = people(300, visits=6)
    release, original = engine(loose, rows)
    strict = load(tmp_path)
    inside, outside = refuted(release, strict, original)
    assert "k = 5 of persons" in inside & outside
    assert "k = 5" not in inside  # six records of one person are five records


def test_a_class_of_few_records_is_refuted_from_the_release_alone(tmp_path):
    release, _ = engine(load(tmp_path, "k: 5, ", ""), people())
    assert "k = 5" in {finding.claim for finding in verify(release, load(tmp_path), kind="table").refuted}


def test_the_stratum_counts_as_published(policy):
    release, original = engine(policy, people())
    data = release.tables["data"]
    rows = data["stratum"].to_pylist()
    wrong = with_column(release, "stratum", [2, *rows[1:]])
    assert "k = 5" in {finding.claim for finding in verify(wrong, policy, kind="table").refuted}
    assert "every first event has the stratum of its fields" in refuted(wrong, policy, original)[0]


def test_lost_rows_are_missed(policy):
    release, original = engine(policy, people())
    short = replace(release, tables={"data": release.tables["data"].slice(10)})
    short = replace(short, records=replace(release.records, input=590, published=590))
    inside, outside = refuted(short, policy, original)
    assert "the manifest states the rows of the input" in inside & outside


def test_a_domain_with_two_variants_of_a_value_is_refuted(policy):
    release, _ = engine(policy, people())
    veil = dict(release.metadata["veil"])
    veil["domain"] = ["Flu", *veil["domain"][1:]]
    forged = replace(release, metadata={"veil": veil})
    claims = {finding.claim for finding in verify(forged, policy, kind="table").refuted}
    assert "no two values are variants of one value" in claims
