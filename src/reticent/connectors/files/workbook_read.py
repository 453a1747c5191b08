"""Read Excel workbooks and files of statistics programs: one type per column, text if types mix.

Excel (.xlsx, .xlsm, .xlsb, .xls): the only sheet with cells, or the sheet named after `!`. The first row names the
columns, an empty cell is null, and a formula is its last computed value. SAS (.sas7bdat, .xpt), SPSS (.sav, .zsav) and
Stata (.dta): codes stay codes, value labels are not used, and missing values of the program are null.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pyarrow as pa

from reticent.connectors.files.magic import program_of
from reticent.connectors.files.read import ReadOptions, check_names, no_rows_error
from reticent.connectors.files.sniff import Format
from reticent.connectors.files.source import OpenInput, seekable
from reticent.errors import DataError, require_extra

# Number of sheets that a hint names.
_SHEETS = 5


def table(source: OpenInput, file_format: Format, options: ReadOptions) -> pa.Table:
    """Return the whole file as one table; a sheet has at most about a million rows."""
    names, columns = _sheet_columns(source) if file_format.name == "excel" else _stats_columns(source)
    return table_of(source.name, names, columns, options)


def batches(source: OpenInput, file_format: Format, options: ReadOptions) -> Generator[pa.RecordBatch]:
    """Yield the file in batches; the library still reads it as a whole."""
    yield from table(source, file_format, options).to_batches(options.batch_rows)


def _sheet_columns(source: OpenInput) -> tuple[list[str], Sequence[Sequence[Any]]]:
    header, *rows = _rows(source) or [[]]
    names = [str(cell).strip() for cell in header]
    columns = list(zip(*(row for row in rows if any(cell != "" for cell in row)), strict=True))
    # A column without a name and without cells is a gap between columns.
    full = [place for place, cells in enumerate(columns) if names[place] or any(cell != "" for cell in cells)]
    check_names(source.name, [names[place] for place in full], lines=[header, *rows])
    return ([names[place] for place in full], [columns[place] for place in full]) if columns else (names, columns)


def _stats_columns(source: OpenInput) -> tuple[list[str], Sequence[Sequence[Any]]]:
    """Return the names and columns of a SAS, SPSS or Stata file."""
    reader, program = program_of(source.head) or ("sas7bdat", "SAS")
    with require_extra(f"{source.name}: {program} needs an extra library", "stats"):
        import pyreadstat
    with seekable(source) as file:
        try:
            columns, _ = getattr(pyreadstat, f"read_{reader}")(file, output_format="dict")
        except (pyreadstat.ReadstatError, ValueError, OverflowError, UnicodeError, OSError):
            raise DataError(f"{source.name} is a corrupt {program} file.", hint="Export or copy it again.") from None
    cells = [column.tolist() if hasattr(column, "tolist") else list(column) for column in columns.values()]
    return list(columns), cells


def _rows(source: OpenInput) -> list[list[Any]]:
    with require_extra(f"{source.name}: Excel needs an extra library", "excel"):
        import python_calamine as calamine
    with seekable(source) as file:
        try:
            workbook = calamine.CalamineWorkbook.from_filelike(file)
            return list(_sheet(source, workbook).to_python())
        except calamine.PasswordError:
            raise DataError(
                f"{source.name} is an Excel workbook with a password.", hint="Save it without one."
            ) from None
        except (calamine.CalamineError, OSError):
            raise DataError(f"{source.name} is a corrupt Excel workbook.", hint="Save or copy it again.") from None


def _sheet(source: OpenInput, workbook: Any) -> Any:
    if source.inner is not None:
        if source.inner not in workbook.sheet_names:
            raise DataError(
                f"{source.name}: the workworkbook has no sheet of that name.", hint="Check the name after the !."
            )
        return workbook.get_sheet_by_name(source.inner)
    sheets = [sheet for sheet in map(workbook.get_sheet_by_name, workbook.sheet_names) if sheet.end is not None]
    if len(sheets) != 1:
        count, names = len(sheets) or "no", [f"{source.name}!{sheet.name}" for sheet in sheets[:_SHEETS]]
        raise DataError(
            f"{source.name} is an Excel workbook with {count} non-empty sheets.",
            hint=f"Name one: {', '.join(names) or source.name + '!SHEET'}.",
        )
    return sheets[0]


def table_of(source: str, names: Sequence[str], columns: Sequence[Sequence[Any]], options: ReadOptions) -> pa.Table:
    """Return the selected columns; an empty text or NaN is a missing value in these programs."""
    check_names(source, names)
    if not columns or not len(columns[0]):
        raise no_rows_error(source)
    by_name = dict(zip(names, columns, strict=True))
    cells = {
        name: [None if cell == "" or cell != cell else cell for cell in by_name[name]]  # noqa: PLR0124 - only NaN differs from itself
        for name in options.select_columns(source, names)
    }
    return pa.table({name: column_of(source, name, column) for name, column in cells.items()})


def column_of(name: str, column: str, cells: Sequence[Any]) -> pa.Array:
    """Return one column; whole numbers stored as floats become integers.

    >>> column_of("t.xlsx", "age", [40.0, None, 31]).type
    DataType(int64)
    """
    types = {type(cell) for cell in cells} - {type(None)}
    for kinds, data_type, change in _TYPES:
        if types and types <= kinds and (change is not _whole or _all_whole(cells)):
            return pa.array([None if cell is None else change(cell) for cell in cells], data_type)
    if types - _KNOWN:
        raise DataError(f"{name}: column {column!r} has cells that are not single values.", hint="Remove the column.")
    return pa.array([None if cell is None else _text(cell) for cell in cells], pa.string())


def _whole(cell: float) -> int:
    return int(cell)


def _all_whole(cells: Sequence[Any]) -> bool:
    return all(cell is None or (float(cell).is_integer() and abs(cell) < 1 << 53) for cell in cells)


def _midnight(cell: dt.date) -> dt.datetime:
    return cell if isinstance(cell, dt.datetime) else dt.datetime(cell.year, cell.month, cell.day)  # noqa: DTZ001 - files have no zone


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1 << 53:
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, (dt.date, dt.time)) else str(cell)


_TYPES: tuple[tuple[set[type], pa.DataType, Callable[[Any], Any]], ...] = (
    ({bool}, pa.bool_(), bool),
    ({int, float}, pa.int64(), _whole),
    ({int, float}, pa.float64(), float),
    ({dt.date}, pa.date32(), lambda cell: cell),
    ({dt.date, dt.datetime}, pa.timestamp("us"), _midnight),
)
_KNOWN = {bool, int, float, str, dt.date, dt.datetime, dt.time, dt.timedelta}
