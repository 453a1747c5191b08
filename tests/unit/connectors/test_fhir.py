"""FHIR exports: joined by reference, in memory or in parts; nothing private gets through."""

import json

import pytest

from reticent.connectors.fhir.paths import key_of
from reticent.connectors.fhir.read import read_fhir, read_fhir_batches
from reticent.connectors.inputs import is_fhir
from reticent.datasets import hospital
from reticent.datasets.fhir import write_fhir
from reticent.errors import DataError, PolicyError
from reticent.policy import Policy
from reticent.policy.settings.inputs import FhirSettings

ENCOUNTERS = FhirSettings(mapping="encounters")


def write(path, *resources):
    path.write_text("".join(json.dumps(resource) + "\n" for resource in resources))
    return path


def patient(**more):
    return {"resourceType": "Patient", "id": "p1", "gender": "female", "birthDate": "1960-01-31", **more}


def encounter(**more):
    return {"resourceType": "Encounter", "id": "e1", "subject": {"reference": "Patient/p1"}, **more}


def condition(code="J45", of="Encounter/e1", **more):
    subject = {"reference": "Patient/p1"}
    coded = {"coding": [{"code": code}]}
    return {"resourceType": "Condition", "subject": subject, "encounter": {"reference": of}, "code": coded, **more}


def test_generated_export_gives_back_the_hospital(tmp_path):
    write_fhir(tmp_path, 3000, 7)
    table = read_fhir(tmp_path, ENCOUNTERS)
    true = hospital.generate(3000, 7)
    assert table.column("patient_id").to_pylist() == true.column("patient_id").to_pylist()
    for name in ("sex", "region", "postcode", "diagnosis"):
        assert table.column(name).to_pylist() == true.column(name).to_pylist()
    assert table.column("birth_date").to_pylist() == [day.isoformat() for day in true.column("birth_date").to_pylist()]
    assert [int(days) for days in table.column("length_of_stay").to_pylist()] == true.column(
        "length_of_stay"
    ).to_pylist()


@pytest.mark.slow
def test_parts_do_not_change_the_rows(tmp_path):
    write_fhir(tmp_path, 20_000, 3)
    whole = read_fhir(tmp_path, ENCOUNTERS).to_pylist()
    parted = [
        row for batch in read_fhir_batches(tmp_path, ENCOUNTERS, parts=5, batch_rows=999) for row in batch.to_pylist()
    ]
    assert sorted(whole, key=str) == sorted(parted, key=str)


@pytest.mark.parametrize(
    "reference",
    ["Patient/p1", "https://hospital.example/fhir/Patient/p1", "urn:uuid:p1", "Patient/p1/_history/3", "p1"],
)
def test_every_form_of_a_reference_names_the_patient(reference):
    assert key_of(reference) == "p1"


def test_every_condition_gives_a_row_and_withdrawn_ones_do_not(tmp_path, caplog):
    withdrawn = condition("C50", verificationStatus={"coding": [{"code": "entered-in-error"}]})
    several = [condition("J45"), condition("I10"), condition("J45")]
    file = write(tmp_path / "all.ndjson", withdrawn, *several, encounter(), patient())
    assert read_fhir(file, ENCOUNTERS).column("diagnosis").to_pylist() == ["J45", "I10"]
    first = FhirSettings(mapping="encounters", diagnoses="first")
    assert read_fhir(file, first).column("diagnosis").to_pylist() == ["J45"]
    assert "1 further conditions" in caplog.text


def test_missing_parts_are_null(tmp_path):
    file = write(tmp_path / "all.ndjson", encounter(), encounter(id="e2", subject={"reference": "Patient/none"}))
    table = read_fhir(file, ENCOUNTERS)
    assert table.column("diagnosis").to_pylist() == [None, None]
    assert table.column("sex").null_count == 2


def test_a_kind_that_is_missing_altogether_is_said(tmp_path, caplog):
    write_fhir(tmp_path / "export", 50, 1)
    (tmp_path / "export" / "Condition.ndjson").unlink()
    read_fhir(tmp_path / "export", ENCOUNTERS)
    assert "no Condition: the columns diagnosis are empty" in caplog.text


def test_fhirpath_where_a_path_needs_it(tmp_path):
    def pressure(code, value):
        more = {"code": {"coding": [{"code": code}]}, "valueQuantity": {"value": value}}
        return condition() | {"resourceType": "Observation"} | more

    path = "Observation.where(code.coding.code='8480-6').valueQuantity.value"
    mapping = FhirSettings.model_validate({"columns": {"id": "Encounter.id", "pressure": path}})
    file = write(tmp_path / "all.ndjson", encounter(), pressure("8462-4", 80), pressure("8480-6", 120.5))
    assert read_fhir(file, mapping).column("pressure").to_pylist() == ["120.5"]


@pytest.mark.parametrize(
    "path",
    [
        "Patient.name.text",
        "Condition.note.text",
        "Encounter.subject.display",
        "Patient.identifier.value",
        "Encounter.subject.reference",
        "Patient.id",
        "Condition.code.text",
        "Patient.telecom.where(system='phone').value",
    ],
)
def test_text_and_pointers_cannot_be_released(path):
    with pytest.raises(PolicyError, match="role identifier"):
        Policy.from_dict({"version": 1, "columns": {"x": "quasi"}, "fhir": {"columns": {"x": path}}})
    Policy.from_dict({"version": 1, "columns": {"x": "identifier"}, "fhir": {"columns": {"x": path}}})


@pytest.mark.parametrize(
    "line", ['{"resourceType": "Encounter"', "[1]", '{"id": "secret-cell"}', '{"resourceType": 5, "id": "secret-cell"}']
)
def test_bad_lines_are_named_and_not_shown(tmp_path, line):
    file = tmp_path / "all.ndjson"
    file.write_text(json.dumps(encounter()) + "\n" + line + "\n")
    with pytest.raises(DataError, match="line 2") as error:
        read_fhir(file, ENCOUNTERS)
    assert "secret" not in str(error.value)


def test_no_encounter_and_complex_elements_are_refused(tmp_path):
    with pytest.raises(DataError, match="no Encounter"):
        read_fhir(write(tmp_path / "p.ndjson", patient()), ENCOUNTERS)
    mapping = FhirSettings.model_validate({"columns": {"x": "Encounter.subject"}})
    with pytest.raises(DataError, match="an element with parts"):
        read_fhir(write(tmp_path / "e.ndjson", encounter()), mapping)


def test_recognised_by_content(tmp_path):
    file = write(tmp_path / "all.ndjson", patient())
    other = tmp_path / "x.csv"
    other.write_text("a,b\n1,2\n")
    assert is_fhir(file)
    assert is_fhir(tmp_path)
    assert not is_fhir(other)
    assert not is_fhir("-")
