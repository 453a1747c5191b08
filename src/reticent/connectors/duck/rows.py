"""The rows of Parquet files: counted and recoded by DuckDB, which goes to disk where memory ends."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent.connectors.counted.rows import FIRST, LABEL, LEAF, MOST_COMBINATIONS, RECORDS
from reticent.encode.names import ODD, single_names
from reticent.errors import ConnectorError, DataError
from reticent.publication.namesakes import ZEROS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from reticent.connectors.counted.rows import Recoded

_BATCH, _SINGLE = 1 << 17, "single_name"
_N, _UNTIL = '"__n"', '"__until"'
_INSIDE = f'least(r.{_UNTIL}, "{FIRST}" + "{RECORDS}") - greatest(r.{_UNTIL} - r.{_N}, "{FIRST}")'
"""How many of some equal rows a piece takes."""


@dataclass(frozen=True, repr=False)
class DuckRows:
    """A query as the search on counts sees it."""

    link: DuckDBPyConnection
    query: str
    columns: list[str]

    @classmethod
    def of(cls, link: DuckDBPyConnection, path: Path, missing: Sequence[str] = ()) -> DuckRows:
        """The rows of a Parquet file, with nothing where a cell is a marker that the policy declares."""
        with reading(path):
            relation = link.read_parquet(str(path))
            names = list(relation.columns)
        words = ", ".join(map(_text, missing))
        cells = [
            f"CASE WHEN CAST({_name(n)} AS VARCHAR) IN ({words}) THEN NULL ELSE {_name(n)} END AS {_name(n)}"
            for n in names
        ]
        source = f"read_parquet({_text(str(path))})"
        return cls(link, f"SELECT {', '.join(cells) if missing else '*'} FROM {source}", names)  # noqa: S608 - names are quoted

    def named(self, person: str | None) -> DuckRows:
        """The rows with one name per person; Python reads only the names that are not plain, and nothing where all are."""
        if person is None or person not in self.columns:
            return self
        cells, kind = _name(person), self.schema.field(person).type
        if pa.types.is_binary(kind):
            cells = f"decode({cells})"
        elif not pa.types.is_string(kind):
            return self
        odd = f"regexp_matches({cells}, {_text(ODD)})"
        if not self._number(f"SELECT count(*) FROM (SELECT 1 FROM ({self.query}) WHERE {odd} LIMIT 1)"):  # noqa: S608
            return self
        self.link.create_function(_SINGLE, _single, ["VARCHAR"], "VARCHAR", type="arrow")  # type: ignore[call-overload,unused-ignore]
        single = f"CASE WHEN {odd} THEN {_SINGLE}({cells}) ELSE {cells} END"
        return replace(self, query=f"SELECT * REPLACE ({single} AS {_name(person)}) FROM ({self.query})")  # noqa: S608

    def collapsed(self, names: Sequence[str]) -> pa.Table:
        """Every distinct combination of some columns once, in a stable order, with its number of rows; text as codes."""
        keys = ", ".join(map(_name, names))
        order = ", ".join(f"{_name(name)} NULLS LAST" for name in names)
        # Counted first, sorted afterwards: otherwise DuckDB holds the groups twice.
        counted = f"SELECT {keys}, count(*) AS {_name(RECORDS)} FROM ({self.query}) GROUP BY ALL"  # noqa: S608
        with reading():
            self.link.execute(f"CREATE OR REPLACE TEMP TABLE counted AS {counted} LIMIT {MOST_COMBINATIONS + 1}")
            reader = self.link.sql(f"SELECT * FROM counted ORDER BY {order}").to_arrow_reader(_BATCH)  # noqa: S608
            parts = [pa.table(_coded(batch)) for batch in reader]
            schema = reader.schema
            self.link.execute("DROP TABLE counted")
        if not parts:
            return schema.empty_table()
        return pa.concat_tables(parts).unify_dictionaries()

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        with reading():
            return self.link.sql(f"SELECT * FROM ({self.query}) LIMIT 0").to_arrow_table().schema  # noqa: S608

    def nobodies(self, person: str) -> int:
        """Rows without a person."""
        return self._number(f"SELECT count(*) FROM ({self.query}) WHERE {_name(person)} IS NULL")  # noqa: S608

    def several(self, person: str) -> bool:
        """Whether somebody has several rows."""
        counted = f"SELECT 1 FROM ({self.query}) GROUP BY {_name(person)} HAVING count(*) > 1 LIMIT 1"  # noqa: S608
        return bool(self._number(f"SELECT count(*) FROM ({counted})"))  # noqa: S608

    def namesakes(self, person: str) -> int:
        """Persons who have the name of another but for case or leading zeros."""
        if not pa.types.is_string(self.schema.field(person).type):
            return 0
        names = f"SELECT DISTINCT {_name(person)} AS p FROM ({self.query})"  # noqa: S608
        loose = f"lower(regexp_replace(p, {_text(ZEROS)}, '\\1\\2', 'g'))"
        return self._number(f"SELECT count(p) - count(DISTINCT {loose}) FROM ({names})")  # noqa: S608

    def further(self, name: str) -> int:
        """Rows that repeat a value of a column; those without one do not count."""
        cells = _name(name)
        return self._number(f"SELECT count({cells}) - count(DISTINCT {cells}) FROM ({self.query})")  # noqa: S608

    def _number(self, query: str) -> int:
        with reading():
            found = self.link.execute(query).fetchall()  # to the end: the connection has more to do
        return int(found[0][0]) if found else 0

    def published(self, how: Recoded) -> Iterator[pa.Table]:
        """The rows as they are published, sorted by their cells, in parts that fit in memory."""
        shown = {name: f"r.{_name(name)}" for name in [*how.shown, *how.owner]}
        tables: dict[str, pa.Table] = {}
        joins: list[str] = []
        for name, labels in how.labels.items():
            if isinstance(labels, str):
                shown[name] = _text(labels)
                continue
            at = f"ladder{len(tables)}"
            tables[at] = labels
            joins.append(f"JOIN {at} ON r.{_name(name)} IS NOT DISTINCT FROM {at}.{_name(LEAF)}")
            shown[name] = f"{at}.{_name(LABEL)}"
        lost = shown
        if how.classes is not None:
            tables["classes"] = how.classes
            both = [f"r.{_name(name)} IS NOT DISTINCT FROM classes.{_name(name)}" for name in how.known]
            joins.append(f"JOIN classes ON {' AND '.join([*both, *([f'{_INSIDE} > 0'] if how.parted else [])])}")
            lost = shown | {name: f"r.{_name(name)}" for name in how.quasi}
            shown |= {name: f"classes.{_name(f'{LABEL}{i}')}" for i, name in enumerate(how.quasi)}
        if how.lost is not None:
            tables["lost"] = how.lost
            same = (f"{lost[name]} IS NOT DISTINCT FROM lost.{_name(f'__{i}')}" for i, name in enumerate(how.keys))
            joins.append(f"ANTI JOIN lost ON {' AND '.join(same)}")
        rows, number = self.query, "count(*)"
        if how.parted:
            rows, number = self._placed(how), f"sum({_INSIDE})"
        elif how.classes is not None and not how.plain and not how.owner:
            rows, number = self._counted(how), f"sum(r.{_N})"
        cells = ", ".join(f"{shown[name]} AS {_name(name)}" for name in how.shown)
        order = ", ".join(f"{_name(name)} NULLS LAST" for name in how.shown)
        # Equal rows are counted, not sorted one by one.
        total = f"CAST({number} AS BIGINT) AS {_name(RECORDS)}"
        query = f"SELECT {cells}, {total} FROM ({rows}) r {' '.join(joins)} GROUP BY ALL ORDER BY {order}"  # noqa: S608
        for name, table in tables.items():
            self.link.register(name, table)
        try:
            with reading():
                for batch in self.link.sql(query).to_arrow_reader(_BATCH):
                    yield from _repeated(pa.table(_coded(batch)))
        finally:
            for name in tables:
                self.link.unregister(name)

    def _counted(self, how: Recoded) -> str:
        names = ", ".join(map(_name, how.shown))
        return f"SELECT {names}, count(*) AS {_N} FROM ({self.query}) GROUP BY {names}"  # noqa: S608

    def _placed(self, how: Recoded) -> str:
        """Equal rows with their number, and where they end among the rows of their combination.

        Those stand in an order of their other cells that a key decides which nobody keeps: else a reader could tell from the cells of one
        piece what those of another are not.
        """
        counted, cells, known = self._counted(how), *(", ".join(map(_name, names)) for names in (how.plain, how.known))
        if not cells:
            return f"SELECT *, {_N} AS {_UNTIL} FROM ({counted})"  # noqa: S608
        key = f"sha256({_text(secrets.token_hex(16))} || CAST(ROW({cells}) AS VARCHAR))"
        among = f"PARTITION BY {known} ORDER BY {key}, {cells} ROWS UNBOUNDED PRECEDING"
        return f"SELECT *, sum({_N}) OVER ({among}) AS {_UNTIL} FROM ({counted})"  # noqa: S608


def _single(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return single_names(names)


def _coded(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return {
        name: column.dictionary_encode() if pa.types.is_string(column.type) else column
        for name, column in columns.items()
    }


def _repeated(table: pa.Table) -> Iterator[pa.Table]:
    """Every row as often as it was counted, a part at a time."""
    times = table.column(RECORDS).to_numpy()
    table = table.drop_columns([RECORDS])
    ends = np.cumsum(times)
    total = int(ends[-1]) if len(ends) else 0
    for first in range(0, total, 8 * _BATCH):
        places = np.searchsorted(ends, np.arange(first, min(total, first + 8 * _BATCH)), side="right")
        yield table.take(pa.array(places))


@contextlib.contextmanager
def reading(path: object = None) -> Iterator[None]:
    """Says what failed without quoting what was read."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise ConnectorError(
            "DuckDB has neither the memory nor the disk for this.",
            hint="Give it more with --memory, or free space where the output goes.",
        ) from None
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        what = "The input" if path is None else str(path)
        raise ConnectorError(f"{what} cannot be read ({type(error).__name__}).", hint="Give a Parquet file.") from None
    except duckdb.Error as error:
        raise DataError(f"DuckDB refuses the table ({type(error).__name__}).", hint="Check its types.") from None


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"


def settings(folder: Path, memory: str) -> dict[str, Any]:
    """A connection that spills into a folder of ours and fetches nothing."""
    return {
        "memory_limit": memory,
        "temp_directory": str(folder),
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "preserve_insertion_order": "false",
    }
