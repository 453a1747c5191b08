"""A release on disk: `release.json` and one file per table, written completely or not at all.

The folder is built under a hidden name in the same parent folder, readable by its owner only, synced and then renamed.

In CSV files, a cell that a spreadsheet would run as a formula (text that begins with `=`, `+`, `-`, `@`, a tab or a
carriage return) gets an apostrophe in front; reading a release removes it. A cell that has apostrophes before such a
character gets one more, so that every cell can be restored. Plain numbers are not changed.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import glob
import hashlib
import json
import os
import platform
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from reticent.disk import make_folder, move, open_new, sync
from reticent.errors import ConnectorError, DataError, PolicyError
from reticent.release.codebook import README, apply_types, readme
from reticent.release.codec import to_dict
from reticent.release.release import Release

MANIFEST = "release.json"
FORMAT = 1
"""Format of the manifest; format 1 had no `shape`."""
FORMATS = ("csv", "parquet")
_DRAFT_LIFETIME = 3600.0
_LARGE_BATCHES = pa.csv.WriteOptions(batch_size=65_536)
"""Large, because Python code writes each batch."""


def write(
    release: Release, path: Path, file_format: str, now: dt.datetime | None, *, ready: Sequence[Path] = ()
) -> Path:
    """Write a release to a new or empty folder; move in the table files that are `ready` on disk."""
    if file_format not in FORMATS:
        raise PolicyError(f"The format must be {' or '.join(FORMATS)}.", hint="Use --format csv.")
    refuse_overwrite(path)
    _remove_old_drafts(path)
    draft = path.parent / f".{path.name}.{secrets.token_hex(6)}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        make_folder(draft)
        for file in ready:
            sync(file)
            move(file, draft / file.name)
        _fill(draft, release, file_format, now)
        if path.exists():
            path.rmdir()  # it is empty: refuse_overwrite has checked
        move(draft, path)
        sync(path.parent)
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ConnectorError(
            f"{path}: cannot write the release ({reason}); nothing was published.",
            hint="Check the free space and the permissions of the folder.",
        ) from None
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(draft, ignore_errors=True)
    return path


def _remove_old_drafts(path: Path) -> None:
    """Remove temporary folders of killed processes; a running process finishes within an hour."""
    for draft in path.parent.glob(f".{glob.escape(path.name)}.????????????") if path.parent.is_dir() else ():
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _DRAFT_LIFETIME:
                shutil.rmtree(draft, ignore_errors=True)


def refuse_overwrite(path: Path) -> None:
    """Refuse a path that is in use: a release never overwrites anything."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConnectorError(f"{path} exists and is not an empty folder.", hint="Give a new folder to --output.")


def _parquet() -> Any:
    # Imported on demand: the import takes longer than writing a small release.
    import pyarrow.parquet

    return pyarrow.parquet


def _fill(draft: Path, release: Release, file_format: str, now: dt.datetime | None) -> None:
    files = {file.name: _digest(file) for file in draft.iterdir()}
    codebook = release.metadata.get("codebook")
    for name, table in release.tables.items():
        target = draft / f"{name}.{file_format}"
        with _open_new_file(target) as file:
            if file_format == "csv":
                pa.csv.write_csv(escape_formulas(table), file, _LARGE_BATCHES)
            else:
                _parquet().write_table(apply_types(table, codebook["columns"] if codebook else ()), file)
        files[target.name] = _digest(target)
    for name, document in release.metadata.items():
        written = json.dumps(document, sort_keys=True, allow_nan=False).encode() + b"\n"
        files[f"{name}.json"] = _write(draft / f"{name}.json", written)
    if codebook:
        files[README] = _write(draft / README, readme(codebook).encode())
    text = json.dumps(_manifest(release, files, now), indent=2, sort_keys=True, allow_nan=False) + "\n"
    _write(draft / MANIFEST, text.encode())
    sync(draft)


def _write(path: Path, content: bytes) -> str:
    """Write a new file; return the digest of its content."""
    with _open_new_file(path) as file:
        file.write(content)
    return hashlib.sha256(content).hexdigest()


@contextlib.contextmanager
def _open_new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file, readable by its owner only; sync it when the block ends."""
    with os.fdopen(open_new(path), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@cache
def _version() -> str:
    return metadata.version("reticent")


def _manifest(release: Release, files: dict[str, str], now: dt.datetime | None) -> dict[str, Any]:
    return to_dict(release) | {
        "format": FORMAT,
        "files": files,
        "versions": {"reticent": _version(), "python": platform.python_version(), "pyarrow": pa.__version__},
        "time": (now or dt.datetime.now(dt.UTC)).isoformat(timespec="seconds"),
    }


def read(path: Path) -> tuple[dict[str, Any], dict[str, pa.Table], dict[str, Any]]:
    """Read manifest, tables and metadata of a release folder; all columns of a CSV file are read as text."""
    manifest = read_manifest(path)
    tables: dict[str, pa.Table] = {}
    documents: dict[str, Any] = {}
    for name, digest in manifest["files"].items():
        file = path / Path(name).name
        try:
            refuse_special_file(file)
            if _digest(file) != digest:
                raise DataError(
                    f"{path}: {name} was changed after the release.", hint="Restore the folder, or release again."
                )
            if file.name == README:
                continue
            if file.suffix == ".json":
                documents[file.stem] = json.loads(file.read_bytes())
            else:
                tables[file.stem] = _parquet().read_table(file) if file.suffix == ".parquet" else read_csv(file)
        except (OSError, ValueError, RecursionError, pa.ArrowException):
            raise DataError(f"{path}: cannot read {name}.", hint="Restore the folder, or release again.") from None
    return manifest, tables, documents


def read_manifest(path: Path) -> dict[str, Any]:
    """Read the `release.json` of a folder."""
    try:
        manifest = json.loads(content_of(path / MANIFEST).decode())
    except OSError:
        raise DataError(
            f"{path} is not a release: it has no readable {MANIFEST}.", hint="Give the folder of a release."
        ) from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: {MANIFEST} is corrupt.", hint="Restore the folder, or release again.") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(
            f"{path}: this version cannot read the format of {MANIFEST}.",
            hint="Read it with the version of Reticent that wrote it.",
        )
    return manifest


def content_of(file: Path) -> bytes:
    """Return the content of a file of a release."""
    refuse_special_file(file)
    return file.read_bytes()


def refuse_special_file(file: Path) -> None:
    """Refuse a pipe, a device or a folder: reading it may never end."""
    if file.exists() and not file.is_file():
        raise OSError


def read_csv(file: Path) -> pa.Table:
    """Read a CSV file of a release: all columns as text, except the counts and group numbers that Reticent adds."""
    with file.open("rb") as head:
        names = pa.csv.open_csv(head).schema.names
    own = {"group": pa.int64(), "count": pa.int64()}
    types = {
        name: own[name] if name in own and file.stem in ("qit", "st", "counterfeits", "data") else pa.string()
        for name in names
    }
    options = pa.csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    return unescape_formulas(pa.csv.read_csv(file, convert_options=options))


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


_FORMULA_START = r"[=+\-@\t\r](?s:.)"
_FORMULA = f"^'*{_FORMULA_START}"
_NUMBER = r"^[+-][0-9]*[.,]?[0-9]+([eE][+-]?[0-9]+)?$"
_ESCAPED = f"^'('*{_FORMULA_START})"
_RISKY_FIRST_BYTES = np.zeros(256, dtype=np.bool_)
_RISKY_FIRST_BYTES[list(b"'=+-@\t\r")] = True


def escape_formulas(table: pa.Table) -> pa.Table:
    """Escape the cells and the header of a table for CSV.

    >>> escape_formulas(pa.table({"note": ["=1+1", "-5", "'@x", "a-b"]}))["note"].to_pylist()
    ["'=1+1", '-5', "''@x", 'a-b']
    """
    columns = [_escape_cells(column) if _is_text(column.type) else column for column in table.columns]
    return pa.table(columns, names=_escape_cells(pa.array(table.column_names, pa.string())).to_pylist())


def unescape_formulas(table: pa.Table) -> pa.Table:
    """Restore a table from its form after `escape_formulas`.

    >>> unescape_formulas(pa.table({"note": ["'=1+1", "-5", "''@x", "'tis"]}))["note"].to_pylist()
    ['=1+1', '-5', "'@x", "'tis"]
    """
    columns = [_unescape_cells(column) if _is_text(column.type) else column for column in table.columns]
    return pa.table(columns, names=_unescape_cells(pa.array(table.column_names, pa.string())).to_pylist())


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _escape_cells(cells: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if not _may_have_formula(cells):
        return cells
    formulas = pc.and_not(pc.match_substring_regex(cells, _FORMULA), pc.match_substring_regex(cells, _NUMBER))
    if not pc.any(formulas).as_py():
        return cells
    return pc.if_else(formulas, pc.binary_join_element_wise("'", cells, ""), cells)


def _may_have_formula(cells: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a cell may begin with a sign or an apostrophe; checks first bytes only, before any regular expression."""
    for chunk in cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]:
        wide = np.dtype(np.int64 if pa.types.is_large_string(chunk.type) else np.int32)
        _, offsets, text = chunk.buffers()
        if not len(chunk) or text is None or not text.size:
            continue
        starts = np.frombuffer(offsets, wide, len(chunk), chunk.offset * wide.itemsize)
        # An empty cell yields the first byte of the next cell, which is checked anyway.
        if _RISKY_FIRST_BYTES[np.frombuffer(text, np.uint8).take(starts, mode="clip")].any():
            return True
    return False


def _unescape_cells(cells: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if not pc.any(pc.starts_with(cells, "'")).as_py():
        return cells
    return pc.replace_substring_regex(cells, _ESCAPED, r"\1")
