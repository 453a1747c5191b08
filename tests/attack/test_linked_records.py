"""An intersection attack: an attacker who knows all visits of a person keeps the values that occur in all their classes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from reticent.datasets import visits
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.policy import Policy

L = 3
COLUMNS = {
    "patient_id": "identifier",
    "visit": "identifier",
    "name": "identifier",
    "birth_date": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "quarter", "year"]}},
    "sex": "quasi",
    "region": "quasi",
    "postcode": {"role": "quasi", "hierarchy": {"prefix": 5}},
    "admission_route": "quasi",
    "admission_date": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "quarter", "year"]}},
    "length_of_stay": {"role": "quasi", "hierarchy": {"intervals": [[1, 3, 7, 14, 28], [7, 28]]}},
    "ward": "identifier",
    "diagnosis": {"role": "sensitive", "hierarchy": {"icd10": True}},
}


def fewest(table: pa.Table, method: str, *, person: bool) -> int:
    """The fewest values that the attack leaves anybody who is published."""
    privacy = {"l": L, "suppression": 0.1} | ({} if method == "anatomy" else {"k": 5})
    document = {"version": 1, "columns": COLUMNS, "privacy": privacy}
    policy = Policy.from_dict(document | ({"person": "patient_id"} if person else {}))
    engine = publisher(policy, "table", method, rng=Rng.from_seed(1))
    engine.push(table)
    (release,) = engine.close()
    original = engine.original()
    if method == "anatomy":
        classes = release.tables["qit"]["group"].to_pylist()
        values = {}
        for group, value in zip(*(release.tables["st"][name].to_pylist() for name in ("group", "value")), strict=True):
            values.setdefault(group, set()).add(value)
    else:
        data = release.tables["data"]
        classes = list(zip(*(data[name].to_pylist() for name in policy.quasi), strict=True))
        values = {}
        for label, value in zip(classes, data["diagnosis"].to_pylist(), strict=True):
            values.setdefault(label, set()).add(value)
    seen: dict[str, set[str]] = {}
    for label, who in zip(
        classes, original.table["patient_id"].take(pa.array(original.source_rows)).to_pylist(), strict=True
    ):
        seen[who] = seen.get(who, values[label]) & values[label]
    return min(map(len, seen.values()))


@pytest.fixture(scope="module")
def table():
    return visits.generate(1500, seed=1, mean=3.0)


@pytest.mark.parametrize("method", ["optimal", "local", "mondrian", "anatomy"])
def test_nobody_is_left_with_fewer_than_l_values(method, table):
    assert fewest(table, method, person=True) >= L


@pytest.mark.parametrize("method", ["local", "mondrian", "anatomy"])
def test_the_attack_works_where_records_are_counted(method, table):
    assert fewest(table, method, person=False) < L
