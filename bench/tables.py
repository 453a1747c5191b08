"""One table, once: exact search, local recoding and Mondrian, compared with ARX 3.9.2 and the common Python Mondrian.

Adult is used if a copy is in `../shared/data/adult`; otherwise, and for the wide lattice, the synthetic hospital.
Figures of other tools were measured on another machine: they are compared in yardsticks, the time of `np.unique` for
Adult's packed keys in the same run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.calibration import best
from bench.table_data import ADULT, QUASI, SENSITIVE, adult_policy, noisy, wide_hospital, wide_policy
from reticent.connectors.files import read_table
from reticent.encode import encode_table
from reticent.engine.rng import Rng
from reticent.engine.table.encoded_table import EncodedTable
from reticent.engine.table.local import recode
from reticent.engine.table.mondrian import partition
from reticent.engine.table.optimal import Optimal
from reticent.policy import Policy

THEIR_YARDSTICK = 0.00038
POLICIES = {"k=5": {"k": 5}, "k=5, distinct l=3": {"k": 5, "l": 3}, "k=5, t=0.2 equal": {"k": 5, "t": 0.2}}
ARX_WARM = {
    "k=5": {0.0: 0.066, 0.02: 0.590, 1.0: 0.650},
    "k=5, distinct l=3": {0.0: 0.045, 0.02: 0.574, 1.0: 1.107},
    "k=5, t=0.2 equal": {0.0: 0.040, 0.02: 0.853, 1.0: 2.385},
}
ARX_MILLION = {"k=5": {0.0: 0.54, 0.02: 2.7, 1.0: 1.35}, "k=5, t=0.2 equal": {0.0: 0.5, 0.02: 21.0, 1.0: 24.0}}
ARX_LOCAL = {"k=5": (0.0290, 3.0), "k=5, distinct l=3": (0.0362, 1.3), "k=5, t=0.2 equal": (0.445, 60.0)}
LOCAL_GOAL = {"k=5": 0.0290, "k=5, distinct l=3": 0.033, "k=5, t=0.2 equal": 0.40}


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Return all figures; with `quick`, smaller tables and no million rows."""
    figures: dict[str, Any] = {"wide lattice": wide(quick)}
    if not ADULT.exists():
        return figures
    table = read_table(str(ADULT / "adult_30162.csv"))
    stick = yardstick(table)
    figures["yardstick_seconds"] = stick
    figures["optimal"] = optimal(table, stick, 3 if quick else 10)
    figures["local"] = local(table, stick, 1 if quick else 3)
    figures["mondrian"] = mondrian(table, stick, quick)
    figures["command"] = command()
    if not quick:
        figures["million rows"] = million(table)
        figures["ten million rows"] = ten_million()
    return figures


def yardstick(table: pa.Table) -> float:
    """Return the seconds of `np.unique` over Adult's eight quasi-identifiers packed into 64-bit keys."""
    encoded = encode_table(table, QUASI)
    keys = np.zeros(table.num_rows, dtype=np.int64)
    for name in QUASI:
        keys = keys * len(encoded.dictionaries[name]) + encoded.codes[name]
    return best(lambda: np.unique(keys, return_counts=True), 30)


def optimal(table: pa.Table, stick: float, times: int) -> dict[str, Any]:
    """Measure the exact search on collapsed codes, warm, against ARX's; the collapse is timed separately and added."""
    figures = {}
    for name, privacy in POLICIES.items():
        for share, theirs in ARX_WARM[name].items():
            policy = adult_policy({**privacy, "suppression": share})
            encoded = EncodedTable.from_table(policy, table)

            def search(encoded: Any = encoded) -> Any:
                return encoded.collapsed.search(
                    encoded.model, loss="loss", weights=encoded.weights, limit=encoded.limit
                )

            collapse = best(encoded.collapse, times)
            seconds = best(search, times) + collapse
            result = search()
            ours, bar = seconds / stick, theirs / THEIR_YARDSTICK
            figures[f"{name}, suppression {share}"] = {
                "seconds": seconds,
                "of which collapse": collapse,
                "yardsticks": ours,
                "arx_yardsticks": bar,
                "share_of_arx": ours / bar,
                "loss": result["score"],
                "nodes": encoded.collapsed.nodes,
                "checked": result["checked"],
            }
    return figures


def local(table: pa.Table, stick: float, times: int) -> dict[str, Any]:
    """Measure local recoding without suppression: loss and time compared with ARX."""
    figures = {}
    for name, privacy in POLICIES.items():
        encoded = EncodedTable.from_table(adult_policy(privacy), table)
        outcome = recode(encoded)
        seconds = best(lambda encoded=encoded: recode(encoded), times)
        from reticent.engine.table.generalized import measure_outcome

        loss, theirs = ARX_LOCAL[name]
        figures[name] = {
            "loss": measure_outcome(encoded, outcome).loss,
            "goal": LOCAL_GOAL[name],
            "arx_loss": loss,
            "suppressed": int(outcome.suppressed.sum()),
            "seconds": seconds,
            "yardsticks": seconds / stick,
            "share_of_arx": (seconds / stick) / (theirs / THEIR_YARDSTICK),
        }
    return figures


def mondrian(table: pa.Table, stick: float, quick: bool) -> dict[str, Any]:  # noqa: FBT001
    """Measure strict Mondrian on seven quasi-identifiers, and its growth."""
    from reticent.engine.table.mondrian import Mondrian

    columns = {name: "quasi" for name in QUASI if name != "salary-class"} | {SENSITIVE: "sensitive"}
    columns["age"] = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}  # type: ignore[assignment]
    policy = Policy.from_dict({"version": 1, "columns": columns, "privacy": {"k": 5}})
    small = table.select(list(columns))
    encoded = EncodedTable.from_table(policy, small)
    seconds = best(lambda: partition(encoded), 5)
    engine = Mondrian(policy, rng=Rng.fresh())
    engine.push(small)
    (release,) = engine.close()
    figures: dict[str, Any] = {
        "seconds": seconds,
        "yardsticks": seconds / stick,
        "common_implementation_yardsticks": 0.33 / THEIR_YARDSTICK,
        "times_faster": (0.33 / THEIR_YARDSTICK) / (seconds / stick),
        "ncp": release.metrics["ncp"],
        "common_implementation_ncp": 0.0705,
    }
    if not quick:
        large = EncodedTable.from_table(policy, noisy(small, 300_000))
        grown = best(lambda: partition(large), 2)
        figures["300,000 rows"] = {"seconds": grown, "times": grown / seconds, "rows_times": 300_000 / table.num_rows}
    return figures


def command() -> dict[str, Any]:
    """Measure the whole command, cold: CSV in, verified CSV out."""
    figures = {}
    for name, privacy in POLICIES.items():
        with tempfile.TemporaryDirectory() as folder:
            policy = Path(folder) / "policy.json"
            policy.write_text(json.dumps(adult_policy({**privacy, "suppression": 0.02}).to_dict()))
            data, out = str(ADULT / "adult_30162.csv"), str(Path(folder) / "out")
            runs = [
                _cold([sys.executable, "-m", "reticent", "anonymize", data, "-p", str(policy), "-o", out + str(i)])
                for i in range(3)
            ]
        figures[name] = {"seconds": min(s for s, _ in runs), "peak_mb": max(m for _, m in runs)}
    return figures


# A child's peak memory starts at that of its parent, so a small process forks it.
_CHILD = """
import os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(os.waitstatus_to_exitcode(status), time.perf_counter() - start, usage.ru_maxrss / 1024)
"""


def _cold(command: list[str]) -> tuple[float, float]:
    said = subprocess.run([sys.executable, "-c", _CHILD, *command], capture_output=True, text=True, check=True).stdout
    code, seconds, peak = said.split()
    assert code == "0", command
    return float(seconds), float(peak)


def million(table: pa.Table) -> dict[str, Any]:
    """Measure Adult resampled to a million rows with noise: collapse and search, from codes."""
    large = noisy(table, 1_000_000)
    figures: dict[str, Any] = {}
    for name, cells in ARX_MILLION.items():
        for share, theirs in cells.items():
            encoded = EncodedTable.from_table(adult_policy({**POLICIES[name], "suppression": share}), large)

            def search(encoded: Any = encoded) -> Any:
                return encoded.collapsed.search(
                    encoded.model, loss="loss", weights=encoded.weights, limit=encoded.limit
                )

            collapse, seconds = best(encoded.collapse, 3), best(search, 2)
            figures[f"{name}, suppression {share}"] = {
                "seconds": seconds + collapse,
                "of which collapse": collapse,
                "arx_seconds": theirs,
                "share_of_arx": (seconds + collapse) / theirs,
                "combinations": len(encoded.collapsed),
                "checked": search()["checked"],
            }
    return figures


def ten_million() -> dict[str, Any]:
    """Measure ten million rows in a separate process: time of each part, and peak memory relative to Arrow."""
    script = """
        import json, resource, time
        from bench.table_data import ADULT, adult_policy, noisy
        from bench.tables import Optimal, Rng
        from reticent.connectors.files import read_table
        table = noisy(read_table(str(ADULT / "adult_30162.csv")), 10_000_000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.perf_counter()
        engine = Optimal(adult_policy({"k": 5, "suppression": 0.02}), rng=Rng.fresh())
        engine.push(table)
        (release,) = engine.close()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        arrow = table.nbytes / 2**20
        print(json.dumps({"seconds": time.perf_counter() - start, "arrow_mb": arrow, "peak_mb": peak, "peak_before_mb": before,
            "times_arrow": peak / arrow, "rows_out": release.records.published, "nodes": release.explain["nodes"]}))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def wide(quick: bool) -> dict[str, Any]:  # noqa: FBT001
    """Measure fifteen quasi-identifiers of the synthetic hospital: an answer within the time limit, with its bound."""
    limit = 3.0 if quick else 20.0
    table = wide_hospital(5_000 if quick else 50_000)
    engine = Optimal(wide_policy(limit), rng=Rng.fresh())
    engine.push(table)
    start = time.perf_counter()
    (release,) = engine.close()
    explain = release.explain
    return {
        "quasi_identifiers": len(explain["attributes"]),
        "nodes": explain["nodes"],
        "time_limit": limit,
        "seconds": time.perf_counter() - start,
        "loss": explain["score"],
        "bound": explain["bound"],
        "optimal": explain["optimal"],
        "suppressed": release.records.suppressed,
    }
