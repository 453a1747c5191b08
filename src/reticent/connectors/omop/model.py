"""Tables and columns of the OMOP common data model 5.4 that a release may fill, in the order of the model.

Reference: Observational Health Data Sciences and Informatics, "OMOP Common Data Model v5.4", 2021.
"""

from __future__ import annotations

_DETAIL = ("provider_id", "visit_occurrence_id", "visit_detail_id")
TABLES: dict[str, tuple[str, ...]] = {
    "location": (
        *("location_id", "address_1", "address_2", "city", "state", "zip", "county", "location_source_value"),
        *("country_concept_id", "country_source_value", "latitude", "longitude"),
    ),
    "person": (
        *("person_id", "gender_concept_id", "year_of_birth", "month_of_birth", "day_of_birth", "birth_datetime"),
        *("race_concept_id", "ethnicity_concept_id", "location_id", "provider_id", "care_site_id"),
        *("person_source_value", "gender_source_value", "gender_source_concept_id", "race_source_value"),
        *("race_source_concept_id", "ethnicity_source_value", "ethnicity_source_concept_id"),
    ),
    "visit_occurrence": (
        *("visit_occurrence_id", "person_id", "visit_concept_id", "visit_start_date", "visit_start_datetime"),
        *("visit_end_date", "visit_end_datetime", "visit_type_concept_id", "provider_id", "care_site_id"),
        *("visit_source_value", "visit_source_concept_id", "admitted_from_concept_id", "admitted_from_source_value"),
        *("discharged_to_concept_id", "discharged_to_source_value", "preceding_visit_occurrence_id"),
    ),
    "condition_occurrence": (
        *("condition_occurrence_id", "person_id", "condition_concept_id", "condition_start_date"),
        *("condition_start_datetime", "condition_end_date", "condition_end_datetime", "condition_type_concept_id"),
        *("condition_status_concept_id", "stop_reason", *_DETAIL, "condition_source_value"),
        *("condition_source_concept_id", "condition_status_source_value"),
    ),
    "drug_exposure": (
        *("drug_exposure_id", "person_id", "drug_concept_id", "drug_exposure_start_date"),
        *("drug_exposure_start_datetime", "drug_exposure_end_date", "drug_exposure_end_datetime", "verbatim_end_date"),
        *("drug_type_concept_id", "stop_reason", "refills", "quantity", "days_supply", "sig", "route_concept_id"),
        *("lot_number", *_DETAIL, "drug_source_value", "drug_source_concept_id", "route_source_value"),
        "dose_unit_source_value",
    ),
    "procedure_occurrence": (
        *("procedure_occurrence_id", "person_id", "procedure_concept_id", "procedure_date", "procedure_datetime"),
        *("procedure_end_date", "procedure_end_datetime", "procedure_type_concept_id", "modifier_concept_id"),
        *("quantity", *_DETAIL, "procedure_source_value", "procedure_source_concept_id", "modifier_source_value"),
    ),
    "measurement": (
        *("measurement_id", "person_id", "measurement_concept_id", "measurement_date", "measurement_datetime"),
        *("measurement_time", "measurement_type_concept_id", "operator_concept_id", "value_as_number"),
        *("value_as_concept_id", "unit_concept_id", "range_low", "range_high", *_DETAIL, "measurement_source_value"),
        *("measurement_source_concept_id", "unit_source_value", "unit_source_concept_id", "value_source_value"),
        *("measurement_event_id", "meas_event_field_concept_id"),
    ),
    "death": (
        *("person_id", "death_date", "death_datetime", "death_type_concept_id", "cause_concept_id"),
        *("cause_source_value", "cause_source_concept_id"),
    ),
    "cdm_source": (
        *("cdm_source_name", "cdm_source_abbreviation", "cdm_holder", "source_description"),
        *("source_documentation_reference", "cdm_etl_reference", "source_release_date", "cdm_release_date"),
        *("cdm_version", "cdm_version_concept_id", "vocabulary_version"),
    ),
}
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
