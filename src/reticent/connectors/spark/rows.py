"""Count and recode the rows of a Spark frame; executors run Python only for identifiers that are not plain."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's customary name

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
"""Setting that makes a finished job write that file; a cluster may have disabled it."""


class SparkRows(Rows):
    """The rows of a Spark frame."""

    quote, escapes = "`", {"\\": r"\\", "'": r"\'"}
    hash = "sha2(concat({key}, to_json(struct({cells}))), 256)"
    null_position, replacement = "NULLS FIRST", "'$1$2'"

    def __init__(self, frame: DataFrame) -> None:
        self.frame, self.columns = frame, list(frame.columns)
        self.source = f"rows_{secrets.token_hex(4)}"

    def is_text(self, name: str) -> bool:
        """Return whether a column holds text."""
        return self.frame.schema[name].dataType.typeName() in _TEXT_TYPES

    def count_combinations(self, names: Sequence[str]) -> pa.Table:
        """Return each distinct combination of the columns with its row count, in a stable order."""
        combinations: pa.Table = self._run_query(f"{self._count_query(names)} LIMIT {MOST_COMBINATIONS + 1}").toArrow()
        # Groups arrive in a different order in each run; ties in the search must not depend on it.
        return combinations.sort_by([(name, "ascending") for name in names])

    def normalize_persons(self, person: str | None) -> SparkRows:
        """Return the rows with one identifier per person; unchanged if Spark finds all of them plain."""
        if person is None or not self.is_text(person):
            return self
        names = F.col(quote_column(person)).cast("string")
        if self.frame.filter(names.rlike(NOT_PLAIN)).isEmpty():
            return self
        normalize = F.udf(_normalize_name, "string", useArrow=True)
        return SparkRows(self.frame.withColumn(person, normalize(names)))

    def recode(self, recoding: Recoding) -> DataFrame:
        """Return the published rows; equal rows are repeated in chunks, so that no array is long."""
        counts, names = (
            self._run_query(*self._recoding_query(recoding)),
            [quote_column(name) for name in recoding.published],
        )
        at = F.explode(F.expr(f"sequence(0L, ({RECORDS} - 1) DIV {_REPEAT_CHUNK})")).alias(LEAF)
        each = F.explode(F.expr(f"sequence(1L, least({_REPEAT_CHUNK}L, {RECORDS} - {_REPEAT_CHUNK} * {LEAF}))")).alias(
            LABEL
        )
        return counts.select("*", at).select(*names, each).drop(LABEL)

    def _select(self, query: str) -> SparkRows:
        return SparkRows(self._run_query(query))

    def _scalar(self, query: str) -> int:
        return int(self._run_query(query).collect()[0][0])

    def _run_query(self, query: str, tables: Mapping[str, pa.Table] | None = None) -> DataFrame:
        """Run a query; register frames as temporary views only until Spark has analyzed the query."""
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
                spark.sql(f"DROP VIEW {name}")  # the catalog API would also uncache a frame of the user


@dataclass(frozen=True, repr=False)
class SparkRelease:
    """A release with its data as a frame; the other fields are those of `reticent.Release`."""

    frame: DataFrame
    guarantee: Guarantee
    records: RecordCounts
    policy_hash: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    explain: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "table"
    shape: str = "generalized"
    method: str = "optimal"

    def __repr__(self) -> str:
        return f"SparkRelease({self.records}, claims {dict(self.guarantee.claims)})"

    def to_parquet(self, folder: str) -> None:
        """Write the rows as Parquet; a folder is a release once it contains `_SUCCESS`, which Spark writes last.

        Incomplete output of a failed driver is replaced; an existing release is not.

        Args:
            folder: as Spark names it, with or without a scheme.

        Raises:
            StateError: the folder already contains a release.
        """
        if _is_published(self.frame.sparkSession, folder):
            raise StateError(f"{folder} already contains a release.", hint="Name another folder; nothing was written.")
        self.frame.write.mode("overwrite").option(_WRITE_SUCCESS_FILE, "true").parquet(folder)


def _is_published(spark: SparkSession, folder: str) -> bool:
    """Return whether a finished job wrote there; works with any file system of Spark."""
    hadoop = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr,unused-ignore]  # noqa: SLF001 - no public name
    place = hadoop.Path(folder, _SUCCESS_FILE)
    return bool(place.getFileSystem(spark._jsc.hadoopConfiguration()).exists(place))  # type: ignore[union-attr,unused-ignore]  # noqa: SLF001


def _normalize_name(name: str | None) -> str | None:
    """Normalize an identifier on the executors, on batches of Arrow."""
    return None if name is None else normalize_name(name)


def quote_column(name: str) -> str:
    """Return a column's name quoted for Spark."""
    return "`" + name.replace("`", "``") + "`"
