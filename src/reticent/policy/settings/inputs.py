"""The `fhir`, `sql` and `hl7` sections: how columns are read from data that is not a table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from reticent.policy.spec import Section, validation_error

MAPPINGS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("mappings.json").read_text(encoding="utf-8"))
"""The built-in mappings: what each column or table is read from."""

RESOURCES = (
    *("Encounter", "Patient", "Condition", "Observation", "Procedure", "MedicationRequest", "MedicationStatement"),
    *("MedicationAdministration", "DiagnosticReport", "Immunization"),
    # The built-in mappings use none of these; a policy can name paths in them.
    *("AllergyIntolerance", "CarePlan", "ClinicalImpression", "FamilyMemberHistory", "Flag", "Goal", "ImagingStudy"),
    *("MedicationDispense", "RiskAssessment", "ServiceRequest", "Specimen"),
)
"""Resource types that are read; they are joined through the references to an encounter."""

# Elements that contain free text or identify a person: such a column must not be released.
FREE_TEXT = frozenset(
    (
        *("text", "div", "display", "note", "description", "comment", "name", "line"),
        *("contact", "telecom", "title", "valueString", "data", "photo", "patientInstruction"),
    )
)
POINTERS = frozenset(("reference", "identifier", "id", "fullUrl", "url"))

_PATH = re.compile(r"^[A-Z][A-Za-z]+(\.[A-Za-z]|\b).*$")


class FhirColumn(Section):
    """One column: a path, and how its value is read; the short form is the path alone."""

    short_key = "path"

    path: str
    until: str | None = Field(default=None, description="with `as: days`, the later of the two dates")
    read_as: Literal["text", "date", "days"] = Field(
        default="text", alias="as", description="unchanged text, the day of a time, or the days from path to until"
    )

    @model_validator(mode="after")
    def _check_paths(self) -> FhirColumn:
        for path in filter(None, (self.path, self.until)):
            if path.split(".")[0] not in RESOURCES or not _PATH.match(path):
                raise validation_error(
                    f"a path must start with one of {', '.join(RESOURCES)}, such as Patient.birthDate."
                )
        if (self.until is not None) != (self.read_as == "days"):
            raise validation_error("write until and 'as: days' together.")
        if self.until is not None and self.until.split(".")[0] != self.resource:
            raise validation_error("path and until must be of the same resource.")
        return self

    @property
    def resource(self) -> str:
        """The resource type the path starts from."""
        return self.path.split(".")[0]

    @property
    def write_path(self) -> str:
        """The path to which a released cell is written back; empty for a number of days, which has no element."""
        return "" if self.read_as == "days" else self.path

    @property
    def private_reason(self) -> str | None:
        """Why the column must not be released; None if it may be released."""
        words = set(re.findall(r"[A-Za-z]+", re.sub(r"'[^']*'", "", self.path)))
        if words & FREE_TEXT:
            return "free text may contain anything about a person"
        if set(self.path.rsplit(".", 1)[-1:]) & POINTERS or words & {"reference", "identifier"}:
            return "references and identifiers identify a person"
        return None


class FhirSettings(Section):
    """How FHIR resources become rows, one per encounter; `fhir: encounters` is a built-in mapping."""

    short_key = "mapping"

    mapping: Literal["encounters"] | None = Field(default=None, description="built-in mapping to start from")
    columns: dict[str, FhirColumn] = Field(default_factory=dict, description="column: path, added to the mapping")
    diagnoses: Literal["all", "first"] = Field(
        default="all", description="one row for each distinct condition of an encounter, or only for the first"
    )

    @property
    def paths(self) -> dict[str, FhirColumn]:
        """Every column with its path."""
        ready = MAPPINGS[self.mapping] if self.mapping else {}
        return {name: FhirColumn.model_validate(path) for name, path in ready.items()} | self.columns


# One pass over the conditions: with a subquery per visit, a planner without statistics scans the table each time.
_OMOP_VISITS = Path(__file__).with_name("omop_visits.sql").read_text(encoding="utf-8").rstrip()
_OMOP_SEX = """COALESCE(g.concept_name, CASE p.gender_concept_id WHEN 8507 THEN 'MALE' WHEN 8532 THEN 'FEMALE' ELSE 'UNKNOWN' END)"""
_OMOP_NAMES = "\nLEFT JOIN {vocabulary}concept g ON g.concept_id = p.gender_concept_id"
_OMOP_CONDITIONS = {
    "all": "SELECT DISTINCT visit_occurrence_id, {code} AS diagnosis FROM {schema}condition_occurrence",
    "first": "SELECT o.visit_occurrence_id, o.{code} AS diagnosis FROM {schema}condition_occurrence o"
    " JOIN (SELECT MIN(condition_occurrence_id) AS first_id FROM {schema}condition_occurrence GROUP BY visit_occurrence_id) f"
    " ON f.first_id = o.condition_occurrence_id",
}
SCHEMA_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$")


class SqlSettings(Section):
    """The query that reads a database; `sql: omop` is a built-in query for the OMOP common data model."""

    short_key = "mapping"

    mapping: Literal["omop"] | None = Field(default=None, description="built-in query: one row per visit and diagnosis")
    query: str | None = Field(default=None, min_length=1, description="one SELECT statement that returns the columns")
    schema_name: str | None = Field(default=None, alias="schema", description="schema of the OMOP tables, such as cdm")
    vocabulary: str | None = Field(default=None, description="schema of the table concept, if it differs")
    codes: Literal["source", "concept"] = Field(
        default="source", description="read diagnosis and sex as source value and name, or as concept id"
    )
    diagnoses: Literal["all", "first"] = Field(
        default="all", description="one row for each distinct diagnosis of a visit, or only for the first"
    )

    @model_validator(mode="after")
    def _check_query(self) -> SqlSettings:
        if (self.mapping is None) == (self.query is None):
            raise validation_error("write exactly one of: mapping, query.")
        for name in filter(None, (self.schema_name, self.vocabulary)):
            if not SCHEMA_NAME.match(name):
                raise validation_error("a schema must be a plain name, such as cdm or hospital.cdm.")
        return self

    @property
    def statement(self) -> str:
        """The query to run."""
        if self.query is not None:
            return self.query
        schema = f"{self.schema_name}." if self.schema_name else ""
        vocabulary = f"{self.vocabulary}." if self.vocabulary else schema
        concepts = self.codes == "concept"
        code = "condition_concept_id" if concepts else "condition_source_value"
        return _OMOP_VISITS.format(
            schema=schema,
            sex="p.gender_concept_id" if concepts else _OMOP_SEX,
            names="" if concepts else _OMOP_NAMES.format(vocabulary=vocabulary),
            conditions=_OMOP_CONDITIONS[self.diagnoses].format(schema=schema, code=code),
        )


_FIELD = re.compile(r"^[A-Z][A-Z0-9]{2}-[1-9][0-9]*(\.[1-9][0-9]*)?$")


class Hl7Settings(Section):
    """How HL7 v2 messages become records; `hl7: adt` is a built-in mapping."""

    short_key = "mapping"

    mapping: Literal["adt"] | None = Field(default=None, description="built-in mapping to start from")
    columns: dict[str, str] = Field(default_factory=dict, description="column: field, such as PID-8 or DG1-3.1")
    events: tuple[str, ...] = Field(default=("A01", "A04"), description="trigger events that become records")

    @model_validator(mode="after")
    def _check_fields(self) -> Hl7Settings:
        for place in self.columns.values():
            if not _FIELD.match(place):
                raise validation_error("write a field as PID-8 or DG1-3.1.")
        return self

    @property
    def paths(self) -> dict[str, str]:
        """Every column with its field."""
        return (MAPPINGS[self.mapping] if self.mapping else {}) | self.columns
