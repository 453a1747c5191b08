"""Files of statistics programs: SAS (.sas7bdat, .xpt), SPSS (.sav, .zsav) and Stata (.dta), through pyreadstat.

Codes stay codes: the labels that SPSS and Stata keep beside them are not put in their place. What the programs call
missing is null. Dates and times keep their types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reticent.connectors.files.cells import column_of
from reticent.connectors.files.magic import program_of
from reticent.connectors.files.read_options import ReadOptions, check_names, no_rows
from reticent.connectors.files.source import Opened, seekable
from reticent.errors import ConnectorError, DataError

if TYPE_CHECKING:
    from collections.abc import Generator

    from reticent.connectors.files.sniff import Format


def batches(source: Opened, file_format: Format, options: ReadOptions) -> Generator[pa.RecordBatch]:
    """The file piece by piece; it is read as a whole."""
    yield from table(source, file_format, options).to_batches(options.batch_rows)


def table(source: Opened, _: Format, options: ReadOptions) -> pa.Table:
    """The whole file as one table."""
    reader, program = program_of(source.head) or ("sas7bdat", "SAS")
    columns = _columns(source, reader, program)
    check_names(source.name, list(columns))
    if not columns or not len(next(iter(columns.values()))):
        raise no_rows(source.name)
    wanted = options.of(source.name, list(columns))
    return pa.table({name: column_of(source.name, name, _nulls(columns[name])) for name in wanted})


def _columns(source: Opened, reader: str, program: str) -> dict[str, Any]:
    try:
        import pyreadstat
    except ImportError:
        raise ConnectorError(
            f"{source.name}: {program} needs a library of its own.", hint="Install it: pip install 'reticent[stats]'."
        ) from None
    with seekable(source) as file:
        try:
            columns, _ = getattr(pyreadstat, f"read_{reader}")(file, output_format="dict")
        except (pyreadstat.ReadstatError, ValueError, OverflowError, UnicodeError, OSError):
            raise DataError(f"{source.name} is a damaged {program} file.", hint="Export or copy it again.") from None
    return dict(columns)


def _nulls(cells: Any) -> list[Any]:
    """Numbers that are not one and empty texts are what these programs call missing."""
    values = cells.tolist() if hasattr(cells, "tolist") else list(cells)
    return [None if cell == "" or cell != cell else cell for cell in values]  # noqa: PLR0124 - only NaN differs from itself
