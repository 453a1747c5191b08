"""The `privacy` section: the privacy models that releases must satisfy, and the share of records that may be suppressed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, field_validator, model_serializer, model_validator

from reticent.policy.spec import Section, unknown_word_message, validation_error

L_KINDS = ("distinct", "entropy", "recursive", "frequency")
T_KINDS = ("equal", "ordered", "hierarchical")
MAX_NUMBER = 1_000_000_000
"""No equivalence class is larger; a larger number is a typing error."""


class LSpec(Section):
    """An l-diversity requirement: `3`, `{distinct: 3}`, `{entropy: 3}`, `{recursive: [4, 3]}` or `{frequency: 3}`."""

    kind: Literal["distinct", "entropy", "recursive", "frequency"] = "distinct"
    l: float = Field(gt=1, le=MAX_NUMBER)
    c: float | None = Field(default=None, gt=0, le=MAX_NUMBER)

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, dict) and "kind" in value:
            return value
        kind, number = _only_entry(value, "l", L_KINDS, "{distinct: 3}, {entropy: 3}, {recursive: [4, 3]}")
        if kind != "recursive":
            return {"kind": kind, "l": number}
        if not isinstance(number, list | tuple) or len(number) != 2:
            raise validation_error("recursive takes two numbers, c and l: write {recursive: [4, 3]}.")
        return {"kind": kind, "c": number[0], "l": number[1]}

    @model_validator(mode="after")
    def _check_whole_number(self) -> LSpec:
        if self.kind != "entropy" and self.l != int(self.l):
            raise validation_error(f"l must be a whole number for {self.kind} diversity.")
        return self

    @model_serializer
    def to_plain(self) -> dict[str, Any]:
        """The form a person writes, as in the policy file."""
        number: float = int(self.l) if self.l == int(self.l) else self.l
        return {self.kind: [self.c, number] if self.kind == "recursive" else number}


class TSpec(Section):
    """A t-closeness requirement: `0.2`, `{equal: 0.2}`, `{ordered: 0.2}` or `{hierarchical: 0.2}`."""

    kind: Literal["equal", "ordered", "hierarchical"] = "equal"
    t: float = Field(ge=0, le=1)

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, dict) and "kind" in value:
            return value
        kind, number = _only_entry(value, "t", T_KINDS, "{equal: 0.2}, {ordered: 0.2}, {hierarchical: 0.2}")
        return {"kind": kind, "t": number}

    @model_serializer
    def to_plain(self) -> dict[str, Any]:
        """The form a person writes, as in the policy file."""
        return {self.kind: self.t}


def _only_entry(value: Any, word: str, kinds: tuple[str, ...], examples: str) -> tuple[str, Any]:
    """Return kind and number of a requirement; a number alone has the first kind."""
    if isinstance(value, bool) or not isinstance(value, int | float | dict):
        raise validation_error(f"{word} must be a number or one of {examples}.")
    if not isinstance(value, dict):
        return kinds[0], value
    if len(value) != 1:
        raise validation_error(f"write exactly one of: {', '.join(kinds)}.")
    kind, number = next(iter(value.items()))
    if kind not in kinds:
        raise validation_error(unknown_word_message(str(kind), kinds), str(kind))
    return kind, number


class UniquenessSpec(Section):
    """Population uniqueness: `{share: 0.01, population: 80000}`."""

    share: float = Field(
        ge=0, le=1, description="largest share of the population that may be unique (Zayatz' estimate)"
    )
    population: int = Field(ge=1, le=10 * MAX_NUMBER, description="size of the population that the table samples")


class KMapSpec(Section):
    """k-map: `{k: 5, file: register.csv}`."""

    k: int = Field(
        ge=2, le=MAX_NUMBER, description="people of the population that every published combination must fit"
    )
    file: str = Field(description="table of the population, with a column per quasi-identifier; never released")


class Privacy(Section):
    """Requirements on every published group, and on all groups together."""

    k: int | None = Field(
        default=None,
        ge=2,
        le=MAX_NUMBER,
        description="k-anonymity: at least k records share every published combination",
    )
    l: LSpec | None = Field(default=None, description="l-diversity of the sensitive values in a group")
    t: TSpec | None = Field(
        default=None, description="t-closeness of a group's sensitive values to those of the whole table"
    )
    average_risk: float | None = Field(
        default=None, gt=0, le=1, description="largest average re-identification risk (classes per published record)"
    )
    population_uniqueness: UniquenessSpec | None = Field(
        default=None, description="largest estimated share of the population that is unique"
    )
    k_map: KMapSpec | None = Field(
        default=None, description="every published combination fits at least k people of a given population"
    )
    suppression: float = Field(default=0.0, ge=0, le=1, description="largest share of records that may be suppressed")

    @property
    def overall(self) -> tuple[str, ...]:
        """Requirements other than k, l and t; only table methods that generalize satisfy these."""
        return tuple(
            word for word in ("average_risk", "population_uniqueness", "k_map") if getattr(self, word) is not None
        )

    def may_suppress(self, rows: int) -> int:
        """Return how many of `rows` records may be suppressed; the decimal share is taken exactly.

        >>> Privacy(suppression=0.58).may_suppress(100)
        58
        """
        return int(Fraction(repr(self.suppression)) * rows)

    @field_validator("k", mode="before")
    @classmethod
    def _whole_k(cls, value: Any) -> Any:
        if isinstance(value, bool) or (isinstance(value, float) and value != int(value)):
            raise validation_error("k must be a whole number, such as 5.")
        return value
