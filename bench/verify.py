"""The verifier on a million rows: a generalized table with every model, Anatomy, and a stream's transcript."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release
from reticent.verify import verify

TREE = {f"block {i}": [f"ill {j:02}" for j in range(5 * i, 5 * i + 5)] for i in range(6)}
VALUES = np.array([leaf for leaves in TREE.values() for leaf in leaves])
CLAIMS = {
    "k": 2,
    "l": {"distinct": 2, "entropy": 1.1, "recursive": [1000, 2], "frequency": 1},
    "t": {"equal": 1, "ordered": 1, "hierarchical": 1},
}


def run(*, quick: bool = False) -> dict[str, Any]:
    """Return seconds per kind of release, including reading from disk."""
    rows = 50_000 if quick else 1_000_000
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        figures = {
            "generalized": _timed(_generalised(rng, rows).to_dir(place / "table")),
            "anatomy": _timed(_anatomy(rows).to_dir(place / "anatomy")),
            "stream": _timed(_stream(rows, place / "stream.ndjson")),
        }
    return {"rows": rows, "seconds": figures}


def _policy() -> Policy:
    columns: dict[str, Any] = {f"q{i}": "quasi" for i in range(6)}
    columns["ill"] = {"role": "sensitive", "hierarchy": {"tree": TREE}}
    return Policy.from_dict({"version": 1, "columns": columns})


def _timed(source: Path) -> float:
    start = time.perf_counter()
    verify(source, _policy())
    return round(time.perf_counter() - start, 3)


def _release(kind: Any, tables: dict[str, pa.Table], claims: dict[str, Any], rows: int) -> Release:
    return Release(kind, kind, tables, Guarantee(claims, "an attacker"), RecordCounts(rows, rows, 0, 0), "")


def _generalised(rng: np.random.Generator, rows: int) -> Release:
    columns = {f"q{i}": rng.integers(0, 5, rows).astype(str) for i in range(6)}
    columns["ill"] = VALUES[(rng.random(rows) ** 2 * len(VALUES)).astype(int)]
    return _release("generalized", {"data": pa.table(columns)}, CLAIMS, rows)


def _anatomy(rows: int) -> Release:
    group = np.arange(rows) // 10
    qit = pa.table({"group": group, "q0": np.arange(rows) % 90})
    st = pa.table({"group": group, "value": VALUES[np.arange(rows) % 10], "count": np.ones(rows, np.int64)})
    return _release("anatomy", {"qit": qit, "st": st}, {"l": {"distinct": 10, "frequency": 10}}, rows)


def _stream(rows: int, path: Path) -> Path:
    candidates = [[value, 1] for value in VALUES[:10].tolist()]
    with path.open("w") as file:
        for seq in range(rows):
            name = f"g{seq // 10}"
            if seq % 10 == 0:
                file.write(json.dumps({"type": "group", "group": name, "candidates": candidates}) + "\n")
            quasi = {"q0": seq % 90, "q1": seq}
            file.write(json.dumps({"type": "tuple", "group": name, "seq": seq, "quasi": quasi, "plain": {}}) + "\n")
    return path
