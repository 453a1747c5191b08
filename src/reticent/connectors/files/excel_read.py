"""Excel workbooks (.xlsx, .xlsm, .xlsb, .xls): the only sheet with cells, or the one named after `!`.

The first row names the columns. Numbers, dates and truth values keep their types, an empty cell is null, and a formula
is the value that was last computed.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from reticent.connectors.files.cells import table_of
from reticent.connectors.files.read import ReadOptions
from reticent.connectors.files.sniff import Format
from reticent.connectors.files.source import Opened, seekable
from reticent.errors import DataError, needing


def table(source: Opened, _: Format, options: ReadOptions) -> pa.Table:
    """The sheet as one table; the format limits it to a million rows."""
    header, *rows = _rows(source) or [[]]
    columns = list(zip(*(row for row in rows if any(cell != "" for cell in row)), strict=True))
    return table_of(source.name, [str(cell).strip() for cell in header], columns, options)


def _rows(source: Opened) -> list[list[Any]]:
    with needing(f"{source.name}: Excel needs a library of its own", "excel"):
        import python_calamine as calamine
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
