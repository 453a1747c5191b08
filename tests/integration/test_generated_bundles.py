"""Bundles of a generator of synthetic patients, in and out: all that the policy does not name stays inside, the rest is valid FHIR."""

import importlib
import json
import re
from collections import Counter

import pytest
from click.testing import CliRunner
from generated_bundles import CANARY, RXNORM, SNOMED, write_bundles

from reticent import Policy, verify
from reticent.cli import app

RULES = {
    "version": 1,
    "person": "patient_id",
    "tables": {
        "mapping": "fhir",
        "uncounted": ["Condition", "Procedure", "MedicationRequest", "Observation"],
        "columns": {
            "race": "Patient.extension.where(url='http://hl7.org/fhir/us/core/StructureDefinition/us-core-race')"
            ".extension.where(url='ombCategory').valueCoding.code"
        },
    },
    "columns": {
        "patient_id": "identifier",
        "birth_date": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "year", "decade"]}},
        "sex": "quasi",
        "race": "quasi",
        "postcode": {"role": "quasi", "hierarchy": {"prefix": 5}},
        "death_date": {"role": "quasi", "hierarchy": {"dates": ["year"]}, "transform": {"shift": 20}},
        "encounter_class": "quasi",
        "admission_date": {
            "role": "quasi",
            "hierarchy": {"dates": ["day", "month", "year"]},
            "transform": {"shift": 20},
        },
        "diagnosis": "sensitive",
        "procedure": "sensitive",
        "medication": "sensitive",
        "observation_value": "sensitive",
        "vaccine": "quasi",
        "report": "quasi",
    },
    "privacy": {"k": 5, "l": 2},
}
NUMBERS = re.compile(r"77\.?19")
PEOPLE = 120


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """The folders of an export, its release, and the release as FHIR; what the commands said."""
    folder = tmp_path_factory.mktemp("generated")
    write_bundles(folder / "in", PEOPLE, 7)
    (folder / "policy.json").write_text(json.dumps(RULES))
    run, policy = CliRunner(), str(folder / "policy.json")
    said = [
        run.invoke(app, ["anonymize", str(folder / "in"), "-p", policy, "-o", str(folder / "release")]),
        run.invoke(app, ["export", str(folder / "release"), f"fhir:{folder / 'out'}"]),
        run.invoke(app, ["export", str(folder / "release"), f"fhir:{folder / 'out.json'}"]),
    ]
    for one in said:
        assert one.exit_code == 0, (one.output, one.exception)
    return folder, "".join(one.output for one in said)


def resources(folder):
    return [json.loads(line) for file in (folder / "out").iterdir() for line in file.read_text().splitlines()]


def test_it_is_read_whole_and_holds(export):
    folder, _ = export
    release = json.loads((folder / "release" / "release.json").read_text())
    source = Counter(
        entry["resource"]["resourceType"]
        for file in (folder / "in").iterdir()
        for entry in json.loads(file.read_text())["entry"]
    )
    for kind, rows in release["explain"]["input_rows"].items():
        assert rows == source[kind], kind
    assert release["explain"]["persons"] == PEOPLE
    assert verify(folder / "release", Policy.load(folder / "policy.json")).holds


def test_no_canary_leaves(export):
    folder, said = export
    files = [file for place in ("release", "out") for file in (folder / place).iterdir()] + [folder / "out.json"]
    assert CANARY in "".join(file.read_text() for file in (folder / "in").iterdir())
    ids = {
        entry["resource"]["id"] for file in (folder / "in").iterdir() for entry in json.loads(file.read_text())["entry"]
    }
    for file in files:
        text = file.read_text()
        assert CANARY not in text, file.name
        assert file.name.endswith("ndjson") or file.suffix == ".csv" or not NUMBERS.search(text), file.name
        assert not ids & set(re.findall(r"[0-9a-f-]{36}", text)), file.name
        assert not re.search(r"T07:19(?!:\d\d\+00:00)", text), file.name  # but a manifest may be made at that time
    assert CANARY not in said


def test_every_resource_is_valid_and_its_codes_have_a_system(export):
    folder, _ = export
    model = importlib.import_module("fhir.resources.R4B").get_fhir_model_class
    counts = Counter()
    for resource in resources(folder):
        model(resource["resourceType"]).model_validate(resource)
        counts[resource["resourceType"]] += 1
    rows = json.loads((folder / "release" / "release.json").read_text())["explain"]["published_rows"]
    assert {kind: counts[kind] for kind in rows} == rows
    systems = {
        kind: {
            coding.get("system")
            for one in resources(folder)
            if one["resourceType"] == kind
            for coding in one.get("code", one.get("medicationCodeableConcept", {})).get("coding", ())
        }
        for kind in ("Condition", "Procedure", "MedicationRequest")
    }
    assert systems == {"Condition": {SNOMED}, "Procedure": {SNOMED}, "MedicationRequest": {RXNORM}}


def test_a_system_that_is_not_known_is_not_told(tmp_path, caplog):
    from reticent.connectors.linked import read_tables

    write_bundles(tmp_path / "in", 3, 1)  # every Patient has a link
    for file in (tmp_path / "in").iterdir():
        file.write_text(file.read_text().replace(SNOMED, f"urn:{CANARY}"))
    _, standard = read_tables(str(tmp_path / "in"), Policy.from_dict(RULES))
    assert standard["systems"]["medication"] == RXNORM
    assert "diagnosis" not in standard["systems"]
    assert "'diagnosis' come from several or unknown code systems" in caplog.text
    assert "3 Patient linked to another Patient" in caplog.text
    assert CANARY not in json.dumps(standard) + caplog.text
