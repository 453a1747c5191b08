"""The rows of a Spark frame: counted and recoded by Spark, without Python on the executors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent.connectors.counted.rows import LABEL, LEAF, MOST_COMBINATIONS, RECORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from reticent.connectors.counted.rows import Recoded


_STRETCH = 4096


@dataclass(frozen=True, repr=False)
class SparkRows:
    """A frame as the search on counts sees it."""

    frame: DataFrame

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

    def collapsed(self, names: Sequence[str]) -> pa.Table:
        """Every distinct combination of some columns once, in a stable order, with its number of rows."""
        from pyspark.sql import functions as F  # noqa: N812 - the name every user of Spark knows

        counted = self.frame.groupBy(*[column(name) for name in names]).agg(F.count(F.lit(1)).alias(RECORDS))
        combinations: pa.Table = counted.limit(MOST_COMBINATIONS + 1).toArrow()
        # The order in which groups arrive changes from run to run; ties in the search must not.
        return combinations.sort_by([(name, "ascending") for name in names])

    def nobodies(self, person: str) -> int:
        """Rows without a person."""
        from pyspark.sql import functions as F  # noqa: N812

        return int(self.frame.filter(F.col(column(person)).isNull()).count())

    def several(self, person: str) -> bool:
        """Whether somebody has several rows."""
        from pyspark.sql import functions as F  # noqa: N812

        counted = self.frame.groupBy(F.col(column(person))).count()
        return bool(counted.filter(F.col("count") > 1).limit(1).count())

    def further(self, name: str) -> int:
        """Rows that repeat a value of a column; those without one do not count."""
        from pyspark.sql import functions as F  # noqa: N812

        cells = F.col(column(name))
        known, different = self.frame.agg(F.count(cells), F.countDistinct(cells)).collect()[0]
        return int(known) - int(different)

    def without_markers(self, words: Sequence[str]) -> SparkRows:
        """The rows with nothing where a cell is a marker that the policy declares."""
        from pyspark.sql import functions as F  # noqa: N812

        if not words:
            return self
        marked = {name: F.col(column(name)).cast("string").isin(*words) for name in self.frame.columns}
        cells = [F.when(~gone | gone.isNull(), F.col(column(name))).alias(name) for name, gone in marked.items()]
        return SparkRows(self.frame.select(*cells))

    def recoded(self, how: Recoded) -> DataFrame:
        """Recodes quasi-identifiers by joins with their ladders, then leaves the violating classes out."""
        from pyspark.sql import functions as F  # noqa: N812

        spark = self.frame.sparkSession
        out = self.frame.select(*[column(name) for name in [*how.shown, *how.owner]])
        for name, labels in how.labels.items():
            if isinstance(labels, str):
                out = out.withColumn(name, F.lit(labels))
                continue
            pairs = spark.createDataFrame(labels)
            joined = out.join(F.broadcast(pairs), F.col(column(name)).eqNullSafe(F.col(LEAF)), "inner")
            out = joined.withColumn(name, F.col(LABEL)).drop(LEAF, LABEL)
        if how.classes is not None:
            out = _in_classes(out, how, spark.createDataFrame(how.classes))
        if how.lost is not None:
            same = [F.col(column(name)).eqNullSafe(F.col(f"__{i}")) for i, name in enumerate(how.keys)]
            condition = same[0]
            for more in same[1:]:
                condition &= more
            out = out.join(spark.createDataFrame(how.lost), condition, "left_anti")
        return _in_order(out.select(*[column(name) for name in how.shown]))


def _in_order(frame: DataFrame) -> DataFrame:
    """The rows sorted by their cells: the order of the input may follow something a reader knows.

    Equal rows are counted, not sorted one by one, and written out again in stretches, so that no array is long.
    """
    from pyspark.sql import functions as F  # noqa: N812

    names = [column(name) for name in frame.columns]
    counted = frame.groupBy(*names).agg(F.count(F.lit(1)).alias(RECORDS)).orderBy(*names)
    stretches = F.expr(f"sequence(0L, ({RECORDS} - 1) DIV {_STRETCH})")
    at = F.explode(stretches).alias(LEAF)
    each = F.expr(f"sequence(1L, least({_STRETCH}L, {RECORDS} - {_STRETCH} * {LEAF}))")
    return counted.select("*", at).select(*names, F.explode(each).alias(LABEL)).drop(LABEL)


def _in_classes(out: DataFrame, how: Recoded, classes: DataFrame) -> DataFrame:
    """Puts the labels of its combination in the place of every row's quasi-identifiers."""
    from pyspark.sql import functions as F  # noqa: N812

    quasi = [name for name in how.keys if name in classes.columns]
    # Under names of their own: both sides have the columns.
    classes = classes.select(*[F.col(column(name)).alias(f"{LEAF}{i}") for i, name in enumerate(quasi)],
                             *[f"{LABEL}{i}" for i in range(len(quasi))])  # fmt: skip
    condition = F.lit(True)  # noqa: FBT003 - Spark's own
    for i, name in enumerate(quasi):
        condition &= F.col(column(name)).eqNullSafe(F.col(f"{LEAF}{i}"))
    out = out.join(classes, condition, "inner")
    for i, name in enumerate(quasi):
        out = out.withColumn(name, F.col(f"{LABEL}{i}"))
    return out.drop(*[f"{word}{i}" for word in (LEAF, LABEL) for i in range(len(quasi))])


def column(name: str) -> str:
    """A column's name as Spark parses it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
