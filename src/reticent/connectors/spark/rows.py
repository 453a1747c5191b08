"""The rows of a Spark frame: counted and recoded by Spark; Python runs on the executors only where names of persons are not plain."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent.connectors.counted.rows import FIRST, LABEL, LEAF, MOST_COMBINATIONS, RECORDS
from reticent.encode.names import ODD, single_name
from reticent.publication.namesakes import ZEROS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from reticent.connectors.counted.rows import Recoded


_STRETCH, _TEXTS = 4096, ("string", "char", "varchar", "binary")
_UNTIL, _TAKES = "__until", "__takes"


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

    def namesakes(self, person: str) -> int:
        """Persons who have the name of another but for case or leading zeros."""
        from pyspark.sql import functions as F  # noqa: N812

        if self.frame.schema[person].dataType.typeName() not in _TEXTS:
            return 0
        names = self.frame.select(F.col(column(person)).cast("string").alias("p")).distinct()
        loose = F.lower(F.regexp_replace("p", ZEROS, "$1$2"))
        known, different = names.agg(F.count("p"), F.countDistinct(loose)).collect()[0]
        return int(known) - int(different)

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

    def named(self, person: str | None) -> SparkRows:
        """The rows with one name per person: their own where all are plain, which Spark sees by itself."""
        from pyspark.sql import functions as F  # noqa: N812

        if person is None or self.frame.schema[person].dataType.typeName() not in _TEXTS:
            return self
        names = F.col(column(person)).cast("string")
        if self.frame.filter(names.rlike(ODD)).isEmpty():
            return self
        single = F.udf(_single, "string", useArrow=True)
        return SparkRows(self.frame.withColumn(person, single(names)))

    def recoded(self, how: Recoded) -> DataFrame:
        """Recodes quasi-identifiers by joins with their ladders or classes, and leaves the violating classes out."""
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
        if how.lost is not None:
            lost = _same({name: f"__{i}" for i, name in enumerate(how.keys)})
            out = out.join(spark.createDataFrame(how.lost), lost, "left_anti")
        out = out.select(*[column(name) for name in how.shown])
        if how.classes is not None:
            out = _in_classes(out, how, spark.createDataFrame(how.classes))
        return _in_order(out, how.shown)


def _single(name: str | None) -> str | None:
    """What the executors run, on batches of Arrow."""
    return None if name is None else single_name(name)


def _same(names: Mapping[str, str]) -> Column:
    """Whether columns have the values of others; a missing value is one."""
    from pyspark.sql import functions as F  # noqa: N812

    condition = F.lit(True)  # noqa: FBT003 - Spark's own
    for name, other in names.items():
        condition &= F.col(column(name)).eqNullSafe(F.col(other))
    return condition


def _in_order(frame: DataFrame, shown: Sequence[str]) -> DataFrame:
    """The rows sorted by their cells: the order of the input may follow something a reader knows.

    Equal rows are counted, not sorted one by one, and written out again in stretches, so that no array is long.
    """
    from pyspark.sql import functions as F  # noqa: N812

    names = [column(name) for name in shown]
    number = F.sum(RECORDS) if RECORDS in frame.columns else F.count(F.lit(1))
    counted = frame.groupBy(*names).agg(number.alias(RECORDS)).orderBy(*names)
    stretches = F.expr(f"sequence(0L, ({RECORDS} - 1) DIV {_STRETCH})")
    at = F.explode(stretches).alias(LEAF)
    each = F.expr(f"sequence(1L, least({_STRETCH}L, {RECORDS} - {_STRETCH} * {LEAF}))")
    return counted.select("*", at).select(*names, F.explode(each).alias(LABEL)).drop(LABEL)


def _in_classes(out: DataFrame, how: Recoded, classes: DataFrame) -> DataFrame:
    """Puts the labels of its combination in the place of every row's quasi-identifiers; where rows are parted, they come counted."""
    from pyspark.sql import functions as F  # noqa: N812

    # Under names of their own: both sides have the columns.
    leaves = {name: f"{LEAF}{i}" for i, name in enumerate(how.known)}
    cells = [F.col(column(name)).alias(leaf) for name, leaf in leaves.items()]
    places = [F.col(FIRST), F.col(RECORDS).alias(_TAKES)] if how.parted else []
    classes = classes.select(*cells, *[f"{LABEL}{i}" for i in range(len(how.quasi))], *places)
    condition = _same(leaves)
    if how.parted or not how.plain:
        names = [column(name) for name in how.shown]
        out = out.groupBy(*names).agg(F.count(F.lit(1)).alias(RECORDS))
    if how.parted:
        out = _placed(out, how)
        inside = F.least(_UNTIL, F.col(FIRST) + F.col(_TAKES)) - F.greatest(F.col(_UNTIL) - F.col(RECORDS), FIRST)
        condition &= inside > 0
    out = out.join(classes, condition, "inner")
    if how.parted:
        out = out.withColumn(RECORDS, inside)
    for i, name in enumerate(how.quasi):
        out = out.withColumn(name, F.col(f"{LABEL}{i}"))
    return out.drop(*leaves.values(), *[f"{LABEL}{i}" for i in range(len(how.quasi))], _UNTIL, FIRST, _TAKES)


def _placed(counted: DataFrame, how: Recoded) -> DataFrame:
    """Counted rows and where they end among the rows of their combination.

    Those stand in an order of their other cells that a key decides which nobody keeps: else a reader could tell from the cells of one
    piece what those of another are not. The order is the same whenever Spark computes it again.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    others = [column(name) for name in how.plain]
    if not others:
        return counted.withColumn(_UNTIL, F.col(RECORDS))
    key = F.sha2(F.concat(F.lit(secrets.token_hex(16)), F.to_json(F.struct(*others))), 256)
    among = Window.partitionBy(*[column(name) for name in how.known]).orderBy(key, *others)
    return counted.withColumn(_UNTIL, F.sum(RECORDS).over(among.rowsBetween(Window.unboundedPreceding, 0)))


def column(name: str) -> str:
    """A column's name as Spark parses it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
