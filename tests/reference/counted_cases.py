"""Rows and policies of the tests of tables that are counted elsewhere, on Spark and in DuckDB."""

from __future__ import annotations

import unicodedata

import pyarrow as pa

from reticent import Policy
from reticent.datasets import census

COLUMNS = {
    "person_id": "identifier",
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
    "gender": "quasi",
    "marital_status": "quasi",
    "education": {"role": "quasi", "hierarchy": {"intervals": [3, 6]}},
    "occupation": {"role": "sensitive", "hierarchy": {"prefix": 3}},
}
REQUIREMENTS = [
    {"k": 5, "suppression": 0.02},
    {"k": 5, "l": 3, "suppression": 0.05},
    {"k": 3, "l": {"entropy": 3}, "suppression": 0.1},
    {"k": 3, "l": {"frequency": 3}, "suppression": 0.1},
    {"k": 3, "t": 0.3, "suppression": 0.1},
    {"k": 3, "t": {"hierarchical": 0.2}, "suppression": 0.1},
    {"k": 3, "l": {"recursive": [3, 2]}, "t": {"ordered": 0.3}, "suppression": 0.1},
]


def rows(n: int = 4000) -> pa.Table:
    table = census.generate(n, seed=3, layout="m-distinct")
    table = table.rename_columns(["person_id" if "id" in name else name for name in table.column_names])
    education = table.column("education")
    if not pa.types.is_integer(education.type):
        numbers = education.dictionary_encode().combine_chunks()
        numbers = numbers.chunk(0) if isinstance(numbers, pa.ChunkedArray) else numbers
        at = table.column_names.index("education")
        table = table.set_column(at, "education", numbers.indices.cast(pa.int64()))
    # Missing values are values: some ages and occupations are unknown.
    for name in ("age", "occupation"):
        values = table.column(name).to_pylist()
        values[:: 97 if name == "age" else 101] = [None] * len(values[:: 97 if name == "age" else 101])
        table = table.set_column(table.column_names.index(name), name, pa.array(values, table.column(name).type))
    return table.select(list(COLUMNS))


def policy(privacy: dict, **table: object) -> Policy:
    return Policy.from_dict(
        {"version": 1, "person": "person_id", "columns": COLUMNS, "privacy": privacy, "table": table}
    )


def as_sorted(table: pa.Table) -> list[tuple]:
    columns = [table.column(name).to_pylist() for name in sorted(table.column_names)]
    return sorted(zip(*columns, strict=True), key=repr)


PARTING = {"k": 3, "l": {"frequency": 3}, "suppression": 0.1}
"""Under it `local` parts rows of these tables that are equal in quasi-identifiers and sensitive values."""


def noted() -> tuple[pa.Table, Policy]:
    """Rows whose plain column `note` repeats their other cells, and a policy under which equal rows are parted."""
    table = rows()
    notes = ["|".join(map(str, row.values())) for row in table.drop_columns(["occupation"]).to_pylist()]
    rules = {"version": 1, "columns": COLUMNS | {"note": "plain"}, "privacy": PARTING, "table": {"method": "local"}}
    return table.append_column("note", pa.array(notes)), Policy.from_dict(rules)


def in_their_place(published: pa.Table) -> bool:
    """Whether every row of `noted` has the cells that its note names, or coarser ones."""
    notes = [str(note).split("|") for note in published.column("note").to_pylist()]
    shown = {at: published.column(name).to_pylist() for at, name in enumerate(COLUMNS) if at in (2, 3)}
    return len({note[0] for note in notes}) == len(notes) and all(
        str(cell) in ("*", note[at]) for at, cells in shown.items() for cell, note in zip(cells, notes, strict=True)
    )


_WAYS = (" {}", "{}  ", "{}.0", "\u200b{}", "{}\u00a0", "{}\u034f", "{}\x00")
_WIDE = {ord("0") + digit: 0xFF10 + digit for digit in range(10)}


def written_in_two_ways(n: int = 3000) -> tuple[pa.Table, pa.Table]:
    """Rows of persons with two records each: once under one name, once with a variant of it in every second record."""
    table = rows(n)
    names = [str(i // 2) if i % 8 > 1 else f"Zo\u00eb {i // 2}" for i in range(n)]
    odd = [name.translate(_WIDE) if i % 3 else _WAYS[i // 3 % len(_WAYS)].format(name) for i, name in enumerate(names)]
    odd = [unicodedata.normalize("NFD", o) if "Zo" in name else o for o, name in zip(odd, names, strict=True)]
    odd = [o[:-2] if "Zo" in o and o.endswith(".0") else o for o in odd]
    mixed = [odd[i] if i % 2 else name for i, name in enumerate(names)]
    at = table.column_names.index("person_id")
    whole, parted = (table.set_column(at, "person_id", pa.array(column)) for column in (names, mixed))
    return whole, parted
