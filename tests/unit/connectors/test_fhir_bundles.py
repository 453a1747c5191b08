"""Bundles and hostile exports: the same rows as NDJSON, or refused by place; what cannot be joined is counted."""

import gzip
import json
import re

import pytest
from click.testing import CliRunner

from reticent import Policy, anonymize
from reticent.cli import app
from reticent.connectors.fhir import bundle
from reticent.connectors.fhir.read import read_fhir
from reticent.connectors.inputs import is_fhir, read_input
from reticent.errors import DataError, GuaranteeError
from reticent.policy.settings.inputs import FhirSettings

ENCOUNTERS = FhirSettings(mapping="encounters")
CANARY = "canary-7719"


def patient(number=1, **more):
    return {"resourceType": "Patient", "id": f"p{number}", "gender": "female", "birthDate": "1960-01-31", **more}


def encounter(number=1, **more):
    kind = {"class": {"code": "IMP"}, "period": {"start": "2024-03-01T08:00:00Z", "end": "2024-03-04"}}
    subject = {"reference": f"Patient/p{number}"}
    return {"resourceType": "Encounter", "id": f"e{number}", "subject": subject, **kind, **more}


def encounter_r5(number=1, **more):
    kind = {"class": [{"coding": [{"code": "IMP"}]}], "actualPeriod": {"start": "2024-03-01", "end": "2024-03-04"}}
    subject = {"reference": f"Patient/p{number}"}
    return {"resourceType": "Encounter", "id": f"e{number}", "subject": subject, **kind, **more}


def condition(number=1, code="J45", **more):
    links = {"subject": {"reference": f"Patient/p{number}"}, "encounter": {"reference": f"Encounter/e{number}"}}
    return {"resourceType": "Condition", **links, "code": {"coding": [{"code": code}]}, **more}


def bundle_of(*resources, kind="collection", **more):
    entries = [{"fullUrl": f"urn:uuid:{r['id']}" if "id" in r else None, "resource": r} for r in resources]
    return {"resourceType": "Bundle", "type": kind, "entry": entries, **more}


def people(count):
    return [make(number) for number in range(count) for make in (patient, encounter, condition)]


@pytest.fixture(params=["whole", "blocks"])
def size(request, monkeypatch):
    """Documents parsed whole, and the same documents cut into small blocks."""
    if request.param == "blocks":
        monkeypatch.setattr(bundle, "MAX_WHOLE", 16)
        monkeypatch.setattr(bundle, "_BLOCK", 37)
    return request.param


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("kind", ["collection", "transaction", "batch", "searchset"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_bundle_gives_the_rows_of_ndjson(tmp_path, size, kind, indent):
    lines = "".join(json.dumps(resource) + "\n" for resource in people(5))
    true = read_fhir(write(tmp_path / "all.ndjson", lines), ENCOUNTERS)
    text = '{"[" : "\\\\\\"{", "link": [{"relation": "self"}], ' + json.dumps(
        bundle_of(*people(5), kind=kind), indent=indent
    ).lstrip("{")
    file = write(tmp_path / "bundle.json", text)
    assert is_fhir(file)
    assert read_fhir(file, ENCOUNTERS).equals(true)
    packed = tmp_path / "again.json.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert is_fhir(packed)
    assert read_fhir(packed, ENCOUNTERS).equals(true)
    assert true["diagnosis"].null_count == 0


def test_a_corrupt_archive_is_no_export(tmp_path):
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(b"{" * 9000)[:20])
    assert not is_fhir(tmp_path / "x.json.gz")


def test_a_folder_of_bundles_one_per_patient(tmp_path):
    for number in range(3):
        parts = [make(number) for make in (patient, encounter, condition)]
        for part in parts[1:]:
            part["subject"] = {"reference": f"urn:uuid:p{number}"}
        parts[2]["encounter"] = {"reference": f"urn:uuid:e{number}"}
        write(tmp_path / f"Jane_Doe_{number}.json", bundle_of(*parts, kind="transaction"))
    table = read_input(str(tmp_path))
    assert table.num_rows == 3
    assert table["diagnosis"].null_count == table["sex"].null_count == 0


def test_addresses_win_over_ids_within_a_transaction(tmp_path):
    parts = [patient(), encounter(), condition()]
    parts[1]["subject"] = {"reference": "urn:uuid:0c1"}
    parts[2] |= {"subject": {"reference": "urn:uuid:0c1"}, "encounter": {"reference": "urn:uuid:0c2"}}
    content = bundle_of(*parts, kind="transaction")
    for entry, address in zip(content["entry"], ("0c1", "0c2", "0c3"), strict=True):
        entry["fullUrl"] = f"urn:uuid:{address}"
    row = read_fhir(write(tmp_path / "b.json", content), ENCOUNTERS).to_pylist()[0]
    assert (row["sex"], row["diagnosis"]) == ("female", "J45")


def test_r5_keeps_class_and_period(tmp_path):
    lines = "".join(json.dumps(resource) + "\n" for resource in (patient(), encounter_r5(), condition()))
    row = read_fhir(write(tmp_path / "r5.ndjson", lines), ENCOUNTERS).to_pylist()[0]
    assert (row["encounter_class"], row["admission_date"], row["length_of_stay"]) == ("IMP", "2024-03-01", "3")


def test_other_types_join_by_their_own_reference(tmp_path):
    drug = {"resourceType": "MedicationStatement", "subject": {"reference": "Patient/p1"}}
    r4 = drug | {"context": {"reference": "Encounter/e1"}, "medicationCodeableConcept": {"coding": [{"code": "A02"}]}}
    dose = {"resourceType": "Immunization", "patient": {"reference": "Patient/p1"}}
    dose |= {"encounter": {"reference": "Encounter/e1"}, "vaccineCode": {"coding": [{"code": "207"}]}}
    paths = {"id": "Encounter.id", "drug": "MedicationStatement.medicationCodeableConcept.coding.code"}
    mapping = FhirSettings.model_validate({"columns": paths | {"dose": "Immunization.vaccineCode.coding.code"}})
    file = write(tmp_path / "b.json", bundle_of(patient(), encounter(), r4, dose))
    assert read_fhir(file, mapping).to_pylist() == [{"id": "e1", "drug": "A02", "dose": "207"}]
    r5 = drug | {"encounter": {"reference": "Encounter/e1"}, "medication": {"concept": {"coding": [{"code": "A02"}]}}}
    file = write(tmp_path / "c.json", bundle_of(patient(), encounter_r5(), r5))
    assert read_fhir(file, mapping).to_pylist() == [{"id": "e1", "drug": "A02", "dose": None}]


GOOD = json.dumps(bundle_of(*people(2)))
REFUSED = {
    # cut off, or not JSON
    "cut": GOOD[:-5],
    "cut in a string": GOOD[: GOOD.index("female") + 3],
    "cut after entries": GOOD[: GOOD.rindex("]") + 1],
    "trailing": GOOD + "{}",
    "trailing brace": GOOD + "}",
    "two documents": GOOD + "\n" + GOOD,
    "single quotes": GOOD.replace('"', "'"),
    "missing comma": GOOD.replace("}}, {", "}} {", 1).replace('"gender": "female", ', '"gender": "female" ', 1),
    "nan": GOOD.replace('"1960-01-31"', "NaN"),
    "bad escape": GOOD.replace("female", "fem\\qale"),
    "bytes": GOOD.replace("female", "\x01"),
    "deep": '{"resourceType":"Bundle","type":"collection","entry":[{"resource":'
    + '{"a":' * 5000
    + "1"
    + "}" * 5001
    + "]}",
    "array": "[" + GOOD + "]",
    "text": '"resourceType"',
    "null": '{"resourceType": null, "x": "Bundle"}',
    # not what it says
    "no type": json.dumps(bundle_of(*people(1)) | {"type": None}),
    "history": json.dumps(bundle_of(*people(1), kind="history")),
    "response": json.dumps(bundle_of(*people(1), kind="transaction-response")),
    "document": json.dumps(bundle_of(*people(1), kind="document")),
    "unknown type": json.dumps(bundle_of(*people(1), kind=CANARY)),
    "type of a list": json.dumps(bundle_of(*people(1)) | {"type": ["collection"]}),
    "entry a string": json.dumps(bundle_of() | {"entry": CANARY}),
    "entry a mapping": json.dumps(bundle_of() | {"entry": {"resource": patient()}}),
    "entries are numbers": json.dumps(bundle_of(*people(1)) | {"entry": [1, 2]}),
    "entries are strings": json.dumps(bundle_of(*people(1)) | {"entry": [CANARY]}),
    "entries are lists": json.dumps(bundle_of(*people(1)) | {"entry": [[encounter()]]}),
    "entries are null": json.dumps(bundle_of(*people(1)) | {"entry": [None]}),
    "resource a string": json.dumps(bundle_of(*people(1)) | {"entry": [{"resource": CANARY}]}),
    "resource a list": json.dumps(bundle_of(*people(1)) | {"entry": [{"resource": [encounter()]}]}),
    "resource without type": json.dumps(bundle_of(*people(1)) | {"entry": [{"resource": {"id": CANARY}}]}),
    "type a number": json.dumps(bundle_of(*people(1), {"resourceType": 7, "id": CANARY})),
    "nested bundle": json.dumps(bundle_of(bundle_of(*people(2)))),
    "bundle of itself": json.dumps(bundle_of(bundle_of(bundle_of(*people(1))))),
    "id a number": json.dumps(bundle_of(*people(1)) | {"entry": [{"resource": encounter(id=5)}]}),
    "id a mapping": json.dumps(bundle_of(*people(1)) | {"entry": [{"resource": encounter(id={"a": CANARY})}]}),
    "id a list": json.dumps(bundle_of(*people(1)) | {"entry": [{"resource": patient(id=["p1"])}]}),
    "mixed versions": json.dumps(bundle_of(*people(2), encounter_r5(9))),
    "mixed the other way": json.dumps(bundle_of(encounter_r5(9), *people(2))),
    "mixed over types": json.dumps(
        bundle_of(*people(1), {"resourceType": "MedicationRequest", "medication": {}}, encounter(4))
    ),
    "empty": json.dumps(bundle_of()),
    "no entries": '{"resourceType": "Bundle", "type": "collection"}',
    "only patients": json.dumps(bundle_of(patient(), patient(2))),
    "only deletions": json.dumps(
        bundle_of(kind="transaction") | {"entry": [{"resource": encounter(), "request": {"method": "DELETE"}}]}
    ),
    "only withdrawn": json.dumps(bundle_of(patient(), encounter(status="entered-in-error"))),
    "nobody's encounters": json.dumps(bundle_of(patient(), encounter(subject={"display": CANARY}))),
    "a path into parts": json.dumps(bundle_of(patient(gender={"code": CANARY}), encounter())),
    "a whole code": json.dumps(bundle_of(patient(), encounter(), condition(code={"x": CANARY}))),
}
WIDE = FhirSettings.model_validate(
    {"mapping": "encounters", "columns": {"drug": "MedicationRequest.medicationCodeableConcept.coding.code"}}
)


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_bundle_is_refused_by_its_place(tmp_path, size, name):
    folder = tmp_path / "export"
    folder.mkdir()
    write(folder / f"Jane_{CANARY}.json", REFUSED[name])
    with pytest.raises(DataError) as error:
        read_fhir(folder, WIDE)
    assert CANARY not in str(error.value)
    assert "Jane" not in str(error.value)
    assert "p1" not in str(error.value)


COUNTED = {
    "no subject": ((encounter(2) | {"subject": None},), "1 Encounter without a patient"),
    "subject a string": ((encounter(2, subject="Patient/p1"),), "1 Encounter without a patient"),
    "subject a list": ((encounter(2, subject=[{"reference": "Patient/p1"}]),), "1 Encounter without a patient"),
    "subject a group": ((encounter(2, subject={"reference": "Group/p1"}),), "1 Encounter without a patient"),
    "subject of a type": (
        (encounter(2, subject={"reference": "p1", "type": "Device"}),),
        "1 Encounter without a patient",
    ),
    "subject within": ((encounter(2, subject={"reference": "#p1"}),), "1 Encounter without a patient"),
    "subject searched": ((encounter(2, subject={"reference": "Patient?x=1"}),), "1 Encounter without a patient"),
    "reference a number": ((encounter(2, subject={"reference": 1}),), "1 Encounter without a patient"),
    "itself": ((encounter(2, subject={"reference": "Encounter/e2"}),), "1 Encounter without a patient"),
    "unknown patient": ((encounter(2),), "1 Encounter whose patient is not in the export"),
    "patient without id": (({"resourceType": "Patient", "gender": "male"},), "1 Patient without an id"),
    "patient twice": ((patient(1, gender="male"),), "1 Patient with a repeated id"),
    "encounter twice": ((encounter(),), "1 Encounter with a repeated id"),
    "condition of nobody": ((condition(1, subject={}),), "1 Condition without a patient"),
    "condition of no encounter": ((condition(1, encounter={}),), "1 Condition without an encounter"),
    "circle": (
        (condition(1, encounter={"reference": "Condition/c1"}, id="c1"),),
        "1 Condition without an encounter",
    ),
    "pages": ((), "one page of a search"),
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_cannot_be_joined_is_counted_and_said(tmp_path, size, caplog, name):
    strange, words = COUNTED[name]
    content = bundle_of(*people(2), kind="searchset", link=[{"relation": "next", "url": CANARY}])
    content["entry"] += [{"resource": resource} for resource in strange]
    table = read_fhir(write(tmp_path / "b.json", content), ENCOUNTERS)
    assert table["diagnosis"].to_pylist()[:2] == ["J45", "J45"]
    assert table.num_rows == (3 if name == "unknown patient" else 2)
    assert words in caplog.text
    assert CANARY not in caplog.text


def test_a_condition_of_another_patient_does_not_join(tmp_path):
    stranger = condition(1, "C50", subject={"reference": "Patient/p9"})
    table = read_fhir(write(tmp_path / "b.json", bundle_of(*people(2), stranger)), ENCOUNTERS)
    assert "C50" not in table["diagnosis"].to_pylist()


def test_an_entry_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "MAX_WHOLE", 1024)
    monkeypatch.setattr(bundle, "_BLOCK", 4096)
    monkeypatch.setattr(bundle, "MAX_ENTRY", 1 << 16)
    long = GOOD[:-2] + ', {"resource": {"a": "' + "x" * (1 << 20)
    with pytest.raises(DataError, match="larger than"):
        read_fhir(write(tmp_path / "b.json", long), ENCOUNTERS)


LINKED = {
    "version": 1,
    "person": "pid",
    "tables": {
        "mapping": "fhir",
        "columns": {"drug": "MedicationRequest.medicationCodeableConcept.coding.code"},
    },
    "columns": {"pid": "identifier", "sex": "quasi", "encounter_class": "quasi", "diagnosis": "plain", "drug": "plain"},
    "privacy": {"k": 2},
}

NOWHERE = ("empty", "no entries", "only patients", "only deletions", "only withdrawn", "nobody's encounters")


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_is_released_of_a_hostile_export(tmp_path, size, name):
    folder, out = tmp_path / "export", tmp_path / "out"
    folder.mkdir()
    write(folder / f"Jane_{CANARY}.json", REFUSED[name])
    write(folder / "a.json", bundle_of(*people(3)) if name.startswith("mixed") else bundle_of())
    write(tmp_path / "policy.json", LINKED)
    ran = CliRunner().invoke(app, ["anonymize", str(folder), "-p", str(tmp_path / "policy.json"), "-o", str(out)])
    assert isinstance(ran.exception, DataError | GuaranteeError)
    assert name in NOWHERE or re.search(r"export, file 1 of 2(, entry \d+)?: ", str(ran.exception))
    assert not out.exists()
    assert not [word for word in (CANARY, "Jane", "p1") if word in ran.output + str(ran.exception)]


SAID = {  # where linked tables say otherwise what the rows of encounters say
    "unknown patient": "Encounter: without a person, suppressed: 1",
    "patient without id": "1 Patient without a patient",
    "patient twice": "Patient: with a repeated key, suppressed: 1",
    "encounter twice": "Encounter: with a repeated key, suppressed: 1",
    "condition of no encounter": None,  # kept: a condition of a person need not be one of a visit
    "circle": None,
}


@pytest.mark.parametrize("name", COUNTED)
def test_linked_tables_count_and_say_it_too(tmp_path, size, caplog, name):
    strange, words = COUNTED[name]
    content = bundle_of(*people(2), kind="searchset", link=[{"relation": "next", "url": CANARY}])
    content["entry"] += [{"resource": resource} for resource in strange]
    release = anonymize(write(tmp_path / "b.json", content), Policy.from_dict(LINKED))
    words = SAID.get(name, words)
    assert words is None or words in caplog.text
    assert CANARY not in caplog.text
    assert release.tables["Patient"].num_rows == release.tables["Encounter"].num_rows == 2
