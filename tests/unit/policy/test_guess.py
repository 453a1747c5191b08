"""Guessing roles: the cautious side, with reasons, without quoting a value."""

import pyarrow as pa
import pytest

from reticent.cli.init import render
from reticent.datasets import hospital
from reticent.policy import Policy
from reticent.policy.guess import guess, guess_person, nice

N = 200


def columns(**data):
    return {g.column: g for g in guess(pa.table(data))}


def test_the_hospital():
    found = {g.column: g for g in guess(hospital.generate(2000, 1))}
    roles = {name: g.role for name, g in found.items()}
    assert roles["patient_id"] == roles["name"] == "identifier"
    assert roles["diagnosis"] == "sensitive"
    assert found["diagnosis"].hierarchy == {"icd10": True}
    assert found["birth_date"].hierarchy == {"dates": ["day", "month", "quarter", "year"]}
    assert found["postcode"].hierarchy == {"prefix": 5}
    assert guess_person(list(found.values())) == "patient_id"


@pytest.mark.parametrize(
    ("value", "role"),
    [
        ("a{}@example.org", "identifier"),
        ("https://example.org/{}", "identifier"),
        ("10.0.0.{}", "identifier"),
        ("123-45-{:04d}", "identifier"),
        ("+44 20 7946 {:04d}", "identifier"),
        ("A{:02d}", "sensitive"),
        ("2024-01-{:02d}", "quasi"),
    ],
)
def test_by_the_look_of_the_values(value, role):
    found = columns(x=[value.format(i % 28 + 1) for i in range(N)])["x"]
    assert found.role == role, found


@pytest.mark.parametrize(
    "name",
    [
        "Surname",
        "patientName",
        "SSN",
        "mrn",
        "E-Mail",
        "home_phone",
        "street",
        "account_no",
        "licence",
        "device_id",
        "clinical_notes",
        "IP",
        "patientId",
    ],
)
def test_by_the_name(name):
    assert columns(**{name: ["a", "b"] * N})[name].role == "identifier"


def test_the_cautious_side():
    found = columns(
        colour=["red", "blue"] * N,
        code=[f"{i * 7919 % 100_003:06x}" for i in range(2 * N)],
        weight=[str(50 + i % 70) for i in range(2 * N)],
        story=[f"the patient said {i} long things about the weather and the family" for i in range(2 * N)],
    )
    assert {n: g.role for n, g in found.items()} == {
        "colour": "quasi",
        "code": "identifier",
        "weight": "quasi",
        "story": "identifier",
    }
    assert found["weight"].hierarchy == {"intervals": [5, 10, 20, 40]}


def test_one_column_stays_sensitive():
    found = columns(diagnosis=["flu", "cold", "gout"] * N, treatment=["rest", "tea"] * (3 * N // 2))
    assert found["diagnosis"].role == "sensitive"
    assert found["treatment"].role == "quasi"


def test_reasons_quote_no_value():
    marked = pa.table(
        {
            "x": [f"CANARY{i}" for i in range(N)],
            "y": ["CANARY a", "CANARY b"] * (N // 2),
            "diagnosis": ["CANARY", "c"] * (N // 2),
        }
    )
    text = render(guess(marked), None)
    assert "CANARY" not in text
    Policy.from_dict(__import__("yaml").safe_load(text))


def test_a_column_called_patient_is_never_released():
    found = columns(patient=[f"p{i % 7}" for i in range(N)], admitted=[f"{i % 28 + 1:02d}.03.2024" for i in range(N)])
    assert found["patient"].role == "identifier"
    assert found["admitted"].role == "identifier"
    assert "1980-12-31" in found["admitted"].why


def test_nice_numbers():
    assert [nice(x) for x in (0, 0.3, 1, 3, 7, 11)] == [1, 0.5, 1, 5, 10, 20]
