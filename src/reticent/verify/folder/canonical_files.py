"""Canonical files: each content has one form in bytes, so that a file cannot carry a hidden message.

Software that reads CSV, JSON or Parquet ignores quoting, line endings, the order of keys and the footer. An insider could
hide a message there for an attacker. So the bytes of every file of a release must be the canonical form of its content.

Guarantee: for every file that is not reported: JSON has sorted, unique keys and standard spaces. CSV has a header, commas,
    uniform line ends, quotes around every text and around no number. Parquet has plain columns, no text in its footer, and
    the bytes that this version of Arrow writes for its content.
Not covered: the bytes of Parquet files from another version of Arrow; only their columns and footer are checked.
Cost: reads each file once more; memory for one block.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from reticent.release.folder import escape_formulas, unescape_formulas

_MANIFEST = "release.json"
_BLOCK_SIZE = 1 << 22
_WRITER = f"parquet-cpp-arrow version {pa.__version__}"
_WRITERS = re.compile(r"parquet-cpp-arrow version \d{1,4}(\.\d{1,4}){1,3}")
_PART_BITS = 17
"""Rows per row group, as a power of two: more row groups than necessary could carry a message."""
_SCHEMA = b"ARROW:schema"


def noncanonical_files(files: Iterable[Path]) -> tuple[str, ...]:
    """Return the names of files whose bytes are not the canonical form of their content, or that are unreadable."""
    names = []
    for file in files:
        differs = {".json": _json_differs, ".csv": _csv_differs, ".parquet": _parquet_differs}.get(file.suffix)
        try:
            noncanonical = differs is not None and differs(file)
        except (OSError, ValueError, RecursionError, pa.ArrowException):
            noncanonical = True
        names += [file.name] if noncanonical else []
    return tuple(names)


def _json_differs(file: Path) -> bool:
    content, indent = file.read_bytes(), 2 if file.name == _MANIFEST else None
    return content != json.dumps(json.loads(content), indent=indent, sort_keys=True, allow_nan=False).encode() + b"\n"


class _ComparingWriter(io.RawIOBase):
    """Compare written bytes with the content of a file instead of storing them."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file, self.same = file, True

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = bytes(data)
        self.same = self.same and self._file.read(len(content)) == content
        return len(content)

    def is_complete(self) -> bool:
        """Return whether all bytes were equal and the file has no more."""
        return self.same and not self._file.read(1)


def _csv_differs(file: Path) -> bool:
    with file.open("rb") as content:
        return not _csv_equals(file, _ComparingWriter(content))


def _csv_equals(file: Path, writer: _ComparingWriter) -> bool:
    options = pa.csv.ReadOptions(block_size=_BLOCK_SIZE)
    with pa.csv.open_csv(file) as head:
        names = head.schema.names
    numeric = _number_columns(file, len(names))
    if len(set(names)) < len(names):
        return True  # duplicate columns have a finding of their own; Arrow cannot read them by name
    writer.write(_join_lines([_quote(pa.array([name], pa.string())) for name in names]))
    with pa.csv.open_csv(file, read_options=options, **csv_text_options(names)) as parts:
        for part in parts:
            table = pa.table(part.columns, names=names)
            if not escape_formulas(unescape_formulas(table)).equals(table):
                return False
            cells = [pc.fill_null(cell, "") if at in numeric else _quote(cell) for at, cell in enumerate(part.columns)]
            writer.write(_join_lines(cells))
            if not writer.same:
                return False
    return writer.is_complete()


def csv_text_options(names: Iterable[str]) -> dict[str, Any]:
    """Return options to read a CSV file of a release: cells as text, missing if empty and without quotes."""
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    return {"convert_options": convert, "parse_options": pa.csv.ParseOptions(newlines_in_values=True)}


def _quote(cells: pa.Array) -> pa.Array:
    """Quote texts and double inner quotes; a missing cell becomes empty."""
    return pc.fill_null(pc.binary_join_element_wise('"', pc.replace_substring(cells, '"', '""'), '"', ""), "")


def _join_lines(columns: list[pa.Array]) -> pa.Buffer | bytes:
    """Join columns to the lines of a CSV file."""
    lines = pc.binary_join_element_wise(*columns, ",") if len(columns) > 1 else columns[0]
    lines = pc.binary_join_element_wise(lines, "\n", "")
    return b"".join(lines.cast(pa.binary()).to_pylist()) if lines.offset else lines.buffers()[2] or b""


def _number_columns(file: Path, columns: int) -> set[int]:
    """Return the columns of numbers: the first cell that is not missing has no quotes."""
    numeric: set[int] = set()
    seen: set[int] = set()
    for at, (quoted, empty) in enumerate(_iter_cells(file)):
        column = at % columns
        if at < columns or column in seen or (empty and not quoted):
            continue
        seen.add(column)
        numeric |= set() if quoted else {column}
        if len(seen) == columns:
            break
    return numeric


def _iter_cells(file: Path) -> Iterator[tuple[bool, bool]]:
    """Yield for each cell of a CSV file whether it has quotes, and whether it is empty."""
    with file.open("rb") as content:
        piece = content.read(_BLOCK_SIZE)
        quoted, inside, size = False, False, 0
        while piece:
            for byte in piece:
                if byte == 0x22:
                    inside, quoted = not inside, True
                elif not inside and byte in (0x2C, 0x0A):
                    yield quoted, not size
                    quoted, size = False, 0
                else:
                    size += 1
            piece = content.read(_BLOCK_SIZE)


def _parquet_differs(file: Path) -> bool:
    with pq.ParquetFile(file) as source:
        return _parquet_parts_differ(file, source)


def _parquet_parts_differ(file: Path, source: pq.ParquetFile) -> bool:
    schema, metadata = source.schema_arrow, source.metadata
    keys = {*(metadata.metadata or {}), *(key for field in schema for key in field.metadata or {})}
    parts = 1 + 2 * (metadata.num_rows >> _PART_BITS)
    if keys - {_SCHEMA} or not all(field.nullable for field in schema) or source.num_row_groups > parts:
        return True
    if metadata.created_by != _WRITER:
        return _WRITERS.fullmatch(str(metadata.created_by)) is None
    with file.open("rb") as content:
        comparison = _ComparingWriter(content)
        with pq.ParquetWriter(pa.PythonFile(comparison, mode="w"), schema) as writer:
            for group in range(source.num_row_groups):
                part = source.read_row_group(group)
                if not all(map(_is_canonical_column, part.columns)):
                    return True
                writer.write_table(part)
                if not comparison.same:
                    return True
        return not comparison.is_complete()


def _is_canonical_column(column: pa.ChunkedArray) -> bool:
    """Return whether a column is not nested and its dictionary, if any, has no unused entry."""
    if not pa.types.is_dictionary(column.type):
        return not pa.types.is_nested(column.type)
    return all(len(pc.unique(part.indices.drop_null())) == len(part.dictionary) for part in column.chunks)
