"""Write generated tables to files in batches, in the format of the suffix; no incomplete file is ever visible."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

import pyarrow as pa

from reticent.connectors.files import atomic_file, open_table
from reticent.connectors.files.atomic import system_errors
from reticent.errors import PolicyError

RowCallback = Callable[[int], None] | None
"""Called with the number of rows written."""

SUFFIXES = (".csv", ".parquet", ".arrow", ".ndjson")
"""The supported suffixes of data files."""


@contextmanager
def table_file(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Yield a function that appends a table to a data file; generated values need no quotes."""
    if path.suffix not in SUFFIXES:
        raise PolicyError("The output file has an unknown suffix.", hint=f"Use one of: {', '.join(SUFFIXES)}.")
    make_folder(path.parent)
    with open_table(path, schema, quotes=False) as write_batch:

        def append(table: pa.Table) -> None:
            for batch in table.combine_chunks().to_batches():
                write_batch(batch)

        yield append


def write(batches: Iterable[pa.Table], path: Path, *, on_rows: RowCallback = None) -> None:
    """Write all batches to one file; ``on_rows`` is called for each batch."""
    incoming = iter(batches)
    first = next(incoming)
    with table_file(path, first.schema) as append:
        for batch in chain([first], incoming):
            append(batch)
            if on_rows:
                on_rows(batch.num_rows)


@contextmanager
def private_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that only its owner can read, and that becomes visible when complete."""
    make_folder(path.parent)
    with atomic_file(path) as file:
        yield file


def write_text(text: str, path: Path) -> None:
    """Write a small text file atomically."""
    with private_file(path) as file:
        file.write(text.encode())


def make_folder(folder: Path) -> None:
    """Create a folder and its parents."""
    with system_errors(f"{folder} cannot be created", "Choose a folder with write permission."):
        folder.mkdir(parents=True, exist_ok=True)


def csv_text(table: pa.Table) -> str:
    """Return a small table as CSV text, with quotes where needed."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return text.getvalue()
