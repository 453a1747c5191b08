"""The `tables` section: several tables of the same persons."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from reticent.policy.settings.inputs import MAPPINGS, SCHEMA_NAME, FhirColumn
from reticent.policy.spec import Section, validation_error

if TYPE_CHECKING:
    from reticent.policy.policy import Policy

PERSON, VISIT = "person", "visit"
"""The columns that link the tables of a release: pseudonyms, new in every release."""

_FHIR, _OMOP = MAPPINGS["fhir"], MAPPINGS["omop"]
"""The built-in columns of FHIR with their paths, which begin with their table; the built-in tables of OMOP."""
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class LinkedTable(Section):
    """One table: its person and visit columns, and the columns of the policy that it contains."""

    person: str = Field(description="column that identifies the person")
    visit: str | None = Field(default=None, description="column that identifies the visit, if the table has one")
    key: str | None = Field(
        default=None, description="primary key of the table of persons or of visits: its person or visit column"
    )
    columns: tuple[str, ...] = Field(default=(), description="columns of the policy that are in this table")


class LinkedSettings(Section):
    """Tables of the same persons; with the built-in `tables: fhir` and `tables: omop`, only columns of the policy are read."""

    short_key = "mapping"

    mapping: Literal["fhir", "omop"] | None = Field(default=None, description="built-in tables of a standard")
    schema_name: str | None = Field(default=None, alias="schema", description="schema of the OMOP tables, such as cdm")
    columns: dict[str, FhirColumn] = Field(default_factory=dict, description="fhir: column: path, added to the mapping")
    rows: dict[str, int] = Field(
        default_factory=dict, description="table: largest number of rows per person; the earliest are kept"
    )
    uncounted: tuple[str, ...] = Field(
        default=(),
        description="tables whose number of rows per person the attacker cannot know; without quasi-identifiers",
    )
    row_weight: float = Field(
        default=4.0,
        gt=0,
        description="weight of a lost row relative to a lost column; a larger weight keeps more rows and coarser cells",
    )
    tables: dict[str, LinkedTable] = Field(default_factory=dict, description="your own tables, by name")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, dict) and "method" in value:
            raise validation_error("'tables' is for several tables of the same persons; did you mean 'table'?")
        if isinstance(value, dict) and value and not set(value) & {"mapping", "tables"}:
            return {"tables": value}
        return value

    @model_validator(mode="after")
    def _check_settings(self) -> LinkedSettings:
        if (self.mapping is None) == (not self.tables):
            raise validation_error("write either a mapping (fhir, omop) or your own tables.")
        if self.schema_name is not None and not SCHEMA_NAME.match(self.schema_name):
            raise validation_error("a schema must be a plain name, such as cdm or hospital.cdm.")
        if not all(map(_NAME.match, self.tables)):
            raise validation_error("a table name may contain only letters, digits and _.")
        names = [name for table in self.tables.values() for name in table.columns]
        if len(set(names)) < len(names):
            raise validation_error("a column is listed in two tables; rename one of them.")
        for table in self.tables.values():
            if table.key is not None and table.key not in (table.person, table.visit):
                raise validation_error("key must be the person column or the visit column of the table.")
        visit_tables = sum(table.key is not None and table.key == table.visit for table in self.tables.values())
        if visit_tables != any(table.visit is not None for table in self.tables.values()):
            raise validation_error("exactly one table must be the table of visits: set its key to its visit column.")
        return self

    @cached_property
    def paths(self) -> dict[str, FhirColumn]:
        """Every column of the FHIR mapping with its path."""
        if self.mapping != "fhir":
            return {}
        return {name: FhirColumn.model_validate(path) for name, path in _FHIR.items()} | self.columns

    def layout(self, names: tuple[str, ...]) -> dict[str, Layout]:
        """Return the tables that contain the named columns, persons and visits first; others are not read."""
        builtin = _OMOP if self.mapping == "omop" else dict.fromkeys(column.resource for column in self.paths.values())
        tables = [self._layout(table, names) for table in (*builtin, *self.tables)]
        used = [table for table in tables if table.columns or table.of_persons or table.of_visits]
        return {table.name: table for table in sorted(used, key=lambda one: (not one.of_persons, not one.of_visits))}

    def _layout(self, table: str, names: tuple[str, ...]) -> Layout:
        own = self.tables.get(table)
        if own is not None:
            columns = tuple(name for name in names if name in own.columns)
            of_visits = own.visit is not None and own.key == own.visit
            return Layout(table, own.person, own.visit, own.key == own.person, of_visits, columns)
        if self.mapping == "fhir":
            columns = tuple(name for name in names if name in self.paths and self.paths[name].resource == table)
            return Layout(table, "", "", table == "Patient", table == "Encounter", columns)
        columns = tuple(name for name in names if name in _OMOP[table])
        visit = None if table in ("person", "death") else "visit_occurrence_id"
        return Layout(table, "person_id", visit, table == "person", table == "visit_occurrence", columns)


def check_tables(policy: Policy, settings: LinkedSettings) -> None:
    """Refuse a policy whose tables and columns do not fit together."""
    if policy.person is None:
        raise validation_error("tables: linked tables need person: COLUMN, and the role identifier for that column.")
    if policy.persons is not None and policy.persons.records != "all":
        raise validation_error(
            "person.records must be all for linked tables; to release only the first row of each person, write "
            "tables: {mapping: ..., rows: {TABLE: 1}}."
        )
    table_columns = {name for table in settings.layout(policy.released).values() for name in table.columns}
    for name in policy.released:
        column = policy.columns[name]
        if name in (PERSON, VISIT):
            raise validation_error(f"columns: '{name}' is reserved for the release; rename the column.")
        if name not in table_columns:
            raise validation_error(f"tables: column '{name}' is in no table; add it to the columns of a table.")
        if column.combine is not None or (column.transform is not None and column.transform.pseudonym is not None):
            raise validation_error(f"columns: '{name}': linked tables allow neither combine nor pseudonym; remove it.")
    _check_dates(policy, settings)
    _check_uncounted_tables(policy, settings)
    shifts = {
        column.transform.shift for column in policy.columns.values() if column.transform and column.transform.shift
    }
    if len(shifts) > 1:
        raise validation_error(
            "columns: all dates of a person are shifted together; write the same shift for all of them."
        )
    l = policy.privacy.l
    if policy.privacy.t is not None or (l is not None and l.kind not in ("distinct", "frequency")):
        raise validation_error("privacy: linked tables support only k, l: {distinct: ...} and l: {frequency: ...}.")
    if not policy.quasi:
        raise validation_error("tables: there is no quasi-identifier; give at least one column the role quasi.")


def _check_dates(policy: Policy, settings: LinkedSettings) -> None:
    """Refuse dates that are not quasi-identifiers: an attacker who knows the days of a visit finds its rows in every table."""
    for name in (*policy.sensitive, *policy.plain):
        column = policy.columns[name]
        shifted = column.transform is not None and column.transform.shift is not None
        date_levels = column.hierarchy is not None and column.hierarchy.kind == "dates"
        read_as_date = name in settings.paths and settings.paths[name].read_as != "text"
        if shifted or date_levels or read_as_date or (settings.mapping == "omop" and name.endswith("_date")):
            raise validation_error(
                f"columns: '{name}' is a date or a number of days, by which an attacker can link tables; give it the role quasi "
                "and a hierarchy such as {dates: [day, month, year]}, or the role identifier."
            )


def _check_uncounted_tables(policy: Policy, settings: LinkedSettings) -> None:
    for table in settings.uncounted:
        layout = settings.layout(policy.released).get(table)
        if layout is None or layout.of_persons or layout.of_visits or set(layout.columns) & set(policy.quasi):
            raise validation_error(
                f"tables.uncounted: '{table}' must be a table other than persons and visits, without quasi-identifiers."
            )


@dataclass(frozen=True)
class Layout:
    """A table of the input: its key columns, whether it is the table of persons or visits, and its policy columns."""

    name: str
    person: str
    visit: str | None
    of_persons: bool
    of_visits: bool
    columns: tuple[str, ...]

    @property
    def link_columns(self) -> tuple[str, ...]:
        """The columns of the release that link the table."""
        return (PERSON,) if self.of_persons or self.visit is None else (PERSON, VISIT)
