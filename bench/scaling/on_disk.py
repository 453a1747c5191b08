"""Tables larger than memory on one machine: time, processor time and memory by number of rows.

python -m bench.scaling.on_disk ROWS FOLDER METHOD     one release, in a separate process to measure its memory
python -m bench.scaling.on_disk plot IMAGE             the figures of bench/results/scale.json
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from bench.scaling.tables import _SIZES, POLICY, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

RESULTS = Path(__file__).resolve().parents[1] / "results" / "scale.json"


COMPARED = 1_000_000
"""Number of rows up to which a release is also made in memory."""


def on_disk(folder: Path, sizes: Sequence[int], methods: Sequence[str]) -> list[dict[str, Any]]:
    """Return figures per number of rows; the smaller ones are compared with a release in memory."""
    figures = []
    for method, rows in product(methods, sizes):
        command = [sys.executable, "-m", "bench.scaling.on_disk", str(rows), str(folder), method]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        figures.append(json.loads(output.splitlines()[-1]))
        print(json.dumps(figures[-1]), flush=True)
    return figures


def make_rows(rows: int, target: Path) -> None:
    """Write skewed synthetic rows, the same on every machine."""
    import duckdb

    share = "pow((hash(i * 8 + {}) % 1048576) / 1048576.0, 2)"
    cells = [
        f"CAST(floor({share.format(at)} * {size}) AS INTEGER) AS {n}" for at, (n, size) in enumerate(_SIZES.items())
    ]
    with duckdb.connect(config={"memory_limit": "1GB"}) as link:
        link.execute(f"COPY (SELECT {', '.join(cells)} FROM range({rows}) t(i)) TO '{target}' (FORMAT parquet)")  # noqa: S608


def measure(rows: int, folder: Path, method: str) -> dict[str, Any]:
    """Measure one release; another process has generated its data."""
    from reticent import Policy
    from reticent import anonymize as release_in_memory
    from reticent.connectors.duck import anonymize

    source, out = folder / f"{rows}.parquet", folder / f"out-{rows}"
    making = f"from pathlib import Path; from bench.scaling.on_disk import make_rows; make_rows({rows}, Path({str(source)!r}))"
    subprocess.run([sys.executable, "-c", making], check=True)
    policy = Policy.from_dict(POLICY | {"table": {"method": method, "time_limit": 3600}})
    began, busy = time.perf_counter(), time.process_time()
    release = anonymize(source, policy, out)
    figure = {
        "rows": rows,
        "method": method,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - busy, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "combinations": release.explain["combinations"],
        "loss": round(release.metrics["loss"], 4),
        "suppressed": release.records.suppressed,
    }
    if rows <= COMPARED:
        here = release_in_memory(pq.read_table(source), policy, seed=1).tables["data"]
        figure["equal"] = counted(pq.read_table(out / "data.parquet")).equals(counted(here))
    shutil.rmtree(out)
    source.unlink()
    return figure


def plot(target: Path) -> None:
    """Plot processor seconds and memory by rows, both on logarithmic scales."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figures = [f for f in json.loads(RESULTS.read_text())["figures"]["on_disk"] if f["method"] == "optimal"]
    rows = [figure["rows"] for figure in figures]
    picture, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    left.loglog(rows, [figure["cpu_seconds"] for figure in figures], "o-", color="#1f5a7a")
    last = figures[-1]
    left.loglog(
        rows, [last["cpu_seconds"] * n / last["rows"] for n in rows], "--", color="#999999", label="in proportion"
    )
    left.set(xlabel="rows", ylabel="processor seconds")
    left.legend(frameon=False)
    right.semilogx(rows, [figure["peak_mb"] / 1000 for figure in figures], "o-", color="#1f5a7a")
    right.axhline(4, linestyle="--", color="#999999")
    right.set(xlabel="rows", ylabel="peak memory, GB", ylim=(0, 4.4))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    picture.savefig(target)


if __name__ == "__main__":
    if sys.argv[1] == "plot":
        plot(Path(sys.argv[2]))
    else:
        print(json.dumps(measure(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])))
