"""FHIR and OMOP in, released, out in the same standard; parsed again by others, references intact, nothing else in it."""

import importlib
import json
import sqlite3
from collections import Counter
from contextlib import closing

import duckdb
import pytest
from click.testing import CliRunner
from generated_bundles import CANARY, noise

from reticent import Policy, anonymize, verify
from reticent.cli import app
from reticent.connectors.fhir.write import write_fhir_release
from reticent.connectors.inputs import read_input
from reticent.connectors.linked import read_tables
from reticent.connectors.omop import write_omop_release
from reticent.connectors.omop.model import TABLES
from reticent.datasets.fhir import Form, write_fhir
from reticent.datasets.omop import write_omop
from reticent.errors import ConnectorError, PolicyError, ReticentError

VISITS = 600
MODELS = {"R4": "fhir.resources.R4B", "R5": "fhir.resources"}
SAMPLE = 25


def plant(file):
    """Puts the canary into everything that may stand on a resource and on a Bundle, and that no policy names."""
    if file.suffix == ".ndjson":
        lines = [noise(CANARY) | json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return
    bundle = json.loads(file.read_text()) | {"identifier": {"value": CANARY}, "signature": {"data": CANARY}}
    for entry in bundle["entry"]:
        entry["resource"] = noise(CANARY) | entry["resource"]
        entry |= {"link": [{"url": CANARY}], "search": {"mode": CANARY}, "response": {"location": CANARY}}
    file.write_text(json.dumps(bundle))


@pytest.fixture(scope="module", params=["R4 bundles", "R5 lines"])
def hospital(request, tmp_path_factory):
    """An export, its policy, and its release as a folder."""
    folder = tmp_path_factory.mktemp("fhir")
    r5 = request.param.startswith("R5")
    write_fhir(folder / "in", VISITS, 3, visits=4, form=Form(bundles=not r5, r5=r5, courses=True))
    for file in (folder / "in").glob("*json"):
        plant(file)
    policy = Policy.load(folder / "in" / "policy.yaml")
    release = anonymize(folder / "in", policy)
    release.to_dir(folder / "release")
    return "R5" if r5 else "R4", folder, policy, release


@pytest.fixture(scope="module")
def written(hospital):
    _, folder, _, _ = hospital
    write_fhir_release(folder / "release", folder / "out")
    lines = [line for file in (folder / "out").iterdir() for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def test_the_release_holds_and_verifies_from_its_folder(hospital):
    _, folder, policy, release = hospital
    assert verify(folder / "release", policy).holds
    assert release.explain["published_rows"]["Encounter"] > VISITS // 4
    assert release.explain["published_rows"]["Condition"] > release.explain["published_rows"]["Encounter"]


def test_every_type_is_valid_and_counted(hospital, written):
    version, _, _, release = hospital
    counts = Counter(resource["resourceType"] for resource in written)
    assert {kind: counts[kind] for kind in release.tables} == {k: t.num_rows for k, t in release.tables.items()}
    assert (counts["Provenance"], counts["StructureDefinition"]) == (1, 3)
    model = importlib.import_module(MODELS[version]).get_fhir_model_class
    seen = Counter()
    for resource in written:
        kind = resource["resourceType"]
        seen[kind] += 1
        if seen[kind] <= SAMPLE:
            again = model(kind).model_validate(resource)
            assert json.loads(again.model_dump_json())["resourceType"] == kind
            assert kind == "StructureDefinition" or len(resource["meta"]["security"]) == 3
    shown = next(resource for resource in written if resource["resourceType"] == "Encounter")
    assert ("actualPeriod" in shown) == (version == "R5")


def test_references_lead_somewhere_and_ids_are_their_own(written):
    ids = {f"{resource['resourceType']}/{resource['id']}" for resource in written}
    assert len(ids) == len(written)
    home = {r["id"]: r["subject"]["reference"] for r in written if r["resourceType"] == "Encounter"}
    for resource in written:
        person = resource.get("subject", {}).get("reference")
        assert person is None or person in ids
        if "encounter" in resource:
            assert home[resource["encounter"]["reference"].partition("/")[2]] == person


def test_nothing_of_the_export_but_the_policy_is_in_it(hospital, written):
    _, folder, policy, _ = hospital
    text = json.dumps(written) + "".join(file.read_text() for file in (folder / "release").iterdir())
    canaries = set()
    for table in read_tables(str(folder / "in"), policy)[0].values():
        canaries |= set(table["patient_id"].to_pylist()[:50])
        if "visit" in table.column_names:
            canaries |= set(table["visit"].drop_null().to_pylist()[:50])
    source = "".join(file.read_text() for file in (folder / "in").iterdir() if file.suffix != ".yaml")
    canaries |= {CANARY, "Seen by", "Done by", "Family of", "mrn", "<div>", "8480-6", "RelatedPerson", "T08:30"}
    assert all(canary in source for canary in canaries)
    assert not [canary for canary in canaries if canary in text]


def test_what_fhir_cannot_say_is_absent_with_a_reason(hospital, written):
    patients = [resource for resource in written if resource["resourceType"] == "Patient"]
    assert all("birthDate" in p or "_birthDate" in p for p in patients)
    coarse = [p["_birthDate"]["extension"] for p in patients if "_birthDate" in p]
    assert coarse
    assert all(extensions[0]["valueCode"] == "masked" for extensions in coarse)
    codes = [a["postalCode"] for p in patients for a in p["address"] if "postalCode" in a]
    assert codes
    assert all("*" not in code for code in codes)
    guarantee = next(r for r in written if r["resourceType"] == "Provenance")["extension"]
    assert any("at least 5 persons" in one["valueString"] for one in guarantee)


def test_a_bundle_out_is_read_again(hospital):
    version, folder, policy, release = hospital
    CliRunner().invoke(
        app, ["export", str(folder / "release"), f"fhir:{folder / 'again.json'}"], catch_exceptions=False
    )
    tables, standard = read_tables(str(folder / "again.json"), policy)
    assert standard["version"] == version
    assert {kind: t.num_rows for kind, t in tables.items()} == {kind: t.num_rows for kind, t in release.tables.items()}
    assert sorted(tables["Condition"]["diagnosis"].to_pylist()) == sorted(
        release.tables["Condition"]["diagnosis"].to_pylist()
    )
    with pytest.raises(ConnectorError, match="exists"):
        write_fhir_release(folder / "release", folder / "again.json")


def test_a_release_of_something_else_is_refused(hospital, tmp_path):
    _, folder, _, _ = hospital
    with pytest.raises(PolicyError, match="not made from OMOP"):
        write_omop_release(folder / "release", tmp_path / "x.db")


def test_candidates_of_a_veiled_table_are_an_extension(tmp_path):
    write_fhir(tmp_path / "in", 300, 1)
    rules = Policy.load(tmp_path / "in" / "policy.yaml").to_dict()
    rules["privacy"] = {"l": 3}
    rules["table"] = {"method": "veil"}
    rules["prior"] = {"file": "prior.csv", "link": True}
    rules["columns"]["diagnosis"] = "sensitive"
    data = read_input(str(tmp_path / "in"))
    counts = Counter(data["diagnosis"].to_pylist())
    (tmp_path / "prior.csv").write_text(
        "value,count\n" + "".join(f"{value},{count}\n" for value, count in counts.items())
    )
    policy = Policy.from_dict(rules, base=tmp_path)
    anonymize(data, policy, store=tmp_path / "s.db").to_dir(tmp_path / "release")
    write_fhir_release(tmp_path / "release", tmp_path / "out", policy)
    lines = (tmp_path / "out" / "Condition.ndjson").read_text().splitlines()
    model = importlib.import_module(MODELS["R4"]).get_fhir_model_class("Condition")
    for line in lines[:SAMPLE]:
        reason, candidates = json.loads(line)["code"]["extension"]
        assert reason["valueCode"] == "masked"
        assert len(candidates["extension"]) == 3
        model.model_validate_json(line)
    assert len(lines) == 300
    patients = (tmp_path / "out" / "Patient.ndjson").read_text().splitlines()
    ids = {json.loads(line)["id"] for line in patients}
    assert len(ids) == len(patients) == 300
    assert {json.loads(line)["subject"]["reference"].partition("/")[2] for line in lines} == ids


@pytest.fixture(scope="module")
def omop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("omop")
    file, policy = write_omop(folder / "in.db", VISITS, 3, visits=4, further=True)
    with closing(sqlite3.connect(file)) as base:
        for table in ("person", "visit_occurrence", "condition_occurrence", "drug_exposure", "location", "death"):
            for column in ("provider_name", "stop_reason", "address_1", "sig"):
                base.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT DEFAULT '{CANARY}'")
        base.execute("UPDATE person SET person_source_value = ? || person_id", (CANARY,))
        base.execute("CREATE TABLE note (note_id INTEGER, person_id INTEGER, note_text TEXT)")
        base.execute("INSERT INTO note SELECT person_id, person_id, ? FROM person", (CANARY,))
        base.commit()
    rules = Policy.load(policy)
    release = anonymize(f"sqlite:///{file}", rules)
    release.to_dir(folder / "release")
    return folder, rules, release


@pytest.mark.parametrize("name", ["out.db", "out.duckdb"])
def test_omop_out_has_its_keys_and_its_source(omop, name):
    folder, rules, release = omop
    assert verify(folder / "release", rules).holds
    counts = write_omop_release(folder / "release", folder / name)
    link = (
        sqlite3.connect(folder / name) if name.endswith(".db") else duckdb.connect(str(folder / name), read_only=True)
    )
    with closing(link):

        def ask(query):
            return link.execute(query).fetchall()

        for table, rows in release.tables.items():
            assert ask(f"SELECT COUNT(*) FROM {table}") == [(rows.num_rows,)] == [(counts[table],)]  # noqa: S608
            lost = f"SELECT COUNT(*) FROM {table} t LEFT JOIN person p ON p.person_id = t.person_id WHERE p.person_id IS NULL"  # noqa: S608
            assert ask(lost) == [(0,)]
        strange = "SELECT COUNT(*) FROM condition_occurrence c JOIN visit_occurrence v USING (visit_occurrence_id) WHERE c.person_id <> v.person_id"
        assert ask(strange) == [(0,)]
        assert ask("SELECT cdm_version, cdm_version_concept_id FROM cdm_source") == [("5.4", 756265)]
        assert ask("SELECT COUNT(*) FROM person WHERE location_id IS NULL") == [(0,)]
        assert ask("SELECT COUNT(*) FROM person WHERE gender_concept_id NOT IN (0, 8507, 8532)") == [(0,)]
        if name.endswith(".db"):
            assert ask("PRAGMA foreign_key_check") == []
    with pytest.raises(ConnectorError, match="exists"):
        write_omop_release(folder / "release", folder / name)
    scheme = "sqlite" if name.endswith(".db") else "duckdb"
    again, _ = read_tables(f"{scheme}:///{folder / name}", rules)
    assert {table: t.num_rows for table, t in again.items()} == {
        table: t.num_rows for table, t in release.tables.items()
    }
    assert not [file.name for file in (folder / "release").iterdir() if CANARY.encode() in file.read_bytes()]


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_omop_out_is_the_model_for_others(omop, tmp_path, scheme):
    """SQLAlchemy reads tables, columns and keys; no cell is a canary, and no published date is finer than its label."""
    from sqlalchemy import create_engine, inspect

    folder, _, release = omop
    file = tmp_path / ("out.duckdb" if scheme == "duckdb" else "out.db")
    write_omop_release(folder / "release", file)
    if scheme == "duckdb":
        with closing(duckdb.connect(str(file), read_only=True)) as link:
            tables = {name: [] for (name,) in link.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
            for name in tables:
                tables[name] = [row[0] for row in link.execute(f"DESCRIBE {name}").fetchall()]
            cells = {name: link.execute(f"SELECT * FROM {name}").fetchall() for name in tables}  # noqa: S608
    else:
        engine = create_engine(f"sqlite:///{file}")
        look = inspect(engine)
        tables = {name: [column["name"] for column in look.get_columns(name)] for name in look.get_table_names()}
        homes = {key["referred_table"] for key in look.get_foreign_keys("condition_occurrence")}
        assert homes == {"person", "visit_occurrence"}
        assert look.get_pk_constraint("person")["constrained_columns"] == ["person_id"]
        with closing(sqlite3.connect(file)) as link:
            cells = {name: link.execute(f"SELECT * FROM {name}").fetchall() for name in tables}  # noqa: S608
        engine.dispose()
    assert set(tables) == {*release.tables, "location", "cdm_source"}
    for name, columns in tables.items():
        assert tuple(columns[: len(TABLES[name])]) == TABLES[name]
        assert all(column.endswith("_label") for column in columns[len(TABLES[name]) :])
    text = repr(cells)
    assert CANARY not in text
    assert len(cells["person"]) == release.tables["person"].num_rows


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DROP TABLE person", "refused"),
        ("DROP TABLE drug_exposure", "refused"),
        ("ALTER TABLE visit_occurrence DROP COLUMN person_id", "refused"),
        ("ALTER TABLE condition_occurrence RENAME COLUMN condition_source_value TO x", "refused"),
        ("DELETE FROM person", "no rows"),
        ("DELETE FROM visit_occurrence", "no rows"),
        ("UPDATE drug_exposure SET drug_source_value = x'00ff'", "bytes"),
        ("UPDATE visit_occurrence SET visit_start_date = 'canary-77'", "not dates"),
        ("UPDATE person SET person_id = -person_id", "nobody|together|fewer|persons"),
    ],
)
def test_a_corrupt_database_is_refused_and_nothing_is_released(omop, tmp_path, change, words):
    folder, rules, _ = omop
    file = tmp_path / "bad.db"
    file.write_bytes((folder / "in.db").read_bytes())
    with closing(sqlite3.connect(file)) as link:
        link.execute(change)
        link.commit()
    if "-person_id" in change:  # everybody's rows are of nobody: persons alone are left
        release = anonymize(f"sqlite:///{file}", rules)
        assert sum(table.num_rows for name, table in release.tables.items() if name != "person") == 0
        return
    with pytest.raises(ReticentError, match=words) as error:
        anonymize(f"sqlite:///{file}", rules)
    assert "canary" not in str(error.value)


def test_rows_of_nobody_are_counted_and_said(omop, tmp_path, caplog):
    folder, rules, _ = omop
    file = tmp_path / "odd.db"
    file.write_bytes((folder / "in.db").read_bytes())
    with closing(sqlite3.connect(file)) as link:
        link.execute("UPDATE visit_occurrence SET person_id = NULL WHERE visit_occurrence_id IN (1, 2)")
        link.execute("UPDATE visit_occurrence SET person_id = 999999 WHERE visit_occurrence_id = 3")
        link.commit()
    release = anonymize(f"sqlite:///{file}", rules)
    assert "visit_occurrence: without a person, suppressed: 3 rows" in caplog.text
    assert verify(release, rules).holds
    with pytest.raises(PolicyError, match="names one table"):
        anonymize(f"sqlite:///{file}?table=person", rules)
