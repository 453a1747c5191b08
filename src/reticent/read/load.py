"""Loads releases from a folder, a stream file, a Parquet or CSV file, or a database that `export` wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reticent.errors import ConnectorError, DataError, PolicyError
from reticent.read.question import Shape
from reticent.read.shape.generalized import EVERY_RECORD, Generalized
from reticent.read.shape.groups import Grouped
from reticent.read.shape.veil import Veiled
from reticent.release.codebook import apply_types
from reticent.release.folder import read as read_folder
from reticent.release.folder import read_csv

META = b"reticent"
"""Key of the Parquet metadata that contains everything except the records."""
_WIRE = (".ndjson", ".jsonl")


@dataclass(frozen=True, repr=False)
class Parts:
    """A release as it was read: tables by name, veil, codebook and the number of missing records."""

    shape: str
    kind: str
    tables: Mapping[str, pa.Table]
    veil: Mapping[str, Any] | None = None
    codebook: Mapping[str, Any] = field(default_factory=dict)
    missing: int = 0
    missing_of: Mapping[str, int] = field(default_factory=dict)
    """Number of unpublished rows of each linked table."""

    def to_metadata(self) -> dict[str, Any]:
        """Return everything except the tables as plain values."""
        return {
            "shape": self.shape,
            "kind": self.kind,
            "veil": self.veil,
            "codebook": dict(self.codebook),
            "missing": self.missing,
        }


def parts_of(place: str | Path, *, name: str = "release") -> Parts:
    """Read a release from a folder, a file or the URL of a database; `name` is the prefix of its tables."""
    if str(place).startswith(("sqlite:", "postgresql:")):
        return from_database(str(place), name)
    if "://" in str(place):
        raise DataError(
            "Releases can be read only from files, SQLite and PostgreSQL.",
            hint="Write sqlite:///FILE or postgresql://..., or give the release folder.",
        )
    path = Path(place)
    if path.is_dir():
        return from_manifest(*read_folder(path))
    if not path.is_file():
        raise DataError(
            f"There is no release at {path}.", hint="Give a release folder, a stream file, or a database URL."
        )
    if path.suffix in _WIRE:
        from reticent.read.wire import from_stream_file

        return from_stream_file(path)
    return from_file(path)


def from_manifest(manifest: Mapping[str, Any], tables: Mapping[str, pa.Table], metadata: Mapping[str, Any]) -> Parts:
    """Build the parts of a release from its manifest, tables and metadata."""
    counts, explain = manifest.get("records", {}), manifest.get("explain", {})
    input_rows = explain.get("input_rows", {}) if manifest["shape"] == "linked" else {}
    return Parts(
        shape=str(manifest["shape"]),
        kind=str(manifest.get("kind", "")),
        tables=tables,
        veil=metadata.get("veil"),
        codebook=metadata.get("codebook", {}),
        missing=int(counts.get("suppressed", 0)) + int(counts.get("withheld", 0)),
        missing_of={name: int(rows) - int(explain["published_rows"][name]) for name, rows in input_rows.items()},
    )


def from_file(path: Path) -> Parts:
    """Read a Parquet or CSV file: from `to_parquet`, with a codebook next to it, or a plain generalized table."""
    try:
        table = pq.read_table(path) if path.suffix == ".parquet" else read_csv(path)
    except (OSError, pa.ArrowException):
        raise DataError(f"Cannot read {path}.", hint="Give a release folder, .ndjson, .parquet or .csv.") from None
    if table.schema.metadata and META in table.schema.metadata:
        return _from_metadata(table)
    codebook = read_codebook(path)
    veil = codebook.get("veil")
    return Parts("veil" if veil else "generalized", "", {"data": table}, veil, codebook)


def _from_metadata(table: pa.Table) -> Parts:
    about = json.loads(table.schema.metadata[META])
    tables = {"data": table}
    if about["shape"] == "anatomy":
        tables = {"qit": table, "st": pa.table(about["listed"])}
    if about["shape"] == "m-distinct":
        tables["counterfeits"] = pa.table(about["listed"])
    return Parts(about["shape"], about["kind"], tables, about["veil"], about["codebook"], about["missing"])


def read_codebook(path: Path) -> dict[str, Any]:
    """Read `FILE.codebook.json`; return an empty dict if there is none."""
    file = path.with_name(path.name + ".codebook.json")
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        raise DataError(f"{file} is corrupt.", hint="Get the file again from the sender of the stream.") from None
    if not isinstance(content, dict):
        raise DataError(f"{file} is not a JSON object.", hint="Get the file again from the sender of the stream.")
    return content


def check_codebook(codebook: Mapping[str, Any]) -> None:
    """Refuse a codebook with malformed columns or hierarchy nodes, because answers depend on them."""
    columns = codebook.get("columns", ())
    if not isinstance(columns, list | tuple) or not all(map(_is_column, columns)):
        raise DataError('codebook.json is malformed: expected an object with "columns".', hint="Run `reticent verify`.")


def _is_column(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    nodes = entry.get("nodes") or {}
    return isinstance(nodes, dict) and all(map(_is_node, nodes.values()))


def _is_node(node: Any) -> bool:
    if not isinstance(node, dict) or not isinstance(below := node.get("below"), list):
        return False
    size = node.get("size")
    return type(size) is int and size >= 0 and all(isinstance(value, str) for value in below)


def join_series(parts: list[Parts]) -> Parts:
    """Join veiled releases of one series into one table; number them from 1."""
    first = parts[0]
    if any(one.tables["data"].equals(other.tables["data"]) for one, other in combinations(parts, 2)):
        raise PolicyError("The same release was given twice.", hint="Give each release of the series once, in order.")
    parameter_sets = {json.dumps([part.shape, (part.veil or {}).get("parameters_digest")]) for part in parts}
    if first.shape != "veil" or len(parameter_sets) != 1:
        raise PolicyError(
            "Only veiled releases of the same series can be read together.", hint="Read each release by itself."
        )
    tables = [
        part.tables["data"].append_column("release", pa.array([number] * part.tables["data"].num_rows, pa.int64()))
        for number, part in enumerate(parts, 1)
    ]
    data = pa.concat_tables(tables, promote_options="permissive")
    return Parts(first.shape, first.kind, {"data": data}, first.veil, first.codebook)


def shape_of(parts: Parts, sensitive: str | None) -> Shape:
    """Return the tables of a release as a shape that can be counted."""
    if parts.shape == "veil":
        return _veil_shape(parts)
    if parts.shape == "anatomy":
        return Grouped(_typed_table(parts, "qit"), parts.tables["st"], parts.missing)
    if parts.shape == "linked":
        return join_tables(parts, sensitive or sensitive_of(parts))
    data = _typed_table(parts, "data")
    column = sensitive or sensitive_of(parts)
    if column is None or column not in (EVERY_RECORD, *data.column_names):
        raise PolicyError(
            "The release does not name its sensitive column.",
            hint='Name it: --sensitive diagnosis, or read(PATH, sensitive="diagnosis").',
        )
    if parts.shape != "m-distinct":
        return Generalized(data, column, parts.missing)
    counterfeits = parts.tables["counterfeits"].to_pydict()
    pairs = dict(zip(map(int, counterfeits["group"]), map(int, counterfeits["count"]), strict=True))
    return Generalized(data, column, parts.missing, pairs)


def join_tables(parts: Parts, sensitive: str | None) -> Generalized:
    """Join linked tables: the rows of the table with the sensitive column, each with its visit and its person.

    Only tables with one row per person or visit are joined; others would duplicate rows.
    """
    home = next((name for name, table in parts.tables.items() if sensitive in table.column_names), None)
    if home is None or sensitive is None:
        known = [entry["name"] for entry in parts.codebook.get("columns", ()) if entry.get("role") == "sensitive"]
        raise PolicyError("No table has the sensitive column.", hint=f"Name one of: {', '.join(known)}.")
    data = _typed_table(parts, home)
    for name in (name for name in parts.tables if name != home):
        other = _typed_table(parts, name)
        key = "visit" if "visit" in other.column_names else "person"
        once = pc.count_distinct(other[key]).as_py() == other.num_rows and not other[key].null_count
        if once and key in data.column_names:
            new = [column for column in other.column_names if column not in data.column_names]
            data = data.join(other.select([key, *new]), keys=key, join_type="left outer")
    return Generalized(data, sensitive, parts.missing_of.get(home, parts.missing))


def sensitive_of(parts: Parts) -> str | None:
    """Return the sensitive column that the veil or the codebook names."""
    name = (parts.veil or {}).get("sensitive") or parts.codebook.get("sensitive")
    if name is None:
        columns = parts.codebook.get("columns", ())
        name = next((entry["name"] for entry in columns if entry.get("role") == "sensitive"), None)
        if name is None and columns and parts.shape == "generalized":
            return EVERY_RECORD
    return None if name is None else str(name)


def _typed_table(parts: Parts, table: str) -> pa.Table:
    entries = [entry for entry in parts.codebook.get("columns", ()) if entry.get("table", table) == table]
    return apply_types(parts.tables[table], entries)


def _veil_shape(parts: Parts) -> Veiled:
    data, veil = _typed_table(parts, "data"), parts.veil
    if veil is None:
        raise DataError("veil.json is missing.", hint="Put veil.json, or the stream's codebook, next to the data.")
    names = tuple(f"{veil['sensitive']}_{slot}" for slot in range(1, int(veil["l"]) + 1))
    absent = [name for name in ("stratum", "event", *names) if name not in data.column_names]
    if absent:
        raise DataError(f"The veiled table has no column '{absent[0]}'.", hint="Get the release again.")
    for name in ("stratum", "event"):
        data = data.set_column(data.column_names.index(name), name, data.column(name).cast(pa.int64()))
    return Veiled(data, veil, names, correction=parts.kind == "evolving")


_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,40}$")


def from_database(url: str, name: str) -> Parts:
    """Read `NAME_manifest` and the tables of the release."""
    try:
        import sqlalchemy as sa
    except ImportError:
        raise ConnectorError("Reading a database needs SQLAlchemy.", hint="Run: pip install sqlalchemy") from None
    if not _NAME.match(name):
        raise PolicyError("The name of the tables is invalid.", hint="Use letters, digits and _.")
    try:
        engine = sa.create_engine(sa.make_url(url.replace("postgresql://", "postgresql+psycopg://", 1)))
        with engine.connect() as link:
            manifest = json.loads(link.execute(sa.text(f"SELECT manifest FROM {name}_manifest")).scalar_one())  # noqa: S608 - a plain name
            documents = manifest.get("metadata", {})
            files = [file.rsplit(".", 1)[0] for file in manifest["files"] if file.endswith((".csv", ".parquet"))]
            tables = {part: _table(link, sa, f"{name}_{part}") for part in files}
        engine.dispose()
    except (sa.exc.SQLAlchemyError, ValueError, KeyError):
        raise ConnectorError(
            f"The database has no readable release '{name}'.",
            hint="Use the same URL and --name as for `reticent export`.",
        ) from None
    return from_manifest(manifest, tables, documents)


def _table(link: Any, sa: Any, name: str) -> pa.Table:
    rows = link.execute(sa.text(f'SELECT * FROM "{name}"'))  # noqa: S608 - built from a plain name
    names = list(rows.keys())
    columns = list(zip(*rows.fetchall(), strict=True)) or [()] * len(names)
    return pa.table({column: pa.array(cells) for column, cells in zip(names, columns, strict=True)})
