"""FHIR out, type by type: every element of the list is valid in both versions, whatever the cell says."""

import importlib
import json

import pyarrow as pa
import pytest

from reticent import Policy
from reticent.connectors.fhir.elements import setter
from reticent.connectors.fhir.write import flat_tables, write_fhir_release
from reticent.connectors.linked import read_tables

MODELS = {"R4": "fhir.resources.R4B", "R5": "fhir.resources"}
DATES = {"role": "quasi", "hierarchy": {"dates": ["day", "month", "quarter", "year"]}}
RULES = {
    "version": 1,
    "person": "pid",
    "tables": {"mapping": "fhir", "columns": {"allergy": "AllergyIntolerance.code.coding.code"}},
    "columns": {
        "pid": "identifier",
        "birth_date": DATES,
        "sex": "quasi",
        "region": "quasi",
        "postcode": {"role": "quasi", "hierarchy": {"prefix": 5}},
        "death_date": DATES,
        "encounter_class": "quasi",
        "admission_date": DATES,
        "discharge_date": DATES,
        "diagnosis": {"role": "quasi", "hierarchy": {"icd10": True}},
        "onset_date": DATES,
        "observation": "quasi",
        "observation_value": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}},
        "procedure": "quasi",
        "procedure_date": DATES,
        "medication": "quasi",
        "statement": "quasi",
        "administration": "quasi",
        "administration_date": DATES,
        "report": "quasi",
        "vaccine": "quasi",
        "vaccine_date": DATES,
        "allergy": "quasi",
    },
    "privacy": {"k": 2},
}
POLICY = Policy.from_dict(RULES)
DAYS = ["2024-03-01", "2024-03-09", "2024-05-02", "2024-08-30", None, "1999-01-01"]


def tables(change):
    """Two alike persons per kind of cell: the same, or such that their cells climb to where `change` says."""
    layout = POLICY.tables.layout(POLICY.released)
    cells = {
        "sex": ["female", "male"],
        "region": ["A", "B"],
        "postcode": ["12345", "12399"],
        "encounter_class": ["IMP", "AMB"],
        "diagnosis": ["C50", "C51"],
        "observation_value": ["121", "127"],
    }
    out = {}
    for name, one in layout.items():
        columns = {"pid": ["x", "y"]} | ({"visit": ["v1", "v2"]} if "visit" in one.link_columns else {})
        for column in one.columns:
            first, second = cells.get(column, DAYS[:2] if column.endswith("date") else ["Q1", "Q2"])
            columns[column] = {
                "same": [first, first],
                "apart": [first, second],
                "quarter": [first, "2024-01-15"] if column.endswith("date") else [first, first],
                "far": [first, None],
                "none": [None, None],
            }[change]
        out[name] = pa.table({column: pa.array(values, pa.string()) for column, values in columns.items()})
    return out


@pytest.mark.parametrize("change", ["same", "apart", "quarter", "far", "none"])
@pytest.mark.parametrize("version", ["R4", "R5"])
def test_every_element_is_valid(tmp_path, version, change, caplog):
    from reticent.publication import linked

    layout = POLICY.tables.layout(POLICY.released)
    paths = {kind: {name: POLICY.tables.paths[name].write_path for name in one.columns} for kind, one in layout.items()}
    standard = {"standard": "fhir", "version": version, "tables": paths}
    linked.publish(tables(change), POLICY, standard=standard).release.to_dir(tmp_path / "release")
    counts = write_fhir_release(tmp_path / "release", tmp_path / "out")
    assert "AllergyIntolerance is skipped" in caplog.text
    assert set(counts) == set(layout) - {"AllergyIntolerance"}
    model = importlib.import_module(MODELS[version]).get_fhir_model_class
    for file in (tmp_path / "out").iterdir():
        for line in file.read_text().splitlines():
            model(json.loads(line)["resourceType"]).model_validate_json(line)
    if change == "same":
        again, known = read_tables(str(tmp_path / "out"), Policy.from_dict(_without_allergy()))
        assert known["version"] == version
        for kind, table in again.items():
            for column in layout[kind].columns:
                assert set(table[column].to_pylist()) == set(tables(change)[kind][column].to_pylist()), column


@pytest.mark.parametrize(("cell", "start", "end"), [("2024-Q2", "2024-04", "2024-06"), ("1990s", "1990", "1999")])
@pytest.mark.parametrize("version", ["R4", "R5"])
def test_a_quarter_or_a_decade_is_a_period_where_fhir_takes_one(cell, start, end, version):
    for path in (
        "Condition.onsetDateTime",
        "Procedure.performedDateTime",
        "MedicationAdministration.effectiveDateTime",
    ):
        resource = {}
        setter(path, version)(resource, cell)
        ((name, period),) = resource.items()
        assert name.endswith("Period")
        assert period == {"start": start, "end": end}
    resource = {}
    setter("Immunization.occurrenceDateTime", version)(resource, cell)
    assert resource["_occurrenceDateTime"]["extension"][1]["valueString"] == cell


def _without_allergy():
    columns = {name: role for name, role in RULES["columns"].items() if name != "allergy"}
    return RULES | {"columns": columns, "tables": "fhir"}


def test_another_type_is_read_by_its_path(tmp_path):
    parts = [
        {"resourceType": "Patient", "id": "x", "gender": "male"},
        {"resourceType": "Encounter", "id": "e", "subject": {"reference": "Patient/x"}},
        {
            "resourceType": "AllergyIntolerance",
            "patient": {"reference": "Patient/x"},
            "code": {"coding": [{"code": "A"}]},
        },
    ]
    (tmp_path / "x.ndjson").write_text("\n".join(map(json.dumps, parts)))
    assert read_tables(str(tmp_path), POLICY)[0]["AllergyIntolerance"].to_pylist() == [
        {"pid": "x", "visit": None, "allergy": "A"}
    ]


def test_rows_of_one_pseudonym_are_one_patient():
    data = pa.table(
        {"person": ["a", "b", "a"], "sex": ["f", "m", "f"], "diagnosis_1": ["C50"] * 3, "diagnosis_2": ["I10"] * 3}
    )
    columns = {"sex": "quasi", "diagnosis": "sensitive", "patient_id": "identifier"}
    policy = Policy.from_dict({"version": 1, "fhir": "encounters", "columns": columns})
    parts, layout = flat_tables(data, policy)
    assert parts["Patient"].to_pylist() == [{"person": "a", "sex": "f"}, {"person": "b", "sex": "m"}]
    assert parts["Condition"].to_pylist()[2] == {"person": "a", "visit": "v3", "diagnosis": ["C50", "I10"]}
    assert layout["tables"]["Condition"] == {"diagnosis": "Condition.code.coding.code"}
