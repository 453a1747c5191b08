"""A release as a recipient sees it: its tables as text, its manifest, nothing else.

A file that does not match its digest in the manifest is no error here but a finding: the verifier continues with the
files as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv as pc

from reticent.arrays import Int64s
from reticent.errors import DataError
from reticent.release import Release
from reticent.release.folder import content_of, unescape_formulas
from reticent.verify.folder.canonical_files import csv_text_options as cells_as_text
from reticent.verify.folder.canonical_files import noncanonical_files
from reticent.verify.groups import arrow_codes, as_text, common_codes, decode_table, encode_table, number_rows
from reticent.verify.stream.lines import has_codebook_order

_TABLES = ("data", "qit", "st", "counterfeits", "plain", "group", "tuple", "record")
_METADATA = ("veil", "linked")
_STREAM_SUFFIXES = (".ndjson", ".jsonl")
_LINE_TYPES = ("codebook", "group", "tuple", "record")
_MAX_LINE = 1 << 20
CODEBOOK_SUFFIX = ".codebook.json"
"""Suffix that turns the name of a stream's file into the name of its codebook."""


class TextTables(Mapping[str, pa.Table]):
    """Tables as text, decoded on first use: most verifiers need only the dictionary codes."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables, self._texts = tables, dict[str, pa.Table]()

    @cached_property
    def raw(self) -> dict[str, pa.Table]:
        """The tables with their original types, dictionaries decoded."""
        return {name: decode_table(table) for name, table in self._tables.items()}

    @cached_property
    def coded(self) -> dict[str, pa.Table]:
        """The tables as dictionary-encoded text."""
        return {name: encode_table(table) for name, table in self._tables.items()}

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._texts:
            self._texts[name] = text_table(self.raw[name])
        return self._texts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


@dataclass(frozen=True, repr=False)
class Published:
    """One release as a recipient sees it.

    Attributes:
        name: its name in findings.
        shape: the form of the release, such as anatomy, m-distinct, veil, linked or stream.
        kind: table, evolving, series or stream as the manifest states, "" without a manifest.
        method: the algorithm that the manifest names, "" without a manifest.
        tables: table name -> columns as text, null where a value is missing.
        metadata: JSON files next to the tables, such as `veil`.
        stream_file: a stream as a file of JSON lines, instead of tables.
        claims, counts, metrics, explain, policy_hash: as in the manifest.
        altered_files: number of files that differ from their digest in the manifest.
        no_manifest: a foreign table: it claims nothing, so the verifier measures it.
        unlisted_files: names in the folder that the manifest does not list.
        manifest_keys: entries of the manifest.
        duplicate_columns: number of columns that repeat the name of an earlier column of their table.
        noncanonical_files: files whose bytes are not the canonical form of their content.
        manifest, codebook, readme: the metadata files of a folder as they are; None if missing.
    """

    name: str
    shape: str
    kind: str = ""
    method: str = ""
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stream_file: Path | None = None
    claims: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    explain: Mapping[str, Any] = field(default_factory=dict)
    policy_hash: str | None = None
    altered_files: int = 0
    no_manifest: bool = False
    unlisted_files: tuple[str, ...] = ()
    manifest_keys: tuple[str, ...] = ()
    duplicate_columns: int = 0
    noncanonical_files: tuple[str, ...] = ()
    manifest: Mapping[str, Any] | None = None
    codebook: Mapping[str, Any] | None = None
    readme: str | None = None

    @property
    def raw(self) -> Mapping[str, pa.Table]:
        """The tables with their original types."""
        return self.tables.raw if isinstance(self.tables, TextTables) else self.tables

    @cached_property
    def coded(self) -> Mapping[str, pa.Table]:
        """The tables as dictionary-encoded text, shared by all verifiers."""
        return self.tables.coded if isinstance(self.tables, TextTables) else TextTables(self.tables).coded

    @cached_property
    def _classes(self) -> dict[tuple[str, ...], tuple[Int64s, int]]:
        return {}

    @cached_property
    def group_codes(self) -> tuple[Int64s, Int64s, int]:
        """Common group numbers for the rows of 'qit' and 'st', and the number of groups."""
        (qit, names), (st, others) = (arrow_codes(self.coded[table]["group"]) for table in ("qit", "st"))
        here, there = [np.arange(len(names))] * 2 if names.equals(others) else common_codes(names, others)
        return here[qit], there[st], int(max(here.max(initial=-1), there.max(initial=-1))) + 1

    def classes(self, table: str, columns: Sequence[str]) -> tuple[Int64s, int]:
        """Return the class of every row by the given columns, and the number of classes; results are cached."""
        key = (table, *columns)
        if key not in self._classes:
            self._classes[key] = number_rows(self.coded[table], columns)
        return self._classes[key]


def read_release(source: str | Path | Release | pa.Table | Published, name: str) -> Published:
    """Read a folder, a file of JSON lines, or a Release in memory; a table is a foreign file without a manifest."""
    if isinstance(source, Published):
        return replace(source, name=name)
    if isinstance(source, pa.Table):
        return Published(name, "generalized", tables={"data": text_table(source)}, no_manifest=True)
    if not isinstance(source, str | Path):
        return _from_release(source, name)
    path = Path(source)
    if is_stream_file(path):
        return _from_stream_file(path, name)
    if not path.is_dir():
        raise DataError(
            f"{path} is not a release.", hint="Give the folder of a release, or the .ndjson file of a stream."
        )
    return _from_folder(path, name)


def is_stream_file(path: Path) -> bool:
    """Return whether a file contains a stream's lines; other JSON lines are a foreign table."""
    if not path.is_file() or path.suffix not in _STREAM_SUFFIXES:
        return False
    with path.open("rb") as lines:
        try:
            first = json.loads(lines.readline(_MAX_LINE))
        except (ValueError, RecursionError):
            return True  # a corrupt stream is a stream
    return not isinstance(first, dict) or first.get("type") in _LINE_TYPES


def _from_stream_file(path: Path, name: str) -> Published:
    """Read a file of lines, with its codebook if there is one."""
    try:
        content = content_of(path.with_name(path.name + CODEBOOK_SUFFIX))
        codebook = json.loads(content)
        metadata = {"veil": dict(codebook["veil"])} if "veil" in codebook else {}
        claims = dict(codebook["guarantee"]["claims"])
    except FileNotFoundError:
        return Published(name, "stream", stream_file=path)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return Published(name, "stream", stream_file=path, altered_files=1)
    canonical = orjson.dumps(codebook) + b"\n" == content and has_codebook_order(codebook)
    return Published(
        name,
        "stream",
        kind="stream",
        stream_file=path,
        metadata=metadata,
        claims=claims,
        codebook=codebook,
        noncanonical_files=() if canonical else ("the codebook",),
    )


def text_table(table: pa.Table) -> pa.Table:
    """Return the table with every column as text."""
    return pa.Table.from_arrays([as_text(column) for column in table.columns], names=table.column_names)


def cell_text(value: Any) -> str | None:
    """Return one value as the tables show it."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if type(value) is int else str(pa.scalar(value).cast(pa.string()).as_py())


def _from_release(release: Release, name: str) -> Published:
    counts = release.records
    return Published(
        name=name,
        shape=release.shape,
        kind=release.kind,
        method=release.method,
        tables=TextTables(release.tables),
        metadata=release.metadata,
        claims=release.guarantee.claims,
        counts={key: getattr(counts, key) for key in ("input", "published", "withheld", "suppressed")},
        metrics=release.metrics,
        explain=release.explain,
        policy_hash=release.policy_hash,
    )


def _from_folder(path: Path, name: str) -> Published:
    manifest = _read_manifest(path)
    digests = _sub_dict(manifest, "files")
    named = [Path(file).stem for file in digests] if manifest.get("shape") == "linked" else _TABLES
    files = [path / f"{table}.{form}" for table in dict.fromkeys(named) for form in ("csv", "parquet")]
    files = [file for file in files if file.is_file()]
    read = {file.stem: _read_table(file) for file in files}
    tables = {table: _drop_duplicate_columns(columns) for table, columns in read.items()}
    stream_files = sorted(file for file in path.iterdir() if file.suffix in _STREAM_SUFFIXES)
    return Published(
        name=name,
        shape=str(manifest.get("shape") or _guess_shape(set(tables))),
        kind=str(manifest.get("kind", "")),
        method=str(manifest.get("method", "")),
        tables=tables,
        metadata={n: text for n in _METADATA if (text := _read_metadata(path / f"{n}.json")) is not None},
        stream_file=stream_files[0] if stream_files and not tables else None,
        claims=_sub_dict(_sub_dict(manifest, "guarantee"), "claims"),
        counts=_sub_dict(manifest, "records"),
        metrics=_sub_dict(manifest, "metrics"),
        explain=_sub_dict(manifest, "explain"),
        policy_hash=manifest.get("policy_hash"),
        altered_files=sum(_digest(path / Path(file).name) != digest for file, digest in digests.items()),
        unlisted_files=_unlisted_files(path, digests),
        manifest_keys=(*map(str, manifest), *(f"store.{key}" for key in _sub_dict(manifest, "store"))),
        duplicate_columns=sum(len(read[table].column_names) - len(tables[table].column_names) for table in tables),
        noncanonical_files=noncanonical_files(
            path / name for name in ("release.json", *digests) if (path / name).is_file()
        ),
        manifest=manifest,
        codebook=_read_metadata(path / "codebook.json"),
        readme=_read_page(path / "README.txt"),
    )


def _drop_duplicate_columns(table: pa.Table) -> pa.Table:
    """Drop columns that repeat an earlier name: they cannot be selected by name. The caller counts them."""
    names = table.column_names
    return table.select([at for at, name in enumerate(names) if names.index(name) == at])


def _read_metadata(file: Path) -> Mapping[str, Any] | None:
    """Read a JSON file next to the tables; empty if it is unreadable, None if it is missing."""
    try:
        content = json.loads(content_of(file))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _read_page(file: Path) -> str | None:
    try:
        return content_of(file).decode(errors="replace")
    except OSError:
        return None


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(content_of(path / "release.json").decode("utf-8"))
    except OSError:
        raise DataError(f"{path} has no readable release.json.", hint="Give the folder of a release.") from None
    except (ValueError, RecursionError):
        raise DataError(
            f"{path}: release.json is corrupt.", hint="Restore the folder, or make the release again."
        ) from None
    if not isinstance(manifest, dict):
        raise DataError(
            f"{path}: release.json is not a JSON object.", hint="Restore the folder, or make the release again."
        )
    return manifest


def _unlisted_files(path: Path, digests: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names in the folder that the manifest does not list."""
    known = {"release.json", *(Path(file).name for file in digests)}
    return tuple(sorted(file.name for file in path.iterdir() if file.name not in known))


def _sub_dict(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    mapping = of.get(key, {})
    return mapping if isinstance(mapping, dict) else {}


def _guess_shape(tables: set[str]) -> str:
    if {"qit", "st"} <= tables:
        return "anatomy"
    if {"data", "counterfeits"} <= tables:
        return "m-distinct"
    return "generalized" if "data" in tables else "stream"


def _read_table(file: Path) -> pa.Table:
    try:
        return _read_parquet(file) if file.suffix == ".parquet" else _read_csv(file)
    except (OSError, pa.ArrowException):
        raise DataError(f"{file} cannot be read.", hint="Restore the folder, or make the release again.") from None


def _read_parquet(file: Path) -> pa.Table:
    import pyarrow.parquet as pq  # slow to import, and few releases use it

    with pq.ParquetFile(file) as source:  # unlike read_table, it reads columns with the same name
        return text_table(source.read())


def _read_csv(file: Path) -> pa.Table:
    with pc.open_csv(file) as head:
        names = head.schema.names
    return unescape_formulas(pc.read_csv(file, **cells_as_text(names)))


def _digest(file: Path) -> str:
    if not file.is_file():
        return ""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
