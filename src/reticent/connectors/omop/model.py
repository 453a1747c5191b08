"""Tables and columns of the OMOP common data model 5.4 that a release may fill, in the order of the model.

The tables are in `model.txt`.

Reference: Observational Health Data Sciences and Informatics, "OMOP Common Data Model v5.4", 2021.
"""

from __future__ import annotations

from pathlib import Path

_LINES = [line.split(": ") for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()]
TABLES: dict[str, tuple[str, ...]] = {table: tuple(columns.split()) for table, columns in _LINES}
"""Columns by table; referenced tables come first."""

REQUIRED_CONCEPTS: dict[str, tuple[str, ...]] = {
    "person": ("gender_concept_id", "race_concept_id", "ethnicity_concept_id"),
    "visit_occurrence": ("visit_concept_id", "visit_type_concept_id"),
    "condition_occurrence": ("condition_concept_id", "condition_type_concept_id"),
    "drug_exposure": ("drug_concept_id", "drug_type_concept_id"),
    "procedure_occurrence": ("procedure_concept_id", "procedure_type_concept_id"),
    "measurement": ("measurement_concept_id", "measurement_type_concept_id"),
}
"""Concepts that the model requires: 0 ("not known") if the policy does not release them."""

_NUMERIC_COLUMNS = ("value_as_number", "range_low", "range_high", "quantity", "latitude", "longitude")
_INTEGER_COLUMNS = ("year_of_birth", "month_of_birth", "day_of_birth", "refills", "days_supply")
_TEXT_COLUMNS = ("sig", "source_description")
_WIDE_COLUMNS = ("cdm_source_name", "cdm_holder", "source_documentation_reference", "cdm_etl_reference")


def table_definition(table: str, extra: tuple[str, ...]) -> str:
    """Return the columns of a table with types and keys, as SQL; the `extra` columns come last."""
    return ", ".join(f"{name} {_type(table, name)}" for name in (*TABLES[table], *extra))


def _type(table: str, name: str) -> str:
    own = "person_id" if table == "death" else f"{table}_id"
    if name.endswith("_id"):
        key = " PRIMARY KEY" if name == own else ""
        home = {"person_id": "person", "visit_occurrence_id": "visit_occurrence", "location_id": "location"}.get(name)
        must = " NOT NULL" if name in REQUIRED_CONCEPTS.get(table, ()) or (name == "person_id" and not key) else ""
        return f"INTEGER{key}{must}" + (f" REFERENCES {home} ({name})" if home is not None and home != table else "")
    if name.endswith("_date"):
        return "DATE"
    if name.endswith("_datetime"):
        return "TIMESTAMP"
    if name in _TEXT_COLUMNS:
        return "TEXT"
    if name in _WIDE_COLUMNS:
        return "VARCHAR(255)"
    return "NUMERIC" if name in _NUMERIC_COLUMNS else "INTEGER" if name in _INTEGER_COLUMNS else "VARCHAR(50)"
