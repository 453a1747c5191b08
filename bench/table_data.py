"""Tables and policies of the table benchmarks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.policy import Policy

ADULT = Path(os.environ.get("RETICENT_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "adult"
QUASI = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class"]
SENSITIVE = "occupation"


def adult_policy(privacy: dict[str, Any]) -> Policy:
    """Return a policy for Adult's eight quasi-identifiers with their hierarchies."""
    columns = {
        name: {
            "role": "sensitive" if name == SENSITIVE else "quasi",
            "hierarchy": {"file": f"{ADULT}/adult_hierarchy_{name}.csv"},
        }
        for name in [*QUASI, SENSITIVE]
    }
    return Policy.from_dict({"version": 1, "columns": columns, "privacy": privacy})


def noisy(table: pa.Table, rows: int, share: float = 0.02, seed: int = 1) -> pa.Table:
    """Resample with replacement; replace each cell with this probability by one from another row."""
    rng = np.random.default_rng(seed)
    picked = rng.integers(0, table.num_rows, rows, dtype=np.int32)
    columns = {}
    for name in table.column_names:
        at = picked.copy()
        moved = np.flatnonzero(rng.random(rows, dtype=np.float32) < share)
        at[moved] = rng.integers(0, table.num_rows, len(moved), dtype=np.int32)
        columns[name] = table.column(name).combine_chunks().take(pa.array(at))
    return pa.table(columns)


def wide_hospital(rows: int) -> pa.Table:
    """Return the synthetic hospital with fifteen quasi-identifiers, some derived from its dates."""
    from reticent.datasets import hospital

    table = hospital.generate(rows, seed=1)
    birth, admitted = table.column("birth_date"), table.column("admission_date")
    stay = table.column("length_of_stay")
    left = pc.add(admitted.cast(pa.int32()), stay).cast(pa.date32())
    derived = {
        "age": pc.subtract(pc.year(admitted), pc.year(birth)),
        "discharge_date": left,
        "birth_month": pc.month(birth),
        "admission_weekday": pc.day_of_week(admitted),
        "discharge_weekday": pc.day_of_week(left),
        "season": pc.quarter(admitted),
        "initial": pc.utf8_slice_codeunits(table.column("name"), 0, 1),
    }
    table = table.drop_columns(["patient_id", "name"])
    for name, column in derived.items():
        table = table.append_column(name, column)
    return table


def wide_policy(seconds: float) -> Policy:
    """Return a policy with fifteen quasi-identifiers, k = 5 and at most 2 % of the records suppressed."""
    dates = {"dates": ["month", "quarter", "year"]}
    shapes: dict[str, Any] = {
        "birth_date": dates,
        "sex": None,
        "region": None,
        "postcode": {"prefix": 5},
        "admission_route": None,
        "admission_date": dates,
        "length_of_stay": {"intervals": [2, 4, 8, 16]},
        "ward": None,
        "age": {"intervals": [5, 10, 20, 40]},
        "discharge_date": dates,
        "birth_month": None,
        "admission_weekday": None,
        "discharge_weekday": None,
        "season": None,
        "initial": None,
    }
    columns: dict[str, Any] = {
        name: {"role": "quasi", "hierarchy": shape} if shape else "quasi" for name, shape in shapes.items()
    }
    columns["diagnosis"] = "sensitive"
    return Policy.from_dict(
        {"version": 1, "columns": columns, "privacy": {"k": 5, "suppression": 0.02}, "table": {"time_limit": seconds}}
    )
