"""Compare two versions: the same measurements under two Pythons, in turn, as ratios of processor time.

    RETICENT_COMPARE=OTHER/.venv/bin/python python -m bench compare
    python -m bench.compare OTHER/.venv/bin/python tables "adult, local"

The other Python has the other version installed. Both run the files of `bench/compare_cases` on data that this version
generated. Each measurement alternates between the versions, so that a slow minute affects both; the shortest round
counts.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

KINDS = ("tables", "evolving", "series", "streams")
ROUNDS, QUICK_ROUNDS = 5, 2
LONG = 5.0
"""Seconds of a run above which two runs are enough."""
HERE = Path(__file__).resolve().parents[1]


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - the runner's contract
    """Compare all kinds with the version whose Python is in RETICENT_COMPARE."""
    other = os.environ.get("RETICENT_COMPARE")
    if not other:
        raise SystemExit("compare: set RETICENT_COMPARE to the Python of the other version.")
    return {kind: compare(other, kind, quick=quick) for kind in KINDS}


def compare(other: str, kind: str, *, only: str = "", quick: bool = False) -> dict[str, Any]:
    """Compare the measurements of one kind whose name contains `only`."""
    module, figures = importlib.import_module(f"bench.compare_cases.{kind}"), {}
    with tempfile.TemporaryDirectory() as place:
        module.prepare(Path(place), quick=quick)
        old, new = (
            Version(python, kind, Path(place) / side) for side, python in (("old", other), ("new", sys.executable))
        )
        for name in (name for name in module.MEASURES if only in name):
            rounds = [(old.taken(name), new.taken(name))]
            enough = 2 if sum(rounds[0][1]["seconds"].values()) > LONG else ROUNDS
            rounds += [(old.taken(name), new.taken(name)) for _ in range((QUICK_ROUNDS if quick else enough) - 1)]
            figures[name] = summed(*zip(*rounds, strict=True))
            print(f"{kind}, {name}: {in_words(figures[name])}", file=sys.stderr, flush=True)
        old.close()
        new.close()
    return figures


class Version:
    """One version in a separate process, which measures on request."""

    def __init__(self, python: str, kind: str, scratch: Path) -> None:
        scratch.mkdir()
        words = [python, "-m", "bench.compare", "--measure", kind, str(scratch)]
        self._process = subprocess.Popen(words, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def taken(self, name: str) -> dict[str, Any]:
        """Run a measurement once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        taken: dict[str, Any] = json.loads(self._process.stdout.readline())
        return taken

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def measure(kind: str, scratch: Path) -> None:
    """Measure for another process: read a name per line, write the result as a line."""
    measures, name, work = importlib.import_module(f"bench.compare_cases.{kind}").MEASURES, "", None
    for line in sys.stdin:
        if line.strip() != name or work is None:
            name = line.strip()
            work = measures[name](scratch.parent, scratch)
            work()  # warm up: loading is not measured
        taken = work()
        print(json.dumps({"seconds": taken.seconds, "figures": taken.figures}), flush=True)


def summed(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the shortest times of both, their ratio per part, the spread between rounds, and other figures."""
    figures: dict[str, Any] = {}
    for part in [*new[0]["seconds"], *(["all"] if len(new[0]["seconds"]) > 1 else [])]:
        times = [
            [sum(one["seconds"].values()) if part == "all" else one["seconds"][part] for one in side]
            for side in (old, new)
        ]
        best = [min(side) for side in times]
        noise = max(median(side) / min(side) for side in times)
        figures[part] = {"old": best[0], "new": best[1], "ratio": best[1] / best[0], "noise": noise}
    if new[0]["figures"]:
        figures["figures"] = {"old": old[-1]["figures"], "new": new[-1]["figures"]}
    return figures


def in_words(figures: dict[str, Any]) -> str:
    """Return one line for one measurement."""
    parts = [f"{name} {part['old'] * 1000:.1f} -> {part['new'] * 1000:.1f} ms (x{part['ratio']:.2f}, noise {part['noise']:.2f})"
             for name, part in figures.items() if name != "figures"]  # fmt: skip
    same = "" if "figures" not in figures else f"; {figures['figures']['old']} -> {figures['figures']['new']}"
    return ", ".join(parts) + same


def main() -> None:
    """Measure for another process, or compare kinds with the version of another Python."""
    if sys.argv[1] == "--measure":
        measure(sys.argv[2], Path(sys.argv[3]))
        return
    other, kind, *only = sys.argv[1:]
    compare(other, kind, only=only[0] if only else "")


if __name__ == "__main__":
    main()
