"""Where columns come from when the data is no table yet: the `fhir`, `sql` and `hl7` sections."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from reticent.policy.section import Section, unknown

RESOURCES = ("Encounter", "Patient", "Condition", "Observation")

# Elements that hold what a person wrote, or point at a person: such a column must stay inside.
FREE_TEXT = frozenset(
    (
        *("text", "div", "display", "note", "description", "comment", "name", "line"),
        *("contact", "telecom", "title", "valueString", "data", "photo", "patientInstruction"),
    )
)
POINTERS = frozenset(("reference", "identifier", "id", "fullUrl", "url"))

_PATH = re.compile(r"^[A-Z][A-Za-z]+(\.[A-Za-z]|\b).*$")


class FhirColumn(Section):
    """One column: a path, and what becomes of its value; a path alone is the short form."""

    path: str
    until: str | None = Field(default=None, description="with `as: days`, the later of the two dates")
    read_as: Literal["text", "date", "days"] = Field(
        default="text", alias="as", description="text as it is, the day of a time, or days from path to until"
    )

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _sound(self) -> FhirColumn:
        for path in filter(None, (self.path, self.until)):
            if path.split(".")[0] not in RESOURCES or not _PATH.match(path):
                text = f"a path starts with one of {', '.join(RESOURCES)}, such as Patient.birthDate."
                raise PydanticCustomError("path", "{text}", {"text": text})
        if (self.until is not None) != (self.read_as == "days"):
            raise PydanticCustomError("until", "write until and 'as: days' together.")
        if self.until is not None and self.until.split(".")[0] != self.resource:
            raise PydanticCustomError("until", "both dates must be of the same resource.")
        return self

    @property
    def resource(self) -> str:
        """The resource type the path starts from."""
        return self.path.split(".")[0]

    @property
    def private(self) -> str | None:
        """Why the column must stay inside, if it must."""
        words = set(re.findall(r"[A-Za-z]+", re.sub(r"'[^']*'", "", self.path)))
        if words & FREE_TEXT:
            return "free text may say anything about a person"
        if set(self.path.rsplit(".", 1)[-1:]) & POINTERS or words & {"reference", "identifier"}:
            return "references and identifiers point at a person"
        return None


READY_FHIR: dict[str, dict[str, Any]] = {
    "encounters": {
        "patient_id": "Encounter.subject.reference",
        "encounter_id": "Encounter.id",
        "birth_date": {"path": "Patient.birthDate", "as": "date"},
        "sex": "Patient.gender",
        "region": "Patient.address.state",
        "postcode": "Patient.address.postalCode",
        "encounter_class": "Encounter.class.code",
        "admission_date": {"path": "Encounter.period.start", "as": "date"},
        "length_of_stay": {"path": "Encounter.period.start", "until": "Encounter.period.end", "as": "days"},
        "diagnosis": "Condition.code.coding.code",
    }
}


class FhirSettings(Section):
    """How FHIR resources become rows, one per encounter; `fhir: encounters` is the ready mapping."""

    mapping: Literal["encounters"] | None = Field(default=None, description="a ready mapping to start from")
    columns: dict[str, FhirColumn] = Field(default_factory=dict, description="column: path, added to the mapping")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"mapping": value}
        return value

    @property
    def paths(self) -> dict[str, FhirColumn]:
        """Every column with its path."""
        ready = READY_FHIR[self.mapping] if self.mapping else {}
        return {name: FhirColumn.model_validate(path) for name, path in ready.items()} | self.columns


# The first condition of every visit in one pass: asked visit by visit, a planner without statistics reads the table each time.
OMOP_VISITS = """\
SELECT v.person_id AS person_id,
       v.visit_occurrence_id AS visit_id,
       p.year_of_birth AS year_of_birth,
       COALESCE(g.concept_name, CAST(p.gender_concept_id AS VARCHAR(20))) AS sex,
       l.zip AS postcode,
       l.state AS region,
       v.visit_concept_id AS visit_type,
       v.visit_start_date AS admission_date,
       c.condition_source_value AS diagnosis
FROM visit_occurrence v
JOIN person p ON p.person_id = v.person_id
LEFT JOIN location l ON l.location_id = p.location_id
LEFT JOIN concept g ON g.concept_id = p.gender_concept_id
LEFT JOIN (SELECT visit_occurrence_id, MIN(condition_occurrence_id) AS condition_occurrence_id
           FROM condition_occurrence GROUP BY visit_occurrence_id) f ON f.visit_occurrence_id = v.visit_occurrence_id
LEFT JOIN condition_occurrence c ON c.condition_occurrence_id = f.condition_occurrence_id
ORDER BY v.visit_occurrence_id"""

READY_SQL = {"omop": OMOP_VISITS}


class SqlSettings(Section):
    """Which query a database answers; `sql: omop` is ready for the OMOP common data model."""

    mapping: Literal["omop"] | None = Field(default=None, description="a ready query: one row per visit")
    query: str | None = Field(default=None, min_length=1, description="one SELECT; its columns are the table's")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value not in READY_SQL:
                raise PydanticCustomError("sql", "{text}", {"text": unknown(value, tuple(READY_SQL))})
            return {"mapping": value}
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> SqlSettings:
        if (self.mapping is None) == (self.query is None):
            raise PydanticCustomError("one", "write exactly one of: mapping, query.")
        return self

    @property
    def statement(self) -> str:
        """The query to run."""
        return self.query if self.query is not None else READY_SQL[str(self.mapping)]


READY_HL7: dict[str, dict[str, str]] = {
    "adt": {
        "patient_id": "PID-3.1",
        "birth_date": "PID-7",
        "sex": "PID-8",
        "postcode": "PID-11.5",
        "patient_class": "PV1-2",
        "admitted": "PV1-44",
        "diagnosis": "DG1-3.1",
    }
}
_FIELD = re.compile(r"^[A-Z][A-Z0-9]{2}-[1-9][0-9]*(\.[1-9][0-9]*)?$")


class Hl7Settings(Section):
    """How HL7 v2 messages become records; `hl7: adt` is the ready mapping."""

    mapping: Literal["adt"] | None = Field(default=None, description="a ready mapping to start from")
    columns: dict[str, str] = Field(default_factory=dict, description="column: field, such as PID-8 or DG1-3.1")
    events: tuple[str, ...] = Field(default=("A01", "A04"), description="trigger events that are records")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"mapping": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fields(self) -> Hl7Settings:
        for place in self.columns.values():
            if not _FIELD.match(place):
                raise PydanticCustomError("field", "a field is written as PID-8 or DG1-3.1.")
        return self

    @property
    def paths(self) -> dict[str, str]:
        """Every column with its field."""
        return (READY_HL7[self.mapping] if self.mapping else {}) | self.columns
