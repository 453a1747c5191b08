"""Policy: states what a release must satisfy. A frozen value that contains no data.

Policies are read from YAML, JSON or TOML. Every error names its place in the file and what to write instead.
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
"""Default number of candidates per record, and of values per group of a series."""


class Policy(Section):
    """Roles of the columns, privacy requirements, and the settings of each kind of release.

    Example:
        >>> policy = Policy.from_dict({"version": 1, "columns": {"age": "quasi", "ill": "sensitive"}, "privacy": {"k": 5}})
        >>> policy.quasi, policy.sensitive, policy.privacy.k
        (('age',), ('ill',), 5)
    """

    version: Literal[1] = Field(description="version of the policy format; write 1")
    persons: PersonSettings | None = Field(
        default=None, alias="person", description="column that identifies a person, or {column, records, events}"
    )
    columns: dict[str, Column]
    missing: tuple[str, ...] = Field(
        default=(), description="values that mean a missing cell, such as '?', NA or -9; applies to all inputs"
    )
    privacy: Privacy = Privacy()
    prior: PriorSettings | None = Field(
        default=None, description="how frequent values are, as the attacker knows it; for the veil"
    )
    table: TableSettings = TableSettings()
    evolving: EvolvingSettings = EvolvingSettings()
    series: SeriesSettings = SeriesSettings()
    stream: StreamSettings = StreamSettings()
    fhir: FhirSettings | None = Field(default=None, description="how FHIR resources become rows")
    sql: SqlSettings | None = Field(default=None, description="query that reads a database")
    hl7: Hl7Settings | None = Field(default=None, description="how HL7 v2 messages become records")
    tables: LinkedSettings | None = Field(
        default=None, description="several tables of the same persons, released together"
    )
    _base: Path = PrivateAttr(default=Path())

    def __init__(self, /, **settings: Any) -> None:
        """Build a policy from plain values; `version` is optional."""
        try:
            self.__pydantic_validator__.validate_python({"version": 1} | settings, self_instance=self)
        except ValidationError as error:
            raise PolicyError(_explain(error, "policy", {})) from None

    # Only direct calls run __init__; files and dictionaries go through model_validate, which keeps the error lines.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="before")
    @classmethod
    def _has_columns(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise validation_error("a policy must be a mapping that starts with 'version: 1'.")
        if "version" not in value:
            raise validation_error("the version is missing; write 'version: 1'.")
        if not value.get("columns"):
            raise validation_error("there are no columns; give each column of the data a role.")
        return value

    @field_validator("missing", mode="before")
    @classmethod
    def _markers(cls, value: Any) -> Any:
        """Accept a single word for a list of one, and numbers such as -9 without quotes."""
        words = [value] if isinstance(value, str | int | float) else value
        if not isinstance(words, list | tuple) or any(isinstance(word, bool | dict | list) for word in words):
            raise validation_error("missing must be a list of words, such as ['?', NA, -9].")
        return tuple("" if word is None else str(word) for word in words)

    @model_validator(mode="after")
    def _check_named_columns(self) -> Policy:
        """Check that columns named by other settings exist and have a suitable role."""
        if self.persons is not None:
            self._check_role("person", self.persons.column, ("identifier",), ", because it is never released")
            others = ("identifier", "quasi", "plain")
            self._check_role("person.events", self.persons.events, others, ": a sensitive column cannot order records")
        if self.prior is not None:
            self._check_role("prior.household", self.prior.household, ("identifier",))
            for name in self.prior.by:
                self._check_role("prior.by", name, ("quasi", "plain"))
        return self

    def _check_role(self, setting: str, name: str | None, roles: tuple[str, ...], why: str = "") -> None:
        if name is not None and name not in self.columns:
            raise validation_error(f"{setting}: {unknown_word_message(name, tuple(self.columns))}")
        if name is not None and self.columns[name].role not in roles:
            raise validation_error(f"{setting}: the column '{name}' must have the role {' or '.join(roles)}{why}.")

    @model_validator(mode="after")
    def _check_inputs(self) -> Policy:
        shifted = [name for name, column in self.columns.items() if column.transform and column.transform.shift]
        if shifted and self.person is None:
            raise validation_error(f"columns: '{shifted[0]}' is shifted per person; write person: COLUMN.")
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
        required = math.ceil(self.privacy.l.l)
        for kind, word in (("evolving", "l"), ("stream", "l"), ("series", "m")):
            number = getattr(getattr(self, kind), word)
            if number is not None and number < required:
                words = f"{word} = {number} is less than l = {required} of privacy"
                raise validation_error(f"{kind}: {words}; remove it, or write a larger number.")
        return self

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file; paths in it are relative to its folder."""
        try:
            path = Path(path)
            text = path.read_text(encoding="utf-8-sig")
        except TypeError:
            raise PolicyError(
                f"Policy.load expects the path of a file, not {type(path).__name__}.",
                hint="Give a path, or build the policy with reticent.Policy.from_dict(...).",
            ) from None
        except OSError as error:
            raise PolicyError(
                f"{path}: cannot read the policy ({error.strerror}).", hint="Give the path of a policy file."
            ) from None
        except UnicodeDecodeError:
            raise PolicyError(f"{path}: the policy is not UTF-8 text.", hint="Save the file as UTF-8.") from None
        data, lines = _parse(path, text)
        return cls._build(data, base=path.parent, name=str(path), lines=lines)

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, base: str | Path = ".") -> Policy:
        """Build a policy from plain values; file paths in it are relative to `base`."""
        return cls._build(data, base=Path(base), name="policy", lines={})

    @classmethod
    def from_yaml(cls, text: str, *, base: str | Path = ".") -> Policy:
        """Build a policy from YAML text, as written by `to_yaml` or by hand."""
        data, lines = parse_yaml(text, "policy")
        return cls._build(data, base=Path(base), name="policy", lines=lines)

    @classmethod
    def guess(cls, frame: Any) -> Policy:
        """Guess a policy for a frame, to be reviewed: a role and a hierarchy per column; in doubt a quasi-identifier.

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
                hint="Use `reticent init FILE -o policy.yaml` or Policy.guess(pandas.read_csv(FILE)) for a file.",
            )
        table = table_of(frame)
        if not table.num_rows:
            raise DataError("The table has no rows.", hint="Give a table with at least one row.")
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
        """The folder for relative paths."""
        return self._base

    @property
    def person(self) -> str | None:
        """The column that identifies a person across records."""
        return None if self.persons is None else self.persons.column

    @property
    def household(self) -> str | None:
        """The household column; the veil gives all members of a household the same draw."""
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
        """The columns that are released unchanged."""
        return self._columns_with_role("plain")

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns that are never released."""
        return self._columns_with_role("identifier")

    @property
    def released(self) -> tuple[str, ...]:
        """All columns that may appear in a release."""
        return self.quasi + self.sensitive + self.plain

    def path(self, name: str) -> Path:
        """Return the path of a file named in the policy, relative to the policy's folder."""
        return self._base / name

    def files(self) -> dict[str, Path]:
        """Return all files whose content is part of the policy, by the setting that names them; key files are not."""
        return {named.setting: self.path(named.name) for named in named_files(self) if not named.secret}

    def l_of(self, kind: str) -> int:
        """Return the l that releases of this kind satisfy: the larger of `privacy` and the section of the kind."""
        required = [math.ceil(self.privacy.l.l)] if self.privacy.l is not None else []
        section = None if kind in ("table", "series") else getattr(self, kind).l
        return max([*required, *([section] if section else [])], default=DEFAULT_L)

    @property
    def m(self) -> int:
        """Distinct sensitive values per group of a series: never fewer than `privacy` requires."""
        required = math.ceil(self.privacy.l.l) if self.privacy.l is not None else 0
        return self.series.m or max(required, DEFAULT_M)

    @property
    def group_size(self) -> int:
        """Size of a first group of a series: at least m, and large enough for the risk limit."""
        return max(self.m, math.ceil(1 / self.series.limit - 1e-9))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values without defaults; `from_dict` reads them back."""
        plain = self.model_dump(mode="json", exclude_defaults=True, exclude_none=True, by_alias=True)
        return plain | {"version": self.version}

    def with_method(self, kind: str, method: str | None) -> Policy:
        """Return the policy with another method for a kind of release; None changes nothing."""
        if method is None:
            return self
        plain = self.to_dict()
        return Policy.from_dict(plain | {kind: plain.get(kind, {}) | {"method": method}}, base=self.base)

    def replace(self, *, columns: dict[str, Any] | None = None, **sections: Any) -> Policy:
        """Return the policy with some columns or sections replaced; the others stay the same.

        >>> Policy(columns={"age": "quasi", "ill": "plain"}).replace(columns={"ill": "sensitive"}, privacy={"l": 2}).sensitive
        ('ill',)
        """
        plain = self.to_dict()
        plain["columns"] = plain["columns"] | (columns or {})
        return Policy.from_dict(plain | sections, base=self.base)

    def to_yaml(self) -> str:
        """Return the policy as YAML without defaults; `from_yaml` and `load` read it back."""
        return dump_yaml(self.to_dict())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all settings and of the contents of the files they name, independent of the file's notation."""
        # Unused sections are excluded: policies written before these sections existed keep their hash.
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
        """Return the HTML that a notebook shows: the role of each column."""
        rows = [(name, column.role, "person" if name == self.person else "") for name, column in self.columns.items()]
        return table_html(f"Policy: privacy {self.to_dict().get('privacy', {})}", ("column", "role", ""), rows)

    def check_columns(self, names: list[str] | tuple[str, ...]) -> None:
        """Refuse data whose columns differ from the policy's."""
        absent = [name for name in self.columns if name not in names]
        if names and len(absent) == len(self.columns):  # without a header, the names would be a person's cells
            raise PolicyError(
                f"The data has none of the policy's {len(absent)} columns.",
                hint="Check that it is the right file and that its first line names the columns.",
            )
        if absent:
            raise PolicyError(
                f"The data does not have {_list_columns(absent)} of the policy.",
                hint=unknown_word_message(absent[0], tuple(names)) if names else "The data has no columns.",
            )
        extra = [name for name in names if name not in self.columns]
        if extra:
            raise PolicyError(
                f"The data has {_list_columns(extra)} without a role.",
                hint="Give each a role in the policy; 'identifier' means never released.",
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
            raise PolicyError(f"{path}: invalid TOML ({type(error).__name__}: {error}).") from None
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
    """Return the parts of a location that are in the file, without the names that pydantic adds."""
    return [str(part) for i, part in enumerate(at) if not lines or at[: i + 1] in lines]


# Start of pydantic's error type -> what to write instead.
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
            return f"must be {_BOUNDS[key]} {ctx[key]}; correct the number, or remove the entry."
        case "literal_error":
            choices = tuple(part.strip("' ") for part in ctx["expected"].replace(" or ", ", ").split(","))
            return unknown_word_message(str(item["input"]), choices)
        case "missing":
            return "is missing; add it."
        case _:
            return next(
                (words for kind, words in _EXPECTED_FORMS.items() if item["type"].startswith(kind)), str(item["msg"])
            )
