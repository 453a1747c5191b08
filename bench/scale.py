"""Scale: Kafka by number of workers, Spark streams by number of shards, tables on Spark and DuckDB by number of rows.

    python -m bench scale                       all parts
    python -m bench.scale PART... [--quick]     kafka, limited, streams, tables, on_disk (--method, --rows)
    python -m bench.scale large                 100 million rows on Spark, by optimal and by mondrian, verified and
    written

Each part can run alone; its figures replace the earlier ones in `bench/results/scale.json`, the others stay.
The services are those of the tests (scripts/install-kafka).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.calibration import calibration
from bench.scaling.kafka import kafka, limited
from bench.scaling.on_disk import on_disk
from bench.scaling.streams import spark_streams
from bench.scaling.tables import METHODS, spark_tables

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "services"))
RESULTS = ROOT / "bench" / "results" / "scale.json"
PARTS = ("kafka", "limited", "streams", "tables", "on_disk")
LARGE = "large"
KEYS = {"kafka": ["workers"], "streams": ["shards"], "tables": ["method", "rows"], "on_disk": ["method", "rows"]}
"""Keys that distinguish the figures of a part."""


@dataclass(frozen=True)
class Tables:
    """The tables to measure: methods and numbers of rows; by default those of the part."""

    methods: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()


ALL = Tables()


def part(name: str, folder: Path, *, quick: bool, asked: Tables) -> Any:
    """Return the figures of one part."""
    if name == "kafka":
        return kafka(folder, [1, 2], 40_000 if quick else 600_000)
    if name == "limited":
        return limited(folder, 0.4, 1 if quick else 3, 100_000 if quick else 800_000)
    if name == "on_disk":
        sizes = [100_000] if quick else [1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000]
        return on_disk(folder, asked.rows or sizes, asked.methods or ["optimal"])
    import services

    spark = services.spark_session(folder / "spark", memory="2g", brief=False)
    try:
        if name == "streams":
            sizes = (400, 400, 2_000) if quick else (10_000, 10_000, 10_000, 1_000_000, 1_000_000)
            return spark_streams(spark, folder, [1] if quick else [1, 2, 4], sizes)
        if name == LARGE:
            return spark_tables(spark, folder, [100_000_000], asked.methods or METHODS[:2], compare=0)
        sizes = [100_000] if quick else [1_000_000, 10_000_000]
        return spark_tables(spark, folder, asked.rows or sizes, asked.methods or METHODS, compare=10_000_000)
    finally:
        spark.stop()


def measure(parts: tuple[str, ...], *, quick: bool, asked: Tables = ALL) -> dict[str, Any]:
    """Return the figures of the parts, each with the machine's calibration and its duration."""
    out: dict[str, Any] = {"measured": {}}
    for name in parts:
        with tempfile.TemporaryDirectory() as folder:
            began, before = time.perf_counter(), calibration()
            figures = part(name, Path(folder), quick=quick, asked=asked)
            took = {"seconds": round(time.perf_counter() - began, 1), "calibration": before}
        out["measured"][name] = took
        out = merged(out, {"tables" if name == LARGE else name: figures})
    return out


def merged(known: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return known figures replaced by new ones; `KEYS` distinguishes the lines of a table."""
    out = dict(known)
    for name, figures in new.items():
        if name == "measured":
            out[name] = known.get(name, {}) | figures
        elif name in KEYS:
            lines = {tuple(line.get(key, "") for key in KEYS[name]): line for line in [*known.get(name, []), *figures]}
            out[name] = [lines[key] for key in sorted(lines)]
        else:
            out[name] = figures
    return out


def known() -> dict[str, Any]:
    """Return the figures of earlier runs."""
    figures = json.loads(RESULTS.read_text())["figures"] if RESULTS.exists() else {}
    return {name: figures[name] for name in ("measured", *PARTS) if name in figures}


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - the runner's contract
    """Run all parts except the large one, whose earlier figures stay."""
    figures = measure(PARTS, quick=quick)
    return figures if quick else merged(known(), figures)


def main() -> None:
    """Run the named parts and write their figures into the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="+", choices=[*PARTS, LARGE])
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing is written")
    parser.add_argument("--method", action="append", help="of tables, instead of all")
    parser.add_argument("--rows", action="append", type=int, help="of tables, instead of the usual numbers")
    args = parser.parse_args()
    figures = measure(
        tuple(args.part), quick=args.quick, asked=Tables(tuple(args.method or ()), tuple(args.rows or ()))
    )
    print(json.dumps(figures, indent=2))
    if not args.quick:
        result = {"area": "scale", "quick": False, "calibration": calibration(), "figures": merged(known(), figures)}
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
