"""Read CSV with pyarrow's multi-threaded parser, every cell as text.

Reading as text is fast: five million rows of ten columns take one to two seconds on two cores. Dictionary-encoding
during reading took 50 % longer, so the encoder does it later.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Generator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from reticent.connectors.files.checked_stream import MAX_LINE, Block, CheckedStream, iter_blocks, line_length_error
from reticent.connectors.files.read import ReadOptions, check_names, no_rows_error
from reticent.connectors.files.sniff import Format, decode_head, first_rows
from reticent.connectors.files.source import OpenInput
from reticent.errors import DataError
from reticent.policy.cells import with_decimal_points

# Bytes that one parser thread handles at a time.
_PIECE = 2 << 20


def table(source: OpenInput, file_format: Format, options: ReadOptions) -> pa.Table:
    """Return the whole file as one table."""
    return pa.concat_tables(_tables(source, file_format, options))


def batches(source: OpenInput, file_format: Format, options: ReadOptions) -> Generator[pa.RecordBatch]:
    """Yield the file in batches of at most `options.batch_rows` rows."""
    with contextlib.closing(_tables(source, file_format, options)) as tables:
        for part in tables:
            yield from part.to_batches(max_chunksize=options.batch_rows)


def _tables(source: OpenInput, file_format: Format, options: ReadOptions) -> Generator[pa.Table]:
    parser = _Parser(source, file_format, options)
    rows = 0
    with contextlib.closing(iter_blocks(source, file_format)) as pieces:
        for block in pieces:
            part = parser.parse(block)
            rows += part.num_rows
            yield part
    if not rows:
        raise no_rows_error(source.name)


def header(source: OpenInput, file_format: Format) -> tuple[str, ...]:
    """Return the checked column names; the name is empty for a column that has no name and no cells."""
    text = decode_head(source.name, source.head[file_format.bom :], file_format.encoding)
    if "\0" in text[:4096]:
        CheckedStream(source, file_format).read(MAX_LINE)  # raises the error with its line
    lines = first_rows(text, file_format.delimiter, file_format.quote)
    rows = [row for row in lines if row]
    if len(rows) < 2 and not source.is_whole:
        CheckedStream(source, file_format).read(2 * MAX_LINE)  # raises a more exact error if there is one
        raise line_length_error(source.name, 1)
    if not rows:
        raise DataError(f"{source.name} has no readable header line.", hint="Write the column names in the first line.")
    check_names(source.name, rows[0], empty=_empty_columns(rows), lines=lines)
    if len(rows) == 1:
        raise no_rows_error(source.name)
    return tuple(rows[0])


def _empty_columns(rows: list[list[str]]) -> set[int]:
    """Return the numbers, from 1, of the columns that are empty in all of these rows."""
    return {
        place
        for place in range(1, len(rows[0]) + 1)
        if not any(cell.strip() for row in rows for cell in row[place - 1 : place])
    }


class _Parser:
    """Parser settings for one file, and the explanation of the parser's errors."""

    def __init__(self, source: OpenInput, file_format: Format, options: ReadOptions) -> None:
        self._name = source.name
        self._format = file_format
        self._header = header(source, file_format)
        # A placeholder that no file can contain, because NUL is refused.
        self._names = [name if name.strip() else f"\0{place}" for place, name in enumerate(self._header, 1)]
        self._nameless = [name for name in self._names if name not in self._header]
        if len(self._nameless) == len(self._names):
            check_names(self._name, self._header)
        columns = options.select_columns(source.name, [name for name in self._names if name not in self._nameless])
        self._ragged = False
        self._parse = pacsv.ParseOptions(
            delimiter=file_format.delimiter,
            quote_char=file_format.quote,
            newlines_in_values=True,
            # In a table with one column an empty line is a missing value, which must not be dropped.
            ignore_empty_lines=len(self._header) > 1,
            invalid_row_handler=self._on_bad_row,
        )
        self._convert = pacsv.ConvertOptions(
            check_utf8=False,  # CheckedStream has checked it
            column_types=dict.fromkeys([*columns, *self._nameless], pa.string()),
            include_columns=[*columns, *self._nameless],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    def parse(self, block: Block) -> pa.Table:
        """Parse one block; replace the parser's errors, which quote cells, with ours."""
        try:
            return self._read(block, _PIECE)
        except (pa.ArrowException, ValueError) as error:
            message = str(error)
        with contextlib.suppress(pa.ArrowException, ValueError):
            if "straddl" in message:  # a row longer than one piece
                return self._read(block, len(block.data) + 1)
        raise self._explain(block)

    def _read(self, block: Block, piece: int) -> pa.Table:
        names = None if block.first and not self._nameless else self._names
        options = pacsv.ReadOptions(block_size=piece, column_names=names)
        part = pacsv.read_csv(
            pa.BufferReader(block.data), read_options=options, parse_options=self._parse, convert_options=self._convert
        )
        part = self._without_nameless(part.slice(int(block.first))) if self._nameless else part
        return with_decimal_points(part) if self._format.delimiter == ";" else part

    def _without_nameless(self, part: pa.Table) -> pa.Table:
        """Drop the columns without a name; refuse the file if one of them has a cell."""
        for name in self._nameless:
            if pc.any(pc.not_equal(part.column(name), "")).as_py():
                check_names(self._name, self._header)
        return part.drop_columns(self._nameless)

    def _on_bad_row(self, _: pacsv.InvalidRow) -> str:
        self._ragged = True
        return "error"

    def _explain(self, block: Block) -> DataError:
        width = len(self._header)
        if self._ragged and (row := self._ragged_row(block)):
            title = "Write the column names in the first line and remove titles above it."
            return DataError(
                f"{self._name}, line {row[0]}: expected {width} cells as in the header, found {row[1]}.",
                hint=title
                if width == 1
                else "Quote cells that contain the delimiter, and give every row all its cells.",
            )
        return DataError(
            f"{self._name}, after line {block.line}: cannot be parsed as CSV.",
            hint="Check the delimiter, the quotes and the number of cells in each row.",
        )

    def _ragged_row(self, block: Block) -> tuple[int, int] | None:
        """Return the line and the width of the first row that is not as wide as the header."""
        text = io.TextIOWrapper(io.BytesIO(block.data), "utf-8", newline="")
        reader = csv.reader(text, delimiter=self._format.delimiter, quotechar=self._format.quote)
        before = 0
        with contextlib.suppress(csv.Error):
            for row in reader:
                if row and len(row) != len(self._header):
                    return block.line + before, len(row)
                before = reader.line_num
        return None
