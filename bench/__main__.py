"""Run the benchmarks and write `bench/results/<area>.json`."""

from __future__ import annotations

import argparse
import importlib
import json
import time
from pathlib import Path

from bench.calibration import calibration

HERE = Path(__file__).parent
NOT_AREAS = {"__init__", "__main__", "calibration"}
ON_REQUEST = {"compare"}
"""Areas that need a second installed version; they run only when named."""


def areas() -> list[str]:
    return sorted(path.stem.replace("_", "-") for path in HERE.glob("*.py") if path.stem not in NOT_AREAS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("area", nargs="*", help=f"any of: {', '.join(areas())}")
    parser.add_argument("--quick", action="store_true", help="use smaller data, to check that every benchmark runs")
    args = parser.parse_args()
    for name in args.area or [area for area in areas() if area not in ON_REQUEST]:
        area = name.replace("-", "_")
        start = time.perf_counter()
        before = calibration()
        figures = importlib.import_module(f"bench.{area}").run(quick=args.quick)
        result = {
            "area": area,
            "quick": args.quick,
            "calibration": before,
            "seconds": time.perf_counter() - start,
            "figures": figures,
        }
        target = HERE / "results" / f"{area}{'.quick' if args.quick else ''}.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(json.dumps(result, indent=2) + "\n")
        print(f"{area}: {result['seconds']:.0f} s, written to {target.relative_to(HERE.parent)}")
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
