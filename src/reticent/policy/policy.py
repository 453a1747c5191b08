"""Policy: what must hold. A frozen value with no data in it.

Read from YAML, JSON or TOML; every mistake is reported with its place in the file and what to write instead.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr, ValidationError, field_validator, model_validator

from reticent.errors import DataError, PolicyError
from reticent.notebook import table_html
from reticent.policy.bundle import named_files
from reticent.policy.privacy import Privacy
from reticent.policy.settings.inputs import FhirSettings, Hl7Settings, SqlSettings
from reticent.policy.settings.kinds import (
    EvolvingSettings,
    PersonSettings,
    PriorSettings,
    SeriesSettings,
    StreamSettings,
    TableSettings,
)
from reticent.policy.settings.linked import LinkedSettings, check_tables
from reticent.policy.spec import Column, Section, unknown_word_message, validation_error
from reticent.policy.yaml_text import dump_yaml, parse_yaml

DEFAULT_L, DEFAULT_M = 10, 4
"""Candidates per record, and values per group of a series, where the policy says nothing."""


class Policy(Section):
    """Roles of the columns, requirements and limits, and the settings of each kind of release.

    Example:
        >>> policy = Policy.from_dict({"version": 1, "columns": {"age": "quasi", "ill": "sensitive"}, "privacy": {"k": 5}})
        >>> policy.quasi, policy.sensitive, policy.privacy.k
        (('age',), ('ill',), 5)
    """

    version: Literal[1] = Field(description="of this format; write 1")
    persons: PersonSettings | None = Field(
        default=None, alias="person", description="who is who across records: a column, or {column, records, events}"
    )
    columns: dict[str, Column]
    missing: tuple[str, ...] = Field(
        default=(), description="what stands for a missing cell, such as '?', NA or -9; read as missing at every door"
    )
    privacy: Privacy = Privacy()
    prior: PriorSettings | None = Field(default=None, description="what a reader knows already; for the veil")
    table: TableSettings = TableSettings()
    evolving: EvolvingSettings = EvolvingSettings()
    series: SeriesSettings = SeriesSettings()
    stream: StreamSettings = StreamSettings()
    fhir: FhirSettings | None = Field(default=None, description="how FHIR resources become rows")
    sql: SqlSettings | None = Field(default=None, description="which query a database answers")
    hl7: Hl7Settings | None = Field(default=None, description="how HL7 v2 messages become records")
    tables: LinkedSettings | None = Field(
        default=None, description="several tables of the same persons, released together"
    )
    _base: Path = PrivateAttr(default=Path())

    def __init__(self, /, **settings: Any) -> None:
        """Builds a policy from plain values; `version` may be left out."""
        try:
            self.__pydantic_validator__.validate_python({"version": 1} | settings, self_instance=self)
        except ValidationError as error:
            raise PolicyError(_explain(error, "policy", {})) from None

    # Files and dictionaries are validated as ever, with the lines of their errors; only calls come by here.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="before")
    @classmethod
    def _has_columns(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise validation_error("a policy is a mapping that starts with 'version: 1'.")
        if "version" not in value:
            raise validation_error("the version is missing; write 'version: 1'.")
        if not value.get("columns"):
            raise validation_error("there are no columns; give each column of the data a role.")
        return value

    @field_validator("missing", mode="before")
    @classmethod
    def _markers(cls, value: Any) -> Any:
        """A word alone is short for a list of one, and -9 needs no quotes."""
        words = [value] if isinstance(value, str | int | float) else value
        if not isinstance(words, list | tuple) or any(isinstance(word, bool | dict | list) for word in words):
            raise validation_error("missing is a list of words, such as ['?', NA, -9].")
        return tuple("" if word is None else str(word) for word in words)

    @model_validator(mode="after")
    def _check_named_columns(self) -> Policy:
        """What other settings name is a column, in a role that fits."""
        if self.persons is not None:
            self._check_role("person", self.persons.column, ("identifier",), ", since it is never released")
            others = ("identifier", "quasi", "plain")
            self._check_role(
                "person.events", self.persons.events, others, ": a sensitive one cannot say the order of records"
            )
        if self.prior is not None:
            self._check_role("prior.household", self.prior.household, ("identifier",))
            for name in self.prior.by:
                self._check_role("prior.by", name, ("quasi", "plain"))
        return self

    def _check_role(self, place: str, name: str | None, roles: tuple[str, ...], why: str = "") -> None:
        if name is not None and name not in self.columns:
            raise validation_error(f"{place}: {unknown_word_message(name, tuple(self.columns))}")
        if name is not None and self.columns[name].role not in roles:
            raise validation_error(f"{place}: the column '{name}' must have the role {' or '.join(roles)}{why}.")

    @model_validator(mode="after")
    def _check_inputs(self) -> Policy:
        shifted = [name for name, column in self.columns.items() if column.transform and column.transform.shift]
        if shifted and self.person is None:
            why = "so the policy must say which column is the person"
            raise validation_error(f"columns: '{shifted[0]}' is shifted per person, {why}.")
        paths = (self.fhir.paths if self.fhir else {}) | (self.tables.paths if self.tables else {})
        for name, path in paths.items():
            if name in self.released and path.private_reason:
                raise validation_error(f"fhir.columns: '{name}': {path.private_reason}; give it the role identifier.")
        return self

    @model_validator(mode="after")
    def _check_tables(self) -> Policy:
        if self.tables is not None:
            check_tables(self, self.tables)
        return self

    @model_validator(mode="after")
    def _check_section_limits(self) -> Policy:
        if self.privacy.l is None:
            return self
        asked = math.ceil(self.privacy.l.l)
        for kind, word in (("evolving", "l"), ("stream", "l"), ("series", "m")):
            number = getattr(getattr(self, kind), word)
            if number is not None and number < asked:
                words = f"{word} = {number} is laxer than l = {asked} of privacy"
                raise validation_error(f"{kind}: {words}; take it out, or write a larger one.")
        return self

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Reads a policy file; relative paths in it are taken from its folder."""
        try:
            path = Path(path)
            text = path.read_text(encoding="utf-8-sig")
        except TypeError:
            raise PolicyError(
                f"A policy is loaded from a file; this is of the type {type(path).__name__}.",
                hint="Give its path, or build one: reticent.Policy.from_dict(...).",
            ) from None
        except OSError as error:
            raise PolicyError(
                f"{path}: cannot read the policy ({error.strerror}).", hint="Give the path of a policy file."
            ) from None
        except UnicodeDecodeError:
            raise PolicyError(f"{path}: the policy is not UTF-8 text.", hint="Save it as UTF-8.") from None
        data, lines = _parse(path, text)
        return cls._build(data, base=path.parent, name=str(path), lines=lines)

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, base: str | Path = ".") -> Policy:
        """Builds a policy from plain values; `base` is the folder that relative paths start from."""
        return cls._build(data, base=Path(base), name="policy", lines={})

    @classmethod
    def from_yaml(cls, text: str, *, base: str | Path = ".") -> Policy:
        """Builds a policy from YAML text, as `to_yaml` writes it or a person."""
        data, lines = parse_yaml(text, "policy")
        return cls._build(data, base=Path(base), name="policy", lines=lines)

    @classmethod
    def guess(cls, frame: Any) -> Policy:
        """A policy for a frame to correct: a role and a hierarchy for each column; in doubt a quasi-identifier.

        >>> import pyarrow as pa
        >>> policy = Policy.guess(pa.table({"age": ["31", "40", "52"], "diagnosis": ["flu", "asthma", "flu"]}))
        >>> policy.quasi, policy.sensitive
        (('age',), ('diagnosis',))
        """
        from reticent.frames import table_of
        from reticent.policy.guess import guess, settings_of

        if isinstance(frame, str | os.PathLike):
            raise DataError(
                "Policy.guess takes a table in memory, not a path.",
                hint="`reticent init FILE -o policy.yaml` guesses for a file; so does Policy.guess(pandas.read_csv(FILE)).",
            )
        table = table_of(frame)
        if not table.num_rows:
            raise DataError("The table has no rows.", hint="A guess goes by the cells; give some.")
        return cls.from_dict(settings_of(table, guess(table)))

    @classmethod
    def _build(cls, data: Any, *, base: Path, name: str, lines: dict[tuple[Any, ...], int]) -> Policy:
        try:
            policy = cls.model_validate(data)
        except ValidationError as error:
            raise PolicyError(_explain(error, name, lines)) from None
        policy._base = base  # noqa: SLF001 - its own class
        return policy

    @property
    def base(self) -> Path:
        """The folder that relative paths start from."""
        return self._base

    @property
    def person(self) -> str | None:
        """The column that names the same person across records."""
        return None if self.persons is None else self.persons.column

    @property
    def household(self) -> str | None:
        """The column that the veil takes for the person, where relatives share one."""
        return None if self.prior is None else self.prior.household

    def _columns_with_role(self, role: str) -> tuple[str, ...]:
        return tuple(name for name, column in self.columns.items() if column.role == role)

    @property
    def quasi(self) -> tuple[str, ...]:
        """The quasi-identifiers, in the order of the file."""
        return self._columns_with_role("quasi")

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive columns, in the order of the file."""
        return self._columns_with_role("sensitive")

    @property
    def plain(self) -> tuple[str, ...]:
        """The columns released as they are."""
        return self._columns_with_role("plain")

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns that never leave."""
        return self._columns_with_role("identifier")

    @property
    def released(self) -> tuple[str, ...]:
        """All columns that may appear in a release."""
        return self.quasi + self.sensitive + self.plain

    def path(self, name: str) -> Path:
        """A file named in the policy, found from the policy's folder."""
        return self._base / name

    def files(self) -> dict[str, Path]:
        """Every file whose content belongs to the policy's meaning, by the place that names it; keys do not."""
        return {named.setting: self.path(named.name) for named in named_files(self) if not named.secret}

    def l_of(self, kind: str) -> int:
        """The l that releases of this kind keep: that of `privacy`, or of the section where it is stricter."""
        asked = [math.ceil(self.privacy.l.l)] if self.privacy.l is not None else []
        section = None if kind in ("table", "series") else getattr(self, kind).l
        return max([*asked, *([section] if section else [])], default=DEFAULT_L)

    @property
    def m(self) -> int:
        """The different sensitive values per group of a series: never fewer than `privacy` asks for."""
        asked = math.ceil(self.privacy.l.l) if self.privacy.l is not None else 0
        return self.series.m or max(asked, DEFAULT_M)

    @property
    def group_size(self) -> int:
        """Members of a first group of a series: at least m, and enough that one of them stays within the risk limit."""
        return max(self.m, math.ceil(1 / self.series.limit - 1e-9))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, defaults left out; `from_dict` reads them back."""
        plain = self.model_dump(mode="json", exclude_defaults=True, exclude_none=True, by_alias=True)
        return plain | {"version": self.version}

    def with_method(self, kind: str, method: str | None) -> Policy:
        """The same policy with another method in the section of a kind of release; None changes nothing."""
        if method is None:
            return self
        plain = self.to_dict()
        return Policy.from_dict(plain | {kind: plain.get(kind, {}) | {"method": method}}, base=self.base)

    def replace(self, *, columns: dict[str, Any] | None = None, **sections: Any) -> Policy:
        """The same policy with other columns or sections; a column or section that is not named stays as it is.

        >>> Policy(columns={"age": "quasi", "ill": "plain"}).replace(columns={"ill": "sensitive"}, privacy={"l": 2}).sensitive
        ('ill',)
        """
        plain = self.to_dict()
        plain["columns"] = plain["columns"] | (columns or {})
        return Policy.from_dict(plain | sections, base=self.base)

    def to_yaml(self) -> str:
        """The policy as a file would say it, defaults left out; `from_yaml` and `load` read it back."""
        return dump_yaml(self.to_dict())

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the meaning: all settings and the contents of the files they name, whatever the spelling."""
        # A policy without markers or tables means what it meant before there were any: stores go on under their hash.
        unused = {name for name in ("missing", "tables") if not getattr(self, name)}
        meaning = self.model_dump(mode="json", exclude=unused)
        digest = hashlib.sha256(json.dumps(meaning, sort_keys=True).encode())
        for place, path in sorted(self.files().items()):
            try:
                content = path.read_bytes()
            except OSError as error:
                raise PolicyError(
                    f"{place}: cannot read {path.name} ({error.strerror}).",
                    hint="Correct the path; it starts from the policy's folder.",
                ) from None
            digest.update(place.encode() + b"\0" + hashlib.sha256(content).digest())
        return digest.hexdigest()

    def __repr__(self) -> str:
        roles = ", ".join(
            f"{len(self._columns_with_role(r))} {r}" for r in ("identifier", "quasi", "sensitive", "plain")
        )
        return f"Policy({roles}; privacy {self.to_dict().get('privacy', {})})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the role of each column."""
        rows = [(name, column.role, "person" if name == self.person else "") for name, column in self.columns.items()]
        return table_html(f"Policy: privacy {self.to_dict().get('privacy', {})}", ("column", "role", ""), rows)

    def check_columns(self, names: list[str] | tuple[str, ...]) -> None:
        """Refuses data whose columns are not those of the policy."""
        absent = [name for name in self.columns if name not in names]
        if names and len(absent) == len(self.columns):  # a file without a header has somebody's cells for names
            raise PolicyError(
                f"The data has none of the policy's {len(absent)} columns.",
                hint="Is it the right file? Its first line must name the columns.",
            )
        if absent:
            raise PolicyError(
                f"The policy names {_list_columns(absent)} that the data does not have.",
                hint=unknown_word_message(absent[0], tuple(names)) if names else "The data has no columns.",
            )
        extra = [name for name in names if name not in self.columns]
        if extra:
            raise PolicyError(
                f"The data has {_list_columns(extra)} without a role.",
                hint="Give each a role in the policy; 'identifier' keeps a column inside.",
            )


def _list_columns(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"the column{'s' if len(names) > 1 else ''} {shown}{more}"


def _parse(path: Path, text: str) -> tuple[Any, dict[tuple[Any, ...], int]]:
    if path.suffix.lower() == ".toml":
        try:
            return tomllib.loads(text), {}
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise PolicyError(f"{path}: not readable ({type(error).__name__}: {error}).") from None
    return parse_yaml(text, str(path))


def _explain(error: ValidationError, name: str, lines: dict[tuple[Any, ...], int]) -> str:
    sentences = []
    for item in error.errors(include_url=False):
        at = tuple(item["loc"])
        key = item.get("ctx", {}).get("key")
        place = (*at, key) if key is not None else at
        line = next((lines[place[:i]] for i in range(len(place), -1, -1) if place[:i] in lines), None)
        where = ".".join(_path_in_file(at, lines)) or "policy"
        head = f"{name}, line {line}" if line else name
        sentences.append(f"{head}: {where}: {_advice(item)}")
    return "\n".join(dict.fromkeys(sentences))


def _path_in_file(at: tuple[Any, ...], lines: dict[tuple[Any, ...], int]) -> list[str]:
    """The parts of a location that stand in the file; pydantic adds names of its own to them."""
    return [str(part) for i, part in enumerate(at) if not lines or at[: i + 1] in lines]


# What pydantic calls a kind of wrong value -> what to write instead.
_EXPECTED_FORMS = {
    "model_": "must be entries in braces, such as {name: value}.",
    "dict_": "must be entries in braces, such as {name: value}.",
    "tuple_": "must be a list in brackets, such as [5, 10].",
    "int_": "must be a whole number.",
    "float_": "must be a number.",
    "bool_": "must be true or false.",
    "string_": "must be text.",
}


_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def _advice(item: Any) -> str:
    ctx = item.get("ctx", {})
    match item["type"]:
        case "greater_than_equal" | "greater_than" | "less_than_equal" | "less_than":
            key = next(key for key in _BOUNDS if key in ctx)
            return f"must be {_BOUNDS[key]} {ctx[key]}; write such a number, or leave it out."
        case "literal_error":
            choices = tuple(part.strip("' ") for part in ctx["expected"].replace(" or ", ", ").split(","))
            return unknown_word_message(str(item["input"]), choices)
        case "missing":
            return "is missing; write it."
        case _:
            return next(
                (words for kind, words in _EXPECTED_FORMS.items() if item["type"].startswith(kind)), str(item["msg"])
            )
