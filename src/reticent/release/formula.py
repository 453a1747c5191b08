"""Cells that a spreadsheet would run: text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return.

In the CSV files of a release such a cell gets an apostrophe in front, which spreadsheets take for "this is text"; reading
a release takes it off again. A cell that has apostrophes before such a sign gets one more, so that every cell comes back
as it was. Plain numbers stay as they are: a spreadsheet reads them as the numbers they are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SIGN = r"[=+\-@\t\r](?s:.)"
_RUNS = f"^'*{_SIGN}"
_NUMBER = r"^[+-][0-9]*[.,]?[0-9]+([eE][+-]?[0-9]+)?$"
_ESCAPED = f"^'('*{_SIGN})"
_FIRST = np.zeros(256, dtype=np.bool_)
_FIRST[list(b"'=+-@\t\r")] = True


def escaped(table: pa.Table) -> pa.Table:
    """The table as it is written to CSV, its header included.

    >>> escaped(pa.table({"note": ["=1+1", "-5", "'@x", "a-b"]}))["note"].to_pylist()
    ["'=1+1", '-5', "''@x", 'a-b']
    """
    columns = [_escaped(column) if _is_text(column.type) else column for column in table.columns]
    return pa.table(columns, names=_escaped(pa.array(table.column_names, pa.string())).to_pylist())


def plain(table: pa.Table) -> pa.Table:
    """The table as it was before `escaped`.

    >>> plain(pa.table({"note": ["'=1+1", "-5", "''@x", "'tis"]}))["note"].to_pylist()
    ['=1+1', '-5', "'@x", "'tis"]
    """
    columns = [_plain(column) if _is_text(column.type) else column for column in table.columns]
    return pa.table(columns, names=_plain(pa.array(table.column_names, pa.string())).to_pylist())


def _is_text(of: pa.DataType) -> bool:
    value = of.value_type if pa.types.is_dictionary(of) else of
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _escaped(cells: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if not _may_run(cells):
        return cells
    runs = pc.and_not(pc.match_substring_regex(cells, _RUNS), pc.match_substring_regex(cells, _NUMBER))
    if not pc.any(runs).as_py():
        return cells
    return pc.if_else(runs, pc.binary_join_element_wise("'", cells, ""), cells)


def _may_run(cells: pa.Array | pa.ChunkedArray) -> bool:
    """Whether some cell begins with a sign or an apostrophe: a look at first bytes, before anything is matched."""
    for chunk in cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]:
        wide = np.dtype(np.int64 if pa.types.is_large_string(chunk.type) else np.int32)
        _, offsets, text = chunk.buffers()
        if not len(chunk) or text is None or not text.size:
            continue
        starts = np.frombuffer(offsets, wide, len(chunk), chunk.offset * wide.itemsize)
        # An empty cell shows the first byte of the next one, which is looked at anyway.
        if _FIRST[np.frombuffer(text, np.uint8).take(starts, mode="clip")].any():
            return True
    return False


def _plain(cells: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if not pc.any(pc.starts_with(cells, "'")).as_py():
        return cells
    return pc.replace_substring_regex(cells, _ESCAPED, r"\1")
