"""A released table taken apart again: each row a patient, an encounter and what belongs to it, candidates as lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from reticent.policy import Policy


def flat_tables(data: pa.Table, policy: Policy) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """The tables that a released table stands for, and the path of each column.

    Rows of one person are told as one only where the release tells so itself, by a column `person`.
    """
    assert policy.fhir is not None  # noqa: S101 - the caller looked
    rows = range(1, data.num_rows + 1)
    persons = data["person"] if "person" in data.column_names else pa.array([f"p{row}" for row in rows])
    links = {"person": persons, "visit": pa.array([f"v{row}" for row in rows])}
    tables = {"Patient": {"person": persons}, "Encounter": dict(links)}
    paths: dict[str, dict[str, str]] = {"Patient": {}, "Encounter": {}}
    for name, column in policy.fhir.paths.items():
        cells = _cells(data, name)
        if cells is not None:
            tables.setdefault(column.resource, dict(links))[name] = cells
            paths.setdefault(column.resource, {})[name] = column.place
    out = {kind: pa.table(columns) for kind, columns in tables.items()}
    out["Patient"] = _once(out["Patient"])
    return out, {"standard": "fhir", "version": "R4", "tables": paths}


def _cells(data: pa.Table, name: str) -> pa.Array | pa.ChunkedArray | None:
    """A column of the release; the candidates of a veiled one side by side."""
    if name in data.column_names:
        return data[name]
    slots = [
        column
        for column in data.column_names
        if column.rpartition("_")[0] == name and column[len(name) + 1 :].isdigit()
    ]
    if not slots:
        return None
    return pa.array([list(row) for row in zip(*(data[slot].to_pylist() for slot in slots), strict=True)])


def _once(patients: pa.Table) -> pa.Table:
    """The first row of each person."""
    first: dict[str, int] = {}
    for row, person in enumerate(patients["person"].to_pylist()):
        first.setdefault(person, row)
    return patients.take(pa.array(list(first.values()), pa.int64()))
