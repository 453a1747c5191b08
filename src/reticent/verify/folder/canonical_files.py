"""How files are written: each in one way, so that nothing but what it says can stand in it.

A reader of CSV, JSON or Parquet does not see how a cell was quoted, how a line ended, in which order keys came, or what stands in a
footer; somebody who is told to look does. So the bytes of every file of a release must be those that its content has.

Guarantee: of a file that is not named here: JSON has sorted keys, each once, and the usual spaces; CSV has a header, commas, lines that
    end alike, every text in quotes and every number without; Parquet has plain columns, no words in its footer, and the bytes that
    this version of Arrow writes for them.
Not covered: Parquet that another version of Arrow wrote: its columns and footer are looked at, its bytes are not.
Cost: reads each file once more; memory for a piece of it.
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
"""Rows of a part that is written by itself, as a power of two: more parts than that takes would tell something."""
_SCHEMA = b"ARROW:schema"


def noncanonical_files(files: Iterable[Path]) -> tuple[str, ...]:
    """Names of the files whose bytes are not those of their content; what cannot be read is another finding."""
    odd = []
    for file in files:
        look = {".json": _json_differs, ".csv": _csv_differs, ".parquet": _parquet_differs}.get(file.suffix)
        try:
            strange = look is not None and look(file)
        except (OSError, ValueError, RecursionError, pa.ArrowException):
            strange = True
        odd += [file.name] if strange else []
    return tuple(odd)


def _json_differs(file: Path) -> bool:
    content, indent = file.read_bytes(), 2 if file.name == _MANIFEST else None
    return content != json.dumps(json.loads(content), indent=indent, sort_keys=True, allow_nan=False).encode() + b"\n"


class _ComparingWriter(io.RawIOBase):
    """Takes what would be written, and compares it with what is."""

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
        """Whether all was the same, and nothing follows."""
        return self.same and not self._file.read(1)


def _csv_differs(file: Path) -> bool:
    with file.open("rb") as content:
        return not _csv_equals(file, _ComparingWriter(content))


def _csv_equals(file: Path, writer: _ComparingWriter) -> bool:
    options = pa.csv.ReadOptions(block_size=_BLOCK_SIZE)
    with pa.csv.open_csv(file) as head:
        names = head.schema.names
    bare = _number_columns(file, len(names))
    if len(set(names)) < len(names):
        return True  # doubled columns are a finding of their own, and Arrow does not read them one by one
    writer.write(_join_lines([_quote(pa.array([name], pa.string())) for name in names]))
    with pa.csv.open_csv(file, read_options=options, **csv_text_options(names)) as parts:
        for part in parts:
            table = pa.table(part.columns, names=names)
            if not escape_formulas(unescape_formulas(table)).equals(table):
                return False
            cells = [pc.fill_null(cell, "") if at in bare else _quote(cell) for at, cell in enumerate(part.columns)]
            writer.write(_join_lines(cells))
            if not writer.same:
                return False
    return writer.is_complete()


def csv_text_options(names: Iterable[str]) -> dict[str, Any]:
    """How Arrow reads a CSV file of a release: every cell as its text, and nothing where it is empty and has no quotes."""
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    return {"convert_options": convert, "parse_options": pa.csv.ParseOptions(newlines_in_values=True)}


def _quote(cells: pa.Array) -> pa.Array:
    """Texts in quotes, their own quotes doubled; nothing where a cell is missing."""
    return pc.fill_null(pc.binary_join_element_wise('"', pc.replace_substring(cells, '"', '""'), '"', ""), "")


def _join_lines(columns: list[pa.Array]) -> pa.Buffer | bytes:
    """Lines of a CSV file."""
    lines = pc.binary_join_element_wise(*columns, ",") if len(columns) > 1 else columns[0]
    lines = pc.binary_join_element_wise(lines, "\n", "")
    return b"".join(lines.cast(pa.binary()).to_pylist()) if lines.offset else lines.buffers()[2] or b""


def _number_columns(file: Path, columns: int) -> set[int]:
    """The columns of numbers: those whose first cell that is there has no quotes."""
    bare: set[int] = set()
    seen: set[int] = set()
    for at, (quoted, empty) in enumerate(_iter_cells(file)):
        column = at % columns
        if at < columns or column in seen or (empty and not quoted):
            continue
        seen.add(column)
        bare |= set() if quoted else {column}
        if len(seen) == columns:
            break
    return bare


def _iter_cells(file: Path) -> Iterator[tuple[bool, bool]]:
    """The cells of a CSV file, one after the other: whether each has quotes, and whether it is empty."""
    with file.open("rb") as content:
        piece = content.read(_BLOCK_SIZE)
        quoted, inside, size = False, False, 0
        while piece:
            for sign in piece:
                if sign == 0x22:
                    inside, quoted = not inside, True
                elif not inside and sign in (0x2C, 0x0A):
                    yield quoted, not size
                    quoted, size = False, 0
                else:
                    size += 1
            piece = content.read(_BLOCK_SIZE)


def _parquet_differs(file: Path) -> bool:
    with pq.ParquetFile(file) as source:
        return _parquet_parts_differ(file, source)


def _parquet_parts_differ(file: Path, source: pq.ParquetFile) -> bool:
    schema, about = source.schema_arrow, source.metadata
    words = {*(about.metadata or {}), *(key for field in schema for key in field.metadata or {})}
    parts = 1 + 2 * (about.num_rows >> _PART_BITS)
    if words - {_SCHEMA} or not all(field.nullable for field in schema) or source.num_row_groups > parts:
        return True
    if about.created_by != _WRITER:
        return _WRITERS.fullmatch(str(about.created_by)) is None
    with file.open("rb") as content:
        beside = _ComparingWriter(content)
        with pq.ParquetWriter(pa.PythonFile(beside, mode="w"), schema) as writer:
            for group in range(source.num_row_groups):
                part = source.read_row_group(group)
                if not all(map(_is_canonical_column, part.columns)):
                    return True
                writer.write_table(part)
                if not beside.same:
                    return True
        return not beside.is_complete()


def _is_canonical_column(column: pa.ChunkedArray) -> bool:
    """Whether a column's dictionary, if it has one, holds no word that no cell has."""
    if not pa.types.is_dictionary(column.type):
        return not pa.types.is_nested(column.type)
    return all(len(pc.unique(part.indices.drop_null())) == len(part.dictionary) for part in column.chunks)
