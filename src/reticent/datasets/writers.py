"""Generated tables to files, batch by batch, in the format the suffix names; a file appears complete or not at all."""

from __future__ import annotations

import csv
import io
import os
from contextlib import contextmanager
from itertools import chain
from typing import IO, TYPE_CHECKING

from reticent.connectors.files import atomic_file, open_table
from reticent.errors import ConnectorError, PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

SUFFIXES = (".csv", ".parquet", ".arrow", ".ndjson")
"""What a data file may end in."""


@contextmanager
def table_file(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Gives a function that appends a table to a data file; the generated values need no quotes."""
    if path.suffix not in SUFFIXES:
        raise PolicyError("The output file has an unknown suffix.", hint=f"Use one of: {', '.join(SUFFIXES)}.")
    make_folder(path.parent)
    with open_table(path, schema, quotes=False) as write_batch:

        def append(table: pa.Table) -> None:
            for batch in table.combine_chunks().to_batches():
                write_batch(batch)

        yield append


def write(batches: Iterable[pa.Table], path: Path, *, on_rows: Callable[[int], None] | None = None) -> int:
    """Writes all batches to one file and says how many rows there were; ``on_rows`` hears of each batch."""
    total = 0
    incoming = iter(batches)
    first = next(incoming)
    with table_file(path, first.schema) as append:
        for batch in chain([first], incoming):
            append(batch)
            total += batch.num_rows
            if on_rows:
                on_rows(batch.num_rows)
    return total


def write_csv(batches: Iterable[pa.Table], path: Path) -> int:
    """Writes all batches to one CSV file and says how many rows there were."""
    if path.suffix != ".csv":
        raise PolicyError("A CSV file must end in .csv.", hint="Give the file the suffix .csv.")
    return write(batches, path)


@contextmanager
def private_file(path: Path) -> Iterator[IO[bytes]]:
    """Gives a file for its owner alone that appears when it is complete."""
    make_folder(path.parent)
    with atomic_file(path) as file:
        yield file


def write_text(text: str, path: Path) -> None:
    """Writes a small text file, complete or not at all."""
    with private_file(path) as file:
        file.write(text.encode())


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConnectorError(
            f"{folder} cannot be made: {os.strerror(error.errno or 0)}.", hint="Choose a folder that may be written."
        ) from None


def csv_text(table: pa.Table) -> str:
    """A small table as CSV, its cells quoted where they have to be."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return text.getvalue()
