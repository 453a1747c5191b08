"""The base of every part of a policy: frozen, strict, and helpful about typing errors."""

from __future__ import annotations

import difflib
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, field_validator, model_validator
from pydantic_core import PydanticCustomError


class Section(BaseModel):
    """A part of a policy: unknown keys are refused, with the nearest known one offered."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)
    renamed: ClassVar[dict[str, str]] = {}
    """Words of earlier versions, with the word that is written instead."""
    moved: ClassVar[dict[str, str]] = {}
    """Words of earlier versions, with what is written at the top level of the policy instead."""
    short: ClassVar[str] = ""
    """The key that a text alone stands for."""

    @property
    def keeps(self) -> str:
        """Which of k, l and t of `privacy` releases of this section keep: quasi-identifiers that stay as they are keep no k."""
        return "l"

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if cls.short and isinstance(value, str):
            return {cls.short: value}
        if isinstance(value, dict):
            known = sorted({field.alias or name for name, field in cls.model_fields.items()} | set(cls.model_fields))
            for key in value:
                if key in cls.renamed:
                    new = cls.renamed[key]
                    raise wrong(f"'{key}' is now called '{new}'; write {new}: {value[key]}.", str(key))
                if key in cls.moved:
                    where = f"write {cls.moved[key]} there"
                    raise wrong(f"'{key}' stands at the top level of the policy now; {where}.", str(key))
                if key not in known:
                    raise wrong(unknown(str(key), known), str(key))
        return value


class KindSection(Section):
    """How one kind of release is made; what earlier versions called otherwise is refused with what is written now."""

    renamed: ClassVar[dict[str, str]] = {"model": "method", "strategy": "method"}
    moved: ClassVar[dict[str, str]] = {"prior": "prior: {file: ...}"}

    @field_validator("method", mode="before", check_fields=False)
    @classmethod
    def _not_sealed(cls, method: Any) -> Any:
        if method == "sealed":
            raise wrong(
                "'sealed' is no more: readers who knew how values depend on age, sex or ward undid its groups. Write method: veil, "
                "which needs prior: {file: prior.csv} (public statistics, or reticent prior PAST), person: and a store of its own."
            )
        return method


class FileRef(Section):
    """A file beside the policy."""

    file: str


def wrong(text: str, key: str | None = None) -> PydanticCustomError:
    """The error for what cannot be meant; with a key, that of the entry it is about, whose line is named."""
    return PydanticCustomError("wrong", "{text}", {"text": text} if key is None else {"text": text, "key": key})


_SHOWN = 20
"""Words that a message lists; a table may have hundreds of columns."""


def unknown(word: object, known: list[str] | tuple[str, ...]) -> str:
    """Says that a word is not known and which one was probably meant."""
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=0.6)
    if near:
        return f"'{word}' is not known here; did you mean '{near[0]}'?"
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"'{word}' is not known here; write one of: {', '.join(known[:_SHOWN])}{more}."
