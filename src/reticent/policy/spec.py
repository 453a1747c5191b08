"""Policy settings of one column: its role, its hierarchy, and how its values may change.

`Section` is the base class of every part of a policy: frozen, strict, with suggestions for misspelled keys.
"""

from __future__ import annotations

import difflib
from itertools import pairwise
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from reticent.policy import former
from reticent.policy.labels import strptime_format


class Section(BaseModel):
    """A part of a policy; it refuses unknown keys and suggests the nearest known one."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)
    short_key: ClassVar[str] = ""
    """The key that a plain text value is assigned to."""

    @property
    def keeps(self) -> str:
        """Which of k, l and t the releases of this section satisfy; unchanged quasi-identifiers cannot satisfy k."""
        return "l"

    @classmethod
    def _new_name(cls, key: Any) -> str | None:
        """What a former key is called now; None if it never was one."""
        pairs = (former.POLICY_KEYS.get(base.__name__, {}) for base in cls.__mro__)
        return next((names[key] for names in pairs if key in names), None)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if cls.short_key and isinstance(value, str):
            return {cls.short_key: value}
        if isinstance(value, dict):
            known = sorted({field.alias or name for name, field in cls.model_fields.items()} | set(cls.model_fields))
            for key in value:
                if new := cls._new_name(key):
                    raise validation_error(f"'{key}' is now called '{new}'. Write {new} instead.", str(key))
                if key not in known:
                    raise validation_error(unknown_word_message(str(key), known), str(key))
        return value


class KindSection(Section):
    """Settings of one kind of release."""


class FileRef(Section):
    """A file in the policy's folder."""

    file: str


def validation_error(text: str, key: str | None = None) -> PydanticCustomError:
    """Return a validation error; with a key, the message names the line of that entry."""
    return PydanticCustomError("wrong", "{text}", {"text": text} if key is None else {"text": text, "key": key})


_MAX_LISTED = 20
"""Known words that a message lists at most; a table may have hundreds of columns."""


def unknown_word_message(word: object, known: list[str] | tuple[str, ...]) -> str:
    """Return a message that a word is unknown, with the most similar known word."""
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=0.6)
    if near:
        return f"'{word}' is unknown here; did you mean '{near[0]}'?"
    more = f" and {len(known) - _MAX_LISTED} more" if len(known) > _MAX_LISTED else ""
    return f"'{word}' is unknown here; write one of: {', '.join(known[:_MAX_LISTED])}{more}."


ROLES = ("identifier", "quasi", "sensitive", "plain")
DATE_LEVELS = ("day", "month", "quarter", "year")
HIERARCHIES = ("intervals", "prefix", "dates", "file", "icd9", "icd10", "tree")


class HierarchySpec(Section):
    """How values are generalized, level by level; the last level is always `*`.

    Exactly one of: `intervals: [5, 10, [18, 65]]` (widths, or cut points for uneven, open-ended intervals),
    `prefix: 5` (characters of a code, one dropped per level), `dates: [day, month, quarter, year]`,
    `file: tree.csv` (one leaf;...;root per line), `icd9: true`, `icd10: true`, `tree: {node: [leaf, leaf]}`.
    """

    intervals: tuple[float | tuple[float, ...], ...] | None = None
    bottom: float | None = Field(default=None, description="intervals: all values below form one open-ended interval")
    top: float | None = Field(
        default=None, description="intervals: all values from here on form one open-ended interval"
    )
    prefix: int | tuple[int, ...] | None = None
    dates: tuple[Literal["day", "month", "quarter", "year", "decade"], ...] | None = None
    format: str | None = Field(
        default=None, description="dates: their format in the data if not YYYY-MM-DD, such as DD.MM.YYYY"
    )
    file: str | None = None
    icd9: bool | None = None
    icd10: bool | None = None
    tree: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _expand_true(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("dates") is True:
            return {**value, "dates": DATE_LEVELS}
        if isinstance(value, str):
            raise validation_error("a hierarchy must be one entry, such as {file: tree.csv} or {intervals: [5, 10]}.")
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> HierarchySpec:
        written = [name for name in HIERARCHIES if getattr(self, name) is not None]
        if len(written) != 1:
            raise validation_error(f"write exactly one of: {', '.join(HIERARCHIES)}.")
        self._check_numbers()
        return self

    def _check_numbers(self) -> None:
        for step in self.intervals or ():
            if isinstance(step, tuple):
                if not step or any(a >= b for a, b in pairwise(step)):
                    raise validation_error("cut points must increase, such as [18, 40, 65].")
            elif step <= 0:
                raise validation_error("an interval's width must be above 0, such as 5.")
        if self.intervals == ():
            raise validation_error("intervals needs at least one width, such as [5, 10, 20].")
        lengths = (self.prefix,) if isinstance(self.prefix, int) else self.prefix or ()
        if any(length < 1 for length in lengths) or self.prefix == ():
            raise validation_error("prefix must be the length of the code, at least 1, such as 5.")
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise validation_error("bottom must be below top.")
        if self.format is not None and (self.dates is None or strptime_format(self.format) is None):
            raise validation_error("format is for dates only: write DD/MM/YYYY or MM/DD/YYYY, with / or . or -.")

    @property
    def kind(self) -> str:
        """The key of the form that is used, such as `intervals`."""
        return next(name for name in HIERARCHIES if getattr(self, name) is not None)


class UpdatesSpec(Section):
    """How a sensitive value may change between releases: `any`, a `file` of value, next and probability, `tree` or `diameter`.

    `updates: any` is short for `{any: true}`: the attacker knows nothing about how values change.
    """

    any: bool = Field(default=False, description="every value may change to every other value")
    file: str | None = None
    tree: int | None = Field(default=None, ge=1)
    diameter: int | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"any": True} if value == "any" else value

    @model_validator(mode="after")
    def _exactly_one(self) -> UpdatesSpec:
        if self.any + sum(v is not None for v in (self.file, self.tree, self.diameter)) != 1:
            raise validation_error("write exactly one of: any, file, tree, diameter.")
        return self


class TransformSpec(Section):
    """How identifying values are transformed: `drop`, `{pseudonym: study.key}` or `{shift: 30, key: study.key}`.

    A pseudonym replaces each value by a keyed hash. A shift moves all dates of one person by the same secret number of
    days, at most `shift` in either direction. `reticent keys new FILE` creates a key file.
    """

    drop: bool = Field(default=False, description="never released, as with the role identifier alone")
    pseudonym: str | None = Field(default=None, description="key file; values are released as keyed pseudonyms")
    shift: int | None = Field(
        default=None, ge=1, le=3650, description="largest number of days by which a person's dates are shifted"
    )
    key: str | None = Field(default=None, description="key file of a shift; without it, every release draws new shifts")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"drop": True} if value == "drop" else value

    @model_validator(mode="after")
    def _exactly_one(self) -> TransformSpec:
        if self.drop + (self.pseudonym is not None) + (self.shift is not None) != 1:
            raise validation_error("write drop, {pseudonym: FILE} or {shift: DAYS, key: FILE}.")
        if self.key is not None and self.shift is None:
            raise validation_error("key is for shift only; write the key file of a pseudonym as {pseudonym: FILE}.")
        return self

    @property
    def key_file(self) -> str | None:
        """The key file of the pseudonym or of the shift."""
        return self.pseudonym or self.key


class Column(Section):
    """The role and settings of a column; `age: quasi` is short for `age: {role: quasi}`."""

    role: Literal["identifier", "quasi", "sensitive", "plain"]
    hierarchy: HierarchySpec | None = None
    level: int = Field(
        default=0, ge=0, description="hierarchy level at which the veil publishes the column; 0: unchanged"
    )
    updates: UpdatesSpec | None = None
    transform: TransformSpec | None = Field(default=None, description="drop, pseudonym or date shift")
    combine: tuple[str, ...] | None = Field(
        default=None, description="columns of the data that are combined into this sensitive column"
    )
    normalize: bool = Field(
        default=False,
        description="merge variants of one sensitive value: case, spaces, invisible characters, the dot of an ICD-10 code",
    )

    @model_validator(mode="after")
    def _fits_role(self) -> Column:
        identifier = self.transform
        if self.level and self.role != "quasi":
            raise validation_error("level is only for columns with the role quasi.")
        if identifier is not None and identifier.drop and self.role != "identifier":
            raise validation_error("drop needs the role identifier.")
        if identifier is not None and identifier.pseudonym and self.role != "plain":
            raise validation_error("a pseudonym is released; give its column the role plain.")
        if identifier is not None and identifier.shift and self.role not in {"quasi", "plain"}:
            raise validation_error("a shifted date needs the role quasi or plain.")
        if self.normalize and self.role != "sensitive":
            raise validation_error("normalize is only for columns with the role sensitive.")
        if self.combine is not None and (self.role != "sensitive" or len(set(self.combine)) < 2):
            raise validation_error("combine needs two or more columns, and the role sensitive.")
        return self

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        role = value.get("role") if isinstance(value, dict) else value
        if role is None:
            raise validation_error(f"the column has no role; write one of: {', '.join(ROLES)}.")
        if role not in ROLES:
            raise validation_error(unknown_word_message(str(role), ROLES))
        return value if isinstance(value, dict) else {"role": role}
