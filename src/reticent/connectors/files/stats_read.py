"""Files of statistics programs: SAS (.sas7bdat, .xpt), SPSS (.sav, .zsav) and Stata (.dta), through pyreadstat.

Codes stay codes: the labels that SPSS and Stata keep beside them are not put in their place. What the programs call
missing is null. Dates and times keep their types.
"""

from __future__ import annotations

import pyarrow as pa

from reticent.connectors.files.cells import table_of
from reticent.connectors.files.magic import program_of
from reticent.connectors.files.read import ReadOptions
from reticent.connectors.files.sniff import Format
from reticent.connectors.files.source import Opened, seekable
from reticent.errors import DataError, needing


def table(source: Opened, _: Format, options: ReadOptions) -> pa.Table:
    """The whole file as one table."""
    reader, program = program_of(source.head) or ("sas7bdat", "SAS")
    with needing(f"{source.name}: {program} needs a library of its own", "stats"):
        import pyreadstat
    with seekable(source) as file:
        try:
            columns, _ = getattr(pyreadstat, f"read_{reader}")(file, output_format="dict")
        except (pyreadstat.ReadstatError, ValueError, OverflowError, UnicodeError, OSError):
            raise DataError(f"{source.name} is a damaged {program} file.", hint="Export or copy it again.") from None
    cells = [column.tolist() if hasattr(column, "tolist") else list(column) for column in columns.values()]
    return table_of(source.name, list(columns), cells, options)
