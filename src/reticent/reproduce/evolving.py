"""`reticent reproduce evolving`: Figures 8, 9 and 10 of Temuujin, Ahn and Im (2019), with our methods next to the paper's.

The data is a synthetic census with the paper's eight attributes and domain sizes. The paper states no numbers for its
figures, so we compare with its text: which method is faster, and how time changes with l.

Records are deleted in two ways. In one batch, re-anonymizing everything (RED) costs one run of Anatomy, which is linear
in our core. One record at a time, as a live table changes, RED pays this cost for every record.
"""

from __future__ import annotations

import atexit
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.datasets import census
from reticent.datasets.writers import csv_text
from reticent.encode import encode_table
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.policy import Policy

Curve = dict[str, dict[int, float]]

PAPER = {
    "8": "insertion: ENC is fastest, RED slowest",
    "9": "deletion: ENCC before ENC, both far before RED and EAC; EAC slowest",
    "10": "ENCC takes less time with a larger l",
}
"""Statements of the paper's text; it gives no numbers for its figures."""

WHOLE_ENGINES = {"veil": "veil", "indexed, whole engine": "indexed"}
"""Methods measured with the whole engine (person lookup, hashing, dictionaries), because the veil has no classes."""


@dataclass(frozen=True)
class Scale:
    """Sizes in records (Table 7 of the paper), and the largest sizes for slow methods."""

    sizes: tuple[int, ...] = (10_000, 28_000, 57_000, 144_000, 288_000, 577_000)
    slow: int = 144_000
    red_by_one: int = 10_000
    l: int = 10


FULL = Scale()
QUICK = Scale(sizes=(2_000, 5_000, 10_000), slow=5_000, red_by_one=2_000)


def run(
    out: Path, *, quick: bool = False, seed: int = 1, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Run the figures, write `figures.json` and one plot per figure into `out`, and return the summary."""
    from reticent.reproduce.plots import draw_evolving_figures as draw

    scale = QUICK if quick else FULL
    study = Study(scale, Census(int(scale.sizes[-1] * 1.1), seed))
    figures: dict[str, Curve] = {}
    for name, make in FIGURES.items():
        start = time.perf_counter()
        figures[name] = make(study)
        progress(f"{name}: {time.perf_counter() - start:.1f} s")
    summary = {
        "figures": figures,
        "paper": PAPER,
        "ours": compare_with_paper(figures),
        "setting": vars(scale) | {"seed": seed},
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "figures.json").write_text(json.dumps(summary, indent=2) + "\n")
    draw(figures, out)
    return summary


def policy(method: str, l: int) -> Policy:
    """Return the census policy for a method; occupation is sensitive, all other columns are quasi-identifiers."""
    names = [name for name in census.LAYOUTS["evolving"].columns if name != "occupation"]
    columns: dict[str, Any] = {"person_id": "identifier", **dict.fromkeys(names, "quasi"), "occupation": "sensitive"}
    columns["age"] = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}}
    rules = {"version": 1, "person": "person_id", "columns": columns, "evolving": {"method": method, "l": l}}
    return Policy.from_dict(rules | ({"prior": {"file": str(_prior())}} if method == "veil" else {}))


@cache
def _prior() -> Path:
    """Write the census's prior to a temporary file that lasts until the program ends."""
    folder = tempfile.TemporaryDirectory(prefix="reticent-prior-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / "prior.csv"
    path.write_text(csv_text(census.prior()))
    return path


class Census:
    """The synthetic census, as a table and as codes; as in the paper, quasi-identifiers of all tuples differ."""

    def __init__(self, n: int, seed: int) -> None:
        drawn = census.generate(n + n // 4, seed=seed)
        names = [name for name in drawn.column_names if name not in ("person_id", "occupation")]
        codes = list(encode_table(drawn, names).codes.values())
        tuples = np.ravel_multi_index(codes, [int(column.max()) + 1 for column in codes])
        _, first = np.unique(tuples, return_index=True)
        self.table = drawn.take(pa.array(np.sort(first)[:n])).combine_chunks()
        coded = encode_table(self.table, [*names, "occupation"])
        self.quasi = np.stack([coded.codes[name] for name in names], axis=1)
        self.quasi[:, names.index("age")] = self.table.column("age").to_numpy()  # a number; the others are categories
        self.values = coded.codes["occupation"]
        # For information loss, age has a width; all other attributes are categorical.
        self.scale = [1 / 80 if name == "age" else 0.0 for name in names]

    def classes(self, method: str, n: int, l: int) -> _core.evolving.Classes:
        """Insert the first n records with a method into the native core."""
        core = _core.evolving.Classes(method, l=l, scale=self.scale)
        core.insert(np.arange(n, dtype=np.uint32), self.values[:n], self.quasi[:n], key=bytes(32))
        return core


@dataclass(frozen=True, repr=False)
class Study:
    """The census and the sizes to measure."""

    scale: Scale
    data: Census

    def insertion(self, method: str, n: int) -> float:
        """Measure the milliseconds to insert 10% into n records, as one batch."""
        rows = np.arange(n, n + n // 10, dtype=np.uint32)
        if method in WHOLE_ENGINES:
            engine = self._engine(WHOLE_ENGINES[method], n)
            return _measure_ms(lambda: engine.push(self.data.table.slice(n, n // 10)))
        core = self.data.classes(method, n, self.scale.l)
        return _measure_ms(lambda: core.insert(rows, self.data.values[rows], self.data.quasi[rows], key=bytes(32)))

    def deletion(self, method: str, n: int, *, each: bool = False, l: int | None = None) -> float:
        """Measure the milliseconds to delete a random 10% of n records, as one batch or one by one."""
        deleted = np.random.default_rng(n).permutation(n)[: n // 10].astype(np.uint32)
        if method in WHOLE_ENGINES:
            engine = self._engine(WHOLE_ENGINES[method], n)
            ids = self.data.table.column("person_id").take(pa.array(deleted))
            return _measure_ms(lambda: engine.delete(ids))
        core = self.data.classes(method, n, l or self.scale.l)
        return _measure_ms(lambda: core.delete(deleted, key=bytes(32), each=each))

    def _engine(self, method: str, n: int) -> Any:
        engine = publisher(policy(method, self.scale.l), "evolving", method, rng=Rng.from_seed(1))
        engine.push(self.data.table.slice(0, n))
        engine.cut()
        return engine

    def sizes(self, limit: int | None = None) -> list[int]:
        """Return the sizes up to a limit."""
        return [n for n in self.scale.sizes if limit is None or n <= limit]


def _measure_ms(work: Callable[[], Any]) -> float:
    """Measure CPU time in milliseconds: everything runs on one core, and other load does not change the result."""
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def figure_8(study: Study) -> Curve:
    """Insertion of 10%, l = 10, at the four smallest sizes."""
    sizes = study.sizes()[:4]
    slow = study.sizes(study.scale.slow)
    return {
        method: {n: study.insertion(method, n) for n in (slow if method == "eac" else sizes)}
        for method in ("red", "eac", "enc", "indexed", *WHOLE_ENGINES)
    }


def figure_9(study: Study) -> Curve:
    """Deletion of 10% in one batch, l = 10."""
    slow = {"eac": study.scale.slow}
    return {
        method: {n: study.deletion(method, n) for n in study.sizes(slow.get(method))}
        for method in ("red", "eac", "enc", "encc", "indexed", *WHOLE_ENGINES)
    }


def figure_9_one_by_one(study: Study) -> Curve:
    """Deletion of 10%, record after record, l = 10, on the sizes that finish."""
    limits = {"red": study.scale.red_by_one, "eac": study.scale.slow}
    return {
        method: {n: study.deletion(method, n, each=True) for n in study.sizes(limits.get(method, study.scale.slow))}
        for method in ("red", "eac", "enc", "encc", "indexed")
    }


def figure_10(study: Study) -> Curve:
    """Deletion of 10% by ENCC for l = 10, 20, 30, at the three smallest sizes."""
    return {f"l = {l}": {n: study.deletion("encc", n, l=l) for n in study.sizes()[:3]} for l in (10, 20, 30)}


FIGURES: dict[str, Callable[[Study], Curve]] = {
    "figure 8": figure_8,
    "figure 9": figure_9,
    "figure 9, one by one": figure_9_one_by_one,
    "figure 10": figure_10,
}


def compare_with_paper(figures: dict[str, Curve]) -> dict[str, Any]:
    """Return our figures in the terms of the paper's text, each at the largest size that both methods finished."""

    def ratio(figure: str, slow: str, fast: str) -> float:
        curves = figures[figure]
        n = max(set(curves[slow]) & set(curves[fast]))
        return round(curves[slow][n] / curves[fast][n], 2)

    one = "figure 9, one by one"
    by_l = [sum(curve.values()) for curve in figures["figure 10"].values()]
    return {
        "insertion, RED / ENC": ratio("figure 8", "red", "enc"),
        "insertion, EAC / ENC": ratio("figure 8", "eac", "enc"),
        "deletion one by one, RED / ENC": ratio(one, "red", "enc"),
        "deletion one by one, EAC / ENC": ratio(one, "eac", "enc"),
        "deletion in a batch, RED / ENC": ratio("figure 9", "red", "enc"),
        "deletion in a batch, EAC / ENC": ratio("figure 9", "eac", "enc"),
        "deletion in a batch, ENC / ENCC": ratio("figure 9", "enc", "encc"),
        "deletion in a batch, ENCC / indexed": ratio("figure 9", "encc", "indexed"),
        "deletion in a batch, veil / indexed": ratio("figure 9", *WHOLE_ENGINES),
        "ENCC faster with larger l": by_l == sorted(by_l, reverse=True),
    }
