"""Converts frames of other libraries to Arrow tables: pandas, polars, DuckDB, and any with the Arrow interface."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa

from reticent.errors import ConnectorError, DataError

_INPUT_HINT = "Give a pandas or polars frame, a PyArrow table, a DuckDB relation, or the path of a file."
# Types that users often pass by mistake, and how to convert them to a table.
_CONVERSIONS = {
    "LazyFrame": "Call collect() first.",
    "Series": "Call to_frame() first.",
    "dict": "Convert it: pyarrow.table(data).",
    "list": "Convert it: pyarrow.Table.from_pylist(data).",
    "ndarray": "Name its columns: pandas.DataFrame(data, columns=[...]).",
    "DuckDBPyConnection": "Give the result of a query: connection.sql(...).",
}
_NULLABLE = {"bool": "boolean"} | {
    f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_SINGLE_TYPES = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_temporal,
)


def is_frame(data: Any) -> bool:
    """Whether an object is a table in memory, of any library. A single column is not a table."""
    if isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return True
    return _is_pandas(data) or (hasattr(data, "__arrow_c_stream__") and hasattr(data, "columns"))


def table_of(frame: Any) -> pa.Table:
    """Return the columns of a frame as a table. A named pandas index becomes a column.

    Raises:
        DataError: the frame has cells of an unsupported type, columns of mixed types, two columns of one name, or a pandas index without a
            name that is not a row count.
    """
    if not is_frame(frame):
        kind = type(frame).__name__
        raise DataError(
            f"The data has the type {kind}, which is not a table.", hint=_CONVERSIONS.get(kind, _INPUT_HINT)
        )
    names, columns = _pandas_columns(frame) if _is_pandas(frame) else _arrow_columns(frame)
    _refuse_names(names)
    return pa.table({str(name): _simple_column(name, column) for name, column in zip(names, columns, strict=True)})


def pandas_of(table: pa.Table) -> Any:
    """Return the table as a pandas frame. Integers and booleans with missing cells get pandas' nullable types."""
    pandas = _library("pandas")
    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count and (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
            frame[name] = pandas.array(column.to_pylist(), dtype=_NULLABLE[str(column.type)])
    return frame


def polars_of(table: pa.Table) -> Any:
    """Return the table as a polars frame."""
    return _library("polars").from_arrow(table)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ConnectorError(f"{name} is not installed.", hint=f"Install it: pip install {name}.") from None


def _is_pandas(data: Any) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "columns")


def _arrow_columns(frame: Any) -> tuple[list[Any], Sequence[pa.ChunkedArray]]:
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"The frame cannot be converted to a table ({type(error).__name__}).",
            hint="Give every column one type, with a single value in each cell.",
        ) from None
    return table.column_names, table.columns


def _pandas_columns(frame: Any) -> tuple[list[Any], list[Any]]:
    """Convert column by column: pandas' error for all columns at once quotes cells."""
    if frame.columns.nlevels > 1:
        raise DataError(
            f"The column names have {frame.columns.nlevels} levels.",
            hint="Join them: frame.columns = ['_'.join(map(str, names)) for names in frame.columns].",
        )
    levels = _index_levels(frame.index)
    series = [*levels, *(frame.iloc[:, at] for at in range(frame.shape[1]))]
    names = [level.name for level in levels] + list(frame.columns)
    return names, [_pandas_column(name, column) for name, column in zip(names, series, strict=True)]


def _index_levels(index: Any) -> list[Any]:
    """Return a named index as columns. An unnamed index of integers is dropped, such as the one of `frame[condition]`."""
    levels = [index.get_level_values(at) for at in range(index.nlevels)]
    if index.nlevels == 1 and index.name is None and index.dtype.kind in "iu":
        return []
    if any(level.name is None for level in levels):
        raise DataError(
            "The frame has an index without a name that is not a row count.",
            hint="Name it (frame.rename_axis('patient')) to make it a column, or call reset_index(drop=True).",
        )
    return levels


def _pandas_column(name: Any, column: Any) -> Any:
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise DataError(
            f"Column '{name}' has mixed types or an unsupported type ({str(column.dtype).partition('[')[0]}).",
            hint="Convert it to text with .astype('string'), to numbers or to dates, or drop it.",
        ) from None


def _refuse_names(names: list[Any]) -> None:
    if not names:
        raise DataError("The frame has no columns.", hint="Give a table with the columns of the policy.")
    for at, name in enumerate(names, start=1):
        if name is None or name != name or not str(name).strip():  # noqa: PLR0124 - pandas names columns NaN
            raise DataError(f"Column {at} has no name.", hint="Give it a name.")
    duplicates = [name for name, count in Counter(map(str, names)).items() if count > 1]
    if duplicates:
        raise DataError(f"Several columns are named '{duplicates[0]}'.", hint="Rename them, or drop all but one.")


def _simple_column(name: Any, column: Any) -> Any:
    """Convert a column to a type that engines support: views, large strings and categories become plain values."""
    if pa.types.is_dictionary(column.type) and _is_single(column.type.value_type):
        column = _decode(column)
    if not _is_single(column.type):
        raise DataError(
            f"Column '{name}' has an unsupported cell type ({_type_name(column.type)}).",
            hint="Convert it to text, or drop it.",
        )
    return column.cast(pa.string()) if _is_text(column.type) else column


def _is_single(kind: pa.DataType) -> bool:
    return _is_text(kind) or any(single(kind) for single in _SINGLE_TYPES)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _decode(column: Any) -> pa.ChunkedArray:
    """Return the values of a categorical column. Arrow cannot take from text views, so they are cast first."""
    kind = column.type.value_type
    plain = pa.string() if _is_text(kind) else kind
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([chunk.dictionary.cast(plain).take(chunk.indices) for chunk in chunks], plain)


def _type_name(kind: Any) -> str:
    """Return the name of a type without its parameters."""
    return re.split(r"[<\[]", str(kind))[0]
