"""The public Adult set, read from a folder of the user; it is not included.

Two files are supported: ``adult_30162.csv`` (semicolons, a header, no missing values) and ``adult.data`` (the
original: commas, no header, ``?`` for a missing value).
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from reticent.errors import DataError

_DEFAULT_DATA = Path("../shared/data")
"""The default data folder."""


def data_folder(file: str) -> Path | None:
    """Return the folder ``adult`` in ``RETICENT_DATA`` or in the default data folder; None if it lacks this file."""
    place = Path(os.environ.get("RETICENT_DATA", _DEFAULT_DATA)) / "adult"
    return place if (place / file).is_file() else None


COLUMNS = (
    *("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"),
    "salary-class",
)
"""The columns of ``adult_30162.csv``, in order."""

STREAM_QUASI = ("age", "education", "workclass", "marital-status", "race", "sex", "native-country")
"""The quasi-identifiers of the paper on delay-free streams, in order."""

STREAM_SENSITIVE = "salary-occupation"
"""The sensitive attribute of that paper: salary and occupation combined."""

_ORIGINAL = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "salary-class"),
)


def load(folder: Path) -> pa.Table:
    """Load the 30,162 complete records with the nine columns of ``COLUMNS``."""
    if (folder / "adult_30162.csv").is_file():
        return _read(folder / "adult_30162.csv", ";").select(COLUMNS)
    original = load_original(folder)
    known = [pc.not_equal(original[name], "?") for name in ("workclass", "occupation", "native-country")]
    return original.filter(pc.and_(pc.and_(known[0], known[1]), known[2])).select(COLUMNS)


def load_original(folder: Path) -> pa.Table:
    """Load all records of ``adult.data`` with all fifteen columns; a missing value is ``?``."""
    path = folder / "adult.data"
    if not path.is_file():
        raise DataError(
            "The folder has no adult.data and no adult_30162.csv.",
            hint="Download the Adult set from the UCI repository and give its folder.",
        )
    return _read(path, ",", _ORIGINAL)


def load_stream(folder: Path) -> pa.Table:
    """Load the Adult set as in the paper on delay-free streams: seven quasi-identifiers, then salary-occupation.

    The combined attribute has 30 values in ``adult.data``, including missing occupations, and 28 in complete records.
    """
    table = load_original(folder) if (folder / "adult.data").is_file() else load(folder)
    merged = pc.binary_join_element_wise(table["salary-class"], table["occupation"], " ")
    return table.select(STREAM_QUASI).append_column(STREAM_SENSITIVE, merged)


def _read(path: Path, delimiter: str, names: tuple[str, ...] = ()) -> pa.Table:
    try:
        table = pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(column_names=names or None, block_size=1 << 24),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter),
            convert_options=pa.csv.ConvertOptions(null_values=[], strings_can_be_null=False),
        )
        return pa.table({name: _trim(table[name]) for name in names or COLUMNS}).combine_chunks()
    except (pa.ArrowInvalid, KeyError):
        raise DataError(
            f"The file {path.name} is not in the format of the Adult set.", hint="Download it again."
        ) from None


def _trim(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_trim_whitespace(column) if pa.types.is_string(column.type) else column
