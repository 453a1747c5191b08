"""Tables to files, batch by batch, in the format the suffix names; a file appears complete or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import AbstractContextManager, suppress
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from reticent.errors import ConnectorError, PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import TracebackType

SUFFIXES = (".csv", ".parquet", ".arrow", ".ndjson")
"""What a data file may end in."""


class TableFile(AbstractContextManager["TableFile"]):
    """A data file being written: hidden beside its place until the end, gone if anything fails."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        if path.suffix not in SUFFIXES:
            raise PolicyError("The output file has an unknown suffix.", hint=f"Use one of: {', '.join(SUFFIXES)}.")
        self.path = path
        self._hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        self._file = _create(self._hidden)
        self._writer = _WRITERS[path.suffix](self._file, schema)

    def write(self, table: pa.Table) -> None:
        """Appends the rows of a table."""
        try:
            self._writer.write_table(table)
        except OSError as error:
            raise _cannot_write(self.path, error) from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._writer.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            if kind is None:
                self._hidden.replace(self.path)
        except OSError as failure:
            raise _cannot_write(self.path, failure) from None
        finally:
            with suppress(OSError):
                self._file.close()
            self._hidden.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self


def write(batches: Iterable[pa.Table], path: Path, *, on_rows: Callable[[int], None] | None = None) -> int:
    """Writes all batches to one file and says how many rows there were; ``on_rows`` hears of each batch."""
    total = 0
    incoming = iter(batches)
    first = next(incoming)
    with TableFile(path, first.schema) as file:
        for batch in chain([first], incoming):
            file.write(batch)
            total += batch.num_rows
            if on_rows:
                on_rows(batch.num_rows)
    return total


def write_csv(batches: Iterable[pa.Table], path: Path) -> int:
    """Writes all batches to one CSV file and says how many rows there were."""
    if path.suffix != ".csv":
        raise PolicyError("A CSV file must end in .csv.", hint="Give the file the suffix .csv.")
    return write(batches, path)


def write_text(text: str, path: Path) -> None:
    """Writes a small text file, complete or not at all."""
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with _create(hidden) as file:
            file.write(text.encode())
        hidden.replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from None
    finally:
        hidden.unlink(missing_ok=True)


def _create(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except OSError as error:
        raise _cannot_write(path, error) from None


def _cannot_write(path: Path, error: OSError) -> ConnectorError:
    reason = (error.strerror or "input/output error").lower()
    return ConnectorError(
        f"Cannot write to {path.parent}: {reason}.", hint="Choose a folder with space and write access."
    )


class _Csv:
    """CSV without needless quotes; the generated values have no commas."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        file.write((",".join(schema.names) + "\n").encode())
        options = pa.csv.WriteOptions(include_header=False, quoting_style="none")
        self._writer = pa.csv.CSVWriter(file, schema, write_options=options)

    def write_table(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()


class _Ndjson:
    """One JSON object per line, joined column by column instead of row by row."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self._file = file
        self._keys = [f'{"," if i else "{"}"{name}":' for i, name in enumerate(schema.names)]

    def write_table(self, table: pa.Table) -> None:
        parts: list[Any] = []
        for key, column in zip(self._keys, table.columns, strict=True):
            parts += [pa.scalar(key), _json(column.combine_chunks())]
        lines = pc.binary_join_element_wise(*parts, pa.scalar("}\n"), "")
        # The characters of a string column lie one after another in memory: the file as it should be.
        _, _, characters = lines.buffers()
        self._file.write(memoryview(characters)[: pc.sum(pc.binary_length(lines)).as_py() or 0] if len(lines) else b"")

    def close(self) -> None:
        """Nothing is held back."""


def _json(column: pa.Array) -> pa.Array:
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return column.cast(pa.string())
    if pa.types.is_timestamp(column.type):
        column = pc.strftime(column, format="%Y-%m-%dT%H:%M:%S")
    text = pc.replace_substring(column.cast(pa.string()), "\\", "\\\\")
    return pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '\\"'), '"', "")


_WRITERS: dict[str, Callable[[IO[bytes], pa.Schema], Any]] = {
    ".csv": _Csv,
    ".parquet": pyarrow.parquet.ParquetWriter,
    ".arrow": pa.ipc.new_file,
    ".ndjson": _Ndjson,
}
