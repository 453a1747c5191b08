"""Excel workbooks (.xlsx, .xlsm, .xlsb, .xls): the only sheet with cells, or the one named after `!`.

The first row names the columns. Numbers, dates and truth values keep their types, an empty cell is null, and a formula
is the value that was last computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reticent.connectors.files.cells import column_of
from reticent.connectors.files.read_options import ReadOptions, check_names, no_rows
from reticent.connectors.files.source import Opened, seekable
from reticent.errors import ConnectorError, DataError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from reticent.connectors.files.sniff import Format


def batches(source: Opened, file_format: Format, options: ReadOptions) -> Generator[pa.RecordBatch]:
    """The sheet piece by piece; a workbook is read as a whole, which its format limits to a million rows."""
    yield from table(source, file_format, options).to_batches(options.batch_rows)


def table(source: Opened, _: Format, options: ReadOptions) -> pa.Table:
    """The sheet as one table."""
    header, *rows = _rows(source) or [[]]
    names = [str(cell).strip() for cell in header]
    check_names(source.name, names)
    rows = [row for row in rows if any(cell != "" for cell in row)]
    if not rows:
        raise no_rows(source.name)
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    wanted = options.of(source.name, names)
    return pa.table({name: column_of(source.name, name, _nulls(columns[name])) for name in wanted})


def _nulls(cells: Sequence[Any]) -> list[Any]:
    return [None if cell == "" else cell for cell in cells]


def _rows(source: Opened) -> list[list[Any]]:
    try:
        import python_calamine as calamine
    except ImportError:
        raise ConnectorError(
            f"{source.name}: Excel needs a library of its own.", hint="Install it: pip install 'reticent[excel]'."
        ) from None
    with seekable(source) as file:
        try:
            book = calamine.CalamineWorkbook.from_filelike(file)
            return list(_sheet(source, book).to_python())
        except calamine.PasswordError:
            raise DataError(
                f"{source.name} is an Excel workbook with a password.", hint="Save it without one."
            ) from None
        except (calamine.CalamineError, OSError):
            raise DataError(f"{source.name} is a damaged Excel workbook.", hint="Save or copy it again.") from None


def _sheet(source: Opened, book: Any) -> Any:
    if source.inner is not None:
        if source.inner not in book.sheet_names:
            raise DataError(f"{source.name}: the workbook has no sheet of that name.", hint="Check what follows the !.")
        return book.get_sheet_by_name(source.inner)
    sheets = [sheet for sheet in map(book.get_sheet_by_name, book.sheet_names) if sheet.end is not None]
    if len(sheets) != 1:
        count = len(sheets) or "no"
        raise DataError(
            f"{source.name} is an Excel workbook with {count} filled sheets.", hint=f"Name one: {source.name}!SHEET."
        )
    return sheets[0]
