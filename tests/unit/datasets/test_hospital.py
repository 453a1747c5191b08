from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reticent.datasets import hospital
from reticent.datasets.codes import CODES
from reticent.datasets.people import POSTCODES, REGIONS
from reticent.errors import PolicyError
from reticent.policy.icd10 import BLOCKS


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return hospital.generate(120_000, seed=3)


def ages(table: pa.Table) -> np.ndarray:
    born = table["birth_date"].to_numpy()
    return ((table["admission_date"].to_numpy() - born).astype(int) / 365.2425).astype(int)


def starts_with(table: pa.Table, *prefixes: str) -> np.ndarray:
    codes = table["diagnosis"].to_numpy(zero_copy_only=False).astype(str)
    return np.logical_or.reduce([np.char.startswith(codes, prefix) for prefix in prefixes])


def test_columns(table):
    assert table.column_names == [
        "patient_id",
        "name",
        "birth_date",
        "sex",
        "region",
        "postcode",
        "admission_route",
        "admission_date",
        "length_of_stay",
        "ward",
        "diagnosis",
    ]
    assert table.schema.field("birth_date").type == pa.date32()
    assert all(column.null_count == 0 for column in table.columns)


def test_one_row_per_person_and_names_repeat(table):
    assert len(pc.unique(table["patient_id"])) == len(table)
    assert len(pc.unique(table["name"])) < len(table) / 4


def test_diagnoses_are_many_with_a_long_tail(table):
    counts = np.sort(pc.value_counts(table["diagnosis"]).field("counts").to_numpy())[::-1]
    assert len(counts) >= 1_000
    assert 0.02 <= counts[0] / len(table) <= 0.04
    half = np.searchsorted(np.cumsum(counts), len(table) / 2)
    assert half < len(counts) / 6, "half of all patients share a small part of the codes"
    assert counts[len(counts) // 2] < counts[0] / 30


def test_every_code_lies_in_a_block():
    assert len(CODES) > 1_500
    assert all(any(first <= code <= last for first, last in BLOCKS) for code in CODES)


def test_sex_decides_what_is_possible(table):
    male = table["sex"].to_numpy(zero_copy_only=False) == "male"
    assert not (starts_with(table, "O", "C51", "C53", "C56", "N80", "N83") & male).any()
    assert not (starts_with(table, "C60", "C61", "C62", "N40") & ~male).any()
    assert starts_with(table, "O")[~male].mean() > 0.03
    breast = starts_with(table, "C50")
    assert breast[~male].mean() > 20 * breast[male].mean()


def test_age_decides_what_is_likely(table):
    age = ages(table)
    assert age.min() >= 0
    assert age.max() <= 107
    dementia = starts_with(table, "F00", "F01", "F03", "G30")
    assert age[dementia].min() >= 55
    assert dementia[age >= 80].mean() > 0.005
    pregnant = starts_with(table, "O")
    assert age[pregnant].min() >= 15
    assert age[pregnant].max() <= 50
    assert age[starts_with(table, "P")].max() <= 1
    heart = starts_with(table, "I")
    assert heart[age >= 75].mean() > 5 * heart[age < 30].mean()


def test_postcode_follows_region(table):
    for region in REGIONS:
        rows = table.filter(pc.equal(table["region"], region))
        assert len({code[:2] for code in rows["postcode"].to_pylist()}) <= 4
    prefixes: dict[str, set[str]] = {}
    for row in pa.table({"r": table["region"], "p": table["postcode"]}).group_by(["r", "p"]).aggregate([]).to_pylist():
        prefixes.setdefault(row["p"][:2], set()).add(row["r"])
    assert all(len(regions) == 1 for regions in prefixes.values())
    assert len(set(POSTCODES)) == len(POSTCODES)


def test_stay_route_and_dates(table):
    assert pc.min(table["length_of_stay"]).as_py() == 0
    assert pc.max(table["length_of_stay"]).as_py() <= 52
    assert pc.min(table["admission_date"]).as_py() >= dt.date(2025, 1, 1)
    assert pc.max(table["admission_date"]).as_py() <= dt.date(2025, 12, 31)
    births = pc.equal(table["admission_route"], "birth").to_numpy(zero_copy_only=False)
    assert ages(table)[births].max() <= 1


def test_patients_follow_the_law_of_their_age_and_sex(table):
    age, male = ages(table), table["sex"].to_numpy(zero_copy_only=False) == "male"
    rows = (age >= 65) & (age < 75) & ~male
    seen = np.bincount(pc.index_in(table["diagnosis"], pa.array(CODES)).to_numpy()[rows], minlength=len(CODES))
    expected = hospital.true_shares(70, "female") * rows.sum()
    assert (seen[expected == 0] == 0).mean() > 0.99, "rounded ages may lie in the next band"
    chi = ((seen - expected) ** 2)[expected > 5] / expected[expected > 5]
    assert len(chi) > 100
    assert chi.sum() < len(chi) + 5 * np.sqrt(2 * len(chi))


def test_law_refuses_nonsense():
    assert hospital.true_shares(0, "male").sum() == pytest.approx(1)
    for wrong in ((-1, "male"), (107, "male"), (5, "boy")):
        with pytest.raises(PolicyError):
            hospital.true_shares(*wrong)


def test_season_decides_the_day(table):
    month = pc.month(table["admission_date"]).to_numpy()
    winter, summer = np.isin(month, (1, 2)), np.isin(month, (7, 8))

    def ratio(*prefixes: str) -> float:
        rows = starts_with(table, *prefixes)
        return (rows & winter).sum() / (rows & summer).sum()

    assert ratio("J10", "J11") > 8
    assert ratio("J18", "J20", "J44") > 2
    assert ratio("A0") < 0.5
    assert ratio("K", "I", "S") == pytest.approx(59 / 62, rel=0.1)
