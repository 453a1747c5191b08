"""The rows of a Spark frame, counted and recoded by Spark, and a release of them; Python runs on the executors only where names of persons are not plain."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every user of Spark knows

from reticent.connectors.pushdown.rows import LABEL, LABEL_TABLE, LEAF, MOST_COMBINATIONS, RECORDS, Rows
from reticent.encode.columns import NOT_PLAIN, normalize_name
from reticent.errors import StateError
from reticent.release import Guarantee, RecordCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from reticent.connectors.pushdown.rows import Recoding


_REPEAT_CHUNK, _TEXT_TYPES = 4096, ("string", "char", "varchar", "binary")


_SUCCESS_FILE = "_SUCCESS"
_WRITE_SUCCESS_FILE = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
"""Whether a job that has ended leaves that file; a cluster may have switched it off."""


class SparkRows(Rows):
    """A frame as the search on counts sees it."""

    quote, escapes = "`", {"\\": r"\\", "'": r"\'"}
    hash = "sha2(concat({key}, to_json(struct({cells}))), 256)"
    null_position, replacement = "NULLS FIRST", "'$1$2'"

    def __init__(self, frame: DataFrame) -> None:
        self.frame, self.columns = frame, list(frame.columns)
        self.source = f"rows_{secrets.token_hex(4)}"

    def is_text(self, name: str) -> bool:
        """Whether a column is of texts."""
        return self.frame.schema[name].dataType.typeName() in _TEXT_TYPES

    def count_combinations(self, names: Sequence[str]) -> pa.Table:
        """Every distinct combination of some columns once, in a stable order, with its number of rows."""
        combinations: pa.Table = self._run_query(f"{self._count_query(names)} LIMIT {MOST_COMBINATIONS + 1}").toArrow()
        # The order in which groups arrive changes from run to run; ties in the search must not.
        return combinations.sort_by([(name, "ascending") for name in names])

    def normalize_persons(self, person: str | None) -> SparkRows:
        """The rows with one name per person: their own where all are plain, which Spark sees by itself."""
        if person is None or not self.is_text(person):
            return self
        names = F.col(quote_column(person)).cast("string")
        if self.frame.filter(names.rlike(NOT_PLAIN)).isEmpty():
            return self
        single = F.udf(_normalize_name, "string", useArrow=True)
        return SparkRows(self.frame.withColumn(person, single(names)))

    def recode(self, recoding: Recoding) -> DataFrame:
        """The rows as they are published; equal ones are written out again in stretches, so that no array is long."""
        counted, names = (
            self._run_query(*self._recoding_query(recoding)),
            [quote_column(name) for name in recoding.published],
        )
        at = F.explode(F.expr(f"sequence(0L, ({RECORDS} - 1) DIV {_REPEAT_CHUNK})")).alias(LEAF)
        each = F.explode(F.expr(f"sequence(1L, least({_REPEAT_CHUNK}L, {RECORDS} - {_REPEAT_CHUNK} * {LEAF}))")).alias(
            LABEL
        )
        return counted.select("*", at).select(*names, each).drop(LABEL)

    def _select(self, query: str) -> SparkRows:
        return SparkRows(self._run_query(query))

    def _scalar(self, query: str) -> int:
        return int(self._run_query(query).collect()[0][0])

    def _run_query(self, query: str, tables: Mapping[str, pa.Table] | None = None) -> DataFrame:
        """What Spark makes of a query; it knows frames by name, and only until the query is understood."""
        spark = self.frame.sparkSession
        views = {self.source: self.frame}
        for name, table in (tables or {}).items():
            frame = spark.createDataFrame(table)
            views[name] = F.broadcast(frame) if name.startswith(LABEL_TABLE) else frame
        for name, frame in views.items():
            frame.createTempView(name)
        try:
            return spark.sql(query)
        finally:
            for name in views:
                spark.sql(f"DROP VIEW {name}")  # the catalogue would also take a frame of the user out of the cache


@dataclass(frozen=True, repr=False)
class SparkRelease:
    """Data as a frame, with its guarantee beside it; the fields are those of `reticent.Release`."""

    frame: DataFrame
    guarantee: Guarantee
    counts: RecordCounts
    policy_hash: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    explain: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    kind: str = "table"
    shape: str = "generalized"
    method: str = "optimal"

    def __repr__(self) -> str:
        return f"SparkRelease({self.counts}, claims {dict(self.guarantee.claims)})"

    def to_parquet(self, folder: str) -> None:
        """Writes the rows as Parquet; a folder is a release when it holds `_SUCCESS`, which Spark writes last.

        What a driver has left that died before is replaced; a release that stands there stays.

        Args:
            folder: as Spark names it, with or without a scheme.

        Raises:
            StateError: a release stands there.
        """
        if _is_published(self.frame.sparkSession, folder):
            raise StateError(f"A release stands in {folder}.", hint="Name another folder; nothing was written.")
        self.frame.write.mode("overwrite").option(_WRITE_SUCCESS_FILE, "true").parquet(folder)


def _is_published(spark: SparkSession, folder: str) -> bool:
    """Whether a job that wrote there has ended; asked of the file system of the folder, whichever it is."""
    hadoop = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr,unused-ignore]  # noqa: SLF001 - no public name
    place = hadoop.Path(folder, _SUCCESS_FILE)
    return bool(place.getFileSystem(spark._jsc.hadoopConfiguration()).exists(place))  # type: ignore[union-attr,unused-ignore]  # noqa: SLF001


def _normalize_name(name: str | None) -> str | None:
    """What the executors run, on batches of Arrow."""
    return None if name is None else normalize_name(name)


def quote_column(name: str) -> str:
    """A column's name as Spark parses it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
