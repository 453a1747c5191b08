"""CSV through pyarrow's multi-threaded parser, every cell as text unless the caller gives a type.

Text costs less than it seems: five million rows of ten columns read in about a second on two cores, and
dictionary-encoding while reading was measured to be half as fast again, so encoding is left to the encoder.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pacsv

from reticent.connectors.files import locate
from reticent.connectors.files.guard import MAX_LINE, Guard, too_long
from reticent.connectors.files.sniff import Format, decode_head, first_rows
from reticent.connectors.files.want import Want, check_names, no_rows
from reticent.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reticent.connectors.files.source import Opened


def table(source: Opened, form: Format, want: Want) -> pa.Table:
    """The whole file as one table."""
    job = _Job(source, form, want)
    with job.errors():
        found = pacsv.read_csv(job.guard, **job.settings())
    job.finish(found.num_rows)
    return found


def batches(source: Opened, form: Format, want: Want) -> Iterator[pa.RecordBatch]:
    """The file piece by piece, each piece at most `want.batch_rows` rows."""
    job = _Job(source, form, want)
    rows = 0
    with job.errors():
        reader = pacsv.open_csv(job.guard, **job.settings())
    while True:
        with job.errors():
            block = next(iter(reader), None)
        if block is None:
            break
        rows += block.num_rows
        for start in range(0, block.num_rows, want.batch_rows):
            yield block.slice(start, want.batch_rows)
    job.finish(rows)


def header(source: Opened, form: Format) -> tuple[str, ...]:
    """The column names, checked."""
    text = decode_head(source.name, source.head[form.bom :], form.encoding)
    if "\0" in text[:4096]:
        Guard(source, form).read(MAX_LINE)  # says where
    rows = [row for row in first_rows(text, form.delimiter, form.quote) if row]
    if len(rows) < 2 and not source.whole:
        Guard(source, form).read(MAX_LINE + (1 << 20))
        raise too_long(source.name, 1)
    if not rows:
        raise DataError(f"{source.name} has no readable header line.", hint="The first line must name the columns.")
    check_names(source.name, rows[0])
    if len(rows) == 1:
        raise no_rows(source.name)
    return tuple(rows[0])


class _Job:
    """One reading of one file: the parser's settings, and what its complaints mean."""

    def __init__(self, source: Opened, form: Format, want: Want) -> None:
        self._source = source
        self._form = form
        self._names = header(source, form)
        self._columns = want.of(source.name, self._names)
        self._types = want.types
        self._bad_row: pacsv.InvalidRow | None = None
        self.guard = Guard(source, form)

    def settings(self) -> dict[str, Any]:
        return {
            "read_options": pacsv.ReadOptions(
                block_size=MAX_LINE,
                # One thread tells the row number, which nothing else can for a pipe.
                use_threads=self._source.path is not None,
            ),
            "parse_options": pacsv.ParseOptions(
                delimiter=self._form.delimiter,
                quote_char=self._form.quote,
                newlines_in_values=True,
                # In a table of one column an empty line is a missing value, and those are never dropped.
                ignore_empty_lines=len(self._names) > 1,
                invalid_row_handler=self._on_bad_row,
            ),
            "convert_options": pacsv.ConvertOptions(
                check_utf8=False,  # the guard did
                column_types={name: self._types.get(name, pa.string()) for name in self._columns},
                include_columns=list(self._columns),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        }

    def _on_bad_row(self, row: pacsv.InvalidRow) -> str:
        self._bad_row = row
        return "error"

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Replace the parser's errors, which quote cells, by ours."""
        try:
            yield
        except (pa.ArrowException, ValueError) as error:
            raise self._explain(str(error)) from None

    def _explain(self, said: str) -> DataError:
        name = self._source.name
        if self._bad_row is not None:
            return self._ragged()
        if "straddl" in said:
            return too_long(name)
        if column := re.search(r"In CSV column #(\d+): CSV conversion error to (\w+)", said):
            names = self._names
            place = int(column[1])
            shown = repr(names[place]) if place < len(names) else f"number {place + 1}"
            return DataError(f"{name}: column {shown} has a cell that is not {column[2]}.", hint="Read it as text.")
        return DataError(f"{name} cannot be read as CSV.", hint="Check its delimiter, quotes and line ends.")

    def _ragged(self) -> DataError:
        bad, width = self._bad_row, len(self._names)
        assert bad is not None  # noqa: S101  # the caller checked
        found = locate.ragged_line(self._source, self._form, width) or (bad.number, bad.actual_columns)
        place = f", line {found[0]}" if found[0] is not None else ""
        return DataError(
            f"{self._source.name}{place}: expected {width} cells as in the header, found {found[1]}.",
            hint="Quote cells that contain the delimiter, and give every row all its cells.",
        )

    def finish(self, rows: int) -> None:
        """Check at the end what only the end can show."""
        if self.guard.quotes % 2:
            # The parser closes a quote that is open at the end by itself: all rows after it would be one cell.
            line = locate.open_quote_line(self._source, self._form)
            place = f", line {line}" if line else ""
            raise DataError(
                f"{self._source.name}{place}: a quote is opened and never closed.",
                hint="Double every quote inside a cell and wrap the cell in quotes.",
            )
        if not rows:
            raise no_rows(self._source.name)
