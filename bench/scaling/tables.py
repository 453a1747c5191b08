"""Spark tables by number of rows: seconds of each pass, and whether the release equals that of one machine."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

POLICY = {
    "version": 1,
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
        "sex": "quasi",
        "marital": "quasi",
        "education": {"role": "quasi", "hierarchy": {"intervals": [4, 8]}},
        "region": {"role": "quasi", "hierarchy": {"intervals": [5, 25]}},
        "illness": "sensitive",
    },
    "privacy": {"k": 50, "l": 4, "t": 0.2, "suppression": 0.02},
}
"""896,000 possible combinations: even with 100 million rows, too many to publish unchanged."""
_SIZES = {"age": 80, "sex": 2, "marital": 7, "education": 16, "region": 50, "illness": 12}


def rows_of(spark: Any, rows: int) -> Any:
    """Return skewed synthetic rows that Spark generates, the same in every pass and on every machine."""
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark.range(rows)
    for salt, (name, size) in enumerate(_SIZES.items()):
        share = F.pmod(F.xxhash64("id", F.lit(salt)), F.lit(1 << 20)) / (1 << 20)
        frame = frame.withColumn(name, F.floor(F.pow(share, 2) * size).cast("int"))
    return frame.drop("id")


METHODS = ("optimal", "mondrian", "local")


def spark_tables(
    spark: Any, folder: Path, sizes: Sequence[int], methods: Sequence[str], *, compare: int
) -> list[dict[str, Any]]:
    """Release generated rows by every method, verify and write them; compare with one machine up to `compare` rows."""
    from reticent import Policy
    from reticent.connectors.spark import release

    figures = []
    for method in methods:
        policy = Policy.from_dict(POLICY | {"table": {"method": method, "time_limit": 3600}})
        release(rows_of(spark, 100_000), policy)  # warm up the session
        for rows in sizes:
            frame = rows_of(spark, rows)
            with passes() as spent:
                began, busy = time.perf_counter(), processor_seconds()
                published = release(frame, policy)
                verified_at = time.perf_counter()
                published.frame.write.mode("overwrite").option("compression", "none").parquet(str(folder / "out"))
                ended = time.perf_counter()
            figure: dict[str, Any] = {
                "rows": rows,
                "method": method,
                "seconds": round(ended - began, 1),
                "cpu_seconds": round(processor_seconds() - busy, 1),
                "seconds_of_passes": {name: round(taken, 1) for name, taken in spent.items()},
                "seconds_to_write": round(ended - verified_at, 1),
                "combinations": published.explain["combinations"],
                "attributes": dict(published.explain["attributes"]),
                "loss": round(published.metrics["loss"], 4),
                "suppressed": published.records.suppressed,
                "driver_python_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
                "java_peak_mb": java_peak_mb(),
            }
            if rows <= compare:
                figure |= against_one_machine(frame, policy, folder)
            print(json.dumps(figure), flush=True)
            figures.append(figure)
    return figures


def against_one_machine(frame: Any, policy: Any, folder: Path) -> dict[str, Any]:
    """Write the rows as well, and release them on this machine."""
    from reticent import anonymize

    frame.write.mode("overwrite").option("compression", "none").parquet(str(folder / "in"))
    table = pq.read_table(folder / "in")
    began = time.perf_counter()
    local = anonymize(table, policy, seed=1)
    return {
        "seconds_one_machine": round(time.perf_counter() - began, 1),
        "equal": counted(pq.read_table(folder / "out")).equals(counted(local.tables["data"])),
    }


def java_peak_mb() -> int:
    """Return the peak memory of the session's Java process."""
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{_java()}/status").read_text())
    return int(peak) >> 10


def processor_seconds() -> float:
    """Return processor seconds of this process and of the session's Java process."""
    fields = Path(f"/proc/{_java()}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _java() -> int:
    from pyspark import SparkContext

    return int(SparkContext._gateway.proc.pid)  # noqa: SLF001 - Spark has no public name for it


def counted(table: pa.Table) -> pa.Table:
    """Return every distinct published row with its count, sorted."""
    names = sorted(table.column_names)
    plain = pa.table({name: table.column(name).cast(pa.string()) for name in names})
    counts = plain.group_by(names).aggregate([([], "count_all")])
    return counts.select([*names, "count_all"]).sort_by([(name, "ascending") for name in names]).combine_chunks()


@contextlib.contextmanager
def passes() -> Iterator[dict[str, float]]:
    """Time the passes of a release: counts by Spark with the search on the driver, and counts for the verifier."""
    from reticent.connectors.spark import tables

    spent: dict[str, float] = {}
    kept = {name: getattr(tables, name) for name in ("search_counts", "verify")}

    def timed(name: str) -> Any:
        def call(*given: Any, **more: Any) -> Any:
            began = time.perf_counter()
            try:
                return kept[name](*given, **more)
            finally:
                spent[name] = spent.get(name, 0.0) + time.perf_counter() - began

        return call

    for name in kept:
        setattr(tables, name, timed(name))
    try:
        yield spent
    finally:
        for name, plain in kept.items():
            setattr(tables, name, plain)
