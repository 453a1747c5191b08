"""Files: time to read and write tables, and memory to read in batches."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.connectors.files import read_batches, read_table, write_table

# In a separate process: the peak of a process never goes down, and a child's usage starts at its parent's.
_PEAK = """
import re, sys
from pathlib import Path
from reticent.connectors.files import read_batches
rows = sum(batch.num_rows for batch in read_batches(sys.argv[1]))
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Return seconds for five million rows of ten columns as CSV, and for half a million in each format."""
    rows = 50_000 if quick else 5_000_000
    table = _table(rows)
    part = table.slice(0, rows // 10)
    figures: dict[str, Any] = {"rows": rows, "columns": table.num_columns}
    with tempfile.TemporaryDirectory() as name:
        large = Path(name) / "large.csv"
        figures["csv_write_seconds"] = _seconds(lambda: write_table(table, large))
        figures["csv_megabytes"] = large.stat().st_size / 1e6
        figures["csv_read_table_seconds"] = _seconds(lambda: read_table(large))
        figures["csv_read_batches_seconds"] = _seconds(lambda: sum(batch.num_rows for batch in read_batches(large)))
        peak = subprocess.run([sys.executable, "-c", _PEAK, large], capture_output=True, text=True, check=True)
        figures["csv_read_batches_peak_mb"] = int(peak.stdout)
        for kind in ("csv", "parquet", "arrow", "ndjson"):
            path = Path(name) / f"part.{kind}"
            write = _seconds(lambda path=path: write_table(part, path))
            read = _seconds(lambda path=path: read_table(path))
            figures[kind] = {
                "write_rows_per_second": part.num_rows / write,
                "read_rows_per_second": part.num_rows / read,
            }
    return figures


def _table(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    columns = {"id": pa.array(np.arange(rows)).cast(pa.string())}
    for place, size in enumerate((100, 2, 90_000, 6, 40, 30, 1000, 50, 5000)):
        values = pa.array([f"{place}x{value}" for value in range(size)])
        columns[f"c{place}"] = values.take(pa.array(rng.integers(0, size, rows)))
    return pa.table(columns)


def _seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start
