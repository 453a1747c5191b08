"""`reticent reproduce delay-free`: Figures 3 to 10 of Kim, Sung and Chung (2014), with the paper's numbers next to ours.

The demographic stream is the Adult set, if available. The medical stream is the synthetic national patients sample
(`datasets.nps`), because the paper's records are not public. Our default draws l distinct candidates from a matched pool.
We compare it with the paper's own generation, with a uniform pool and with a pool of past frequencies. Its curve stops
where it needs more than 100,000 draws. Times depend on the machine: compare ratios, not microseconds.
"""

from __future__ import annotations

import csv
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.datasets import adult, nps
from reticent.engine import publisher_class
from reticent.engine.rng import Rng
from reticent.engine.stream.castle import Castle
from reticent.engine.stream.delay_free import DelayFree
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.release import Release
from reticent.reproduce.windows import Monitor, Query, true_counts
from reticent.utility.stream import stream_information_loss

Curves = dict[str, list[float | None]]

PAPER = {
    "time per tuple, Adult, milliseconds": 0.037,
    "time per tuple, Adult, delta = 10, milliseconds": 0.18,
    "time per tuple, NPS, milliseconds": 0.09,
    "time per tuple, NPS, delta = 10, milliseconds": 0.8,
    "SAU once stable": "0.05 to 0.2",
    "average error, D1 D2 D3": [2.59, 1.47, 0.77],
    "average error, M1 M2 M3": [0.58, 0.47, 0.42],
}
"""Numbers of the paper's text; it gives none for its curves."""

DELTAS = (10, 100, 1_000, 10_000)
LS = (5, 10, 15, 20, 25)
PAST_RECORDS = 2_000
LITERAL = {
    f"literal, {pool} pool": {"generation": "literal", "pool": pool, "draw_limit": 100_000}
    for pool in ("uniform", "empirical")
}
"""The paper's own generation of candidates, by pool."""
VARIANTS: dict[str, dict[str, Any]] = {"delay-free": {}, **LITERAL}
EDUCATION = (
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"),
    *("Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"),
)
"""Adult's degrees from the lowest to the highest: Table 1 treats education as continuous."""
TREES = ("workclass", "marital-status", "native-country")
"""Adult's columns with a taxonomy tree, by which CASTLE generalizes if the file exists; DF leaves them unchanged."""


@dataclass(frozen=True)
class Stream:
    """A data set as the paper uses it: quasi-identifiers in order, one sensitive column, and past counts for the pool.

    Figures 5 and 6, by number of records, use the first `fixed` quasi-identifiers: Adult-5 and NPS-4. A category without
    one of the `trees` has only its values and a root.
    """

    name: str
    table: pa.Table
    quasi: tuple[str, ...]
    sensitive: str
    past_counts: dict[str, int]
    queries: dict[str, Query]
    fixed: int
    trees: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def policy(self, folder: Path, dimensions: int | None = None, k: int | None = None, **settings: Any) -> Policy:
        """Return a policy with the first quasi-identifiers; the other columns are not released."""
        quasi = self.quasi[:dimensions]
        columns: dict[str, Any] = dict.fromkeys(self.table.column_names, "identifier")
        columns |= dict.fromkeys(quasi, "quasi") | {self.sensitive: "sensitive"}
        columns |= {
            name: {"role": "quasi", "hierarchy": {"tree": self.trees[name]}} for name in quasi if name in self.trees
        }
        path = folder / f"{self.name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("value", "count"), *self.past_counts.items()])
        rules = {"version": 1, "columns": columns, "prior": {"file": path.name}, "stream": settings}
        return Policy.from_dict(rules | ({"privacy": {"k": k}} if k else {}), base=folder)


def demographic(folder: Path, rows: int) -> Stream:
    """Load the Adult set as a stream, with the paper's queries."""
    table = adult.load_stream(folder).slice(0, rows)
    degrees = pc.add(pc.index_in(table.column("education"), value_set=pa.array(EDUCATION)), 1)
    table = table.set_column(table.column_names.index("education"), "education", degrees)
    values = table.column(adult.STREAM_SENSITIVE).to_pylist()
    past = dict.fromkeys(sorted(set(values)), 0) | Counter(values[:PAST_RECORDS])
    every = -(-table.num_rows // 100)  # a hundred windows; the last one may be shorter
    sales = [value for value in past if "Sales" in value and "<=" in value]
    female, divorced = {"sex": ["Female"]}, {"marital-status": ["Divorced"]}
    queries = {
        "D1": Query(sales, every),
        "D2": Query(sales, every, female),
        "D3": Query(sales, every, female | divorced),
    }
    files = {name: folder / f"adult_hierarchy_{name}.csv" for name in TREES}
    trees = {name: _tree(path) for name, path in files.items() if path.is_file()}
    return Stream("adult", table, adult.STREAM_QUASI, adult.STREAM_SENSITIVE, dict(past), queries, fixed=5, trees=trees)


def _tree(path: Path) -> dict[str, list[str]]:
    """Read the nodes above the leaves of a hierarchy file; a missing value (`?`) has its own node."""
    tree = {"unknown": ["?"]}
    for line in path.read_text(encoding="utf-8").splitlines():
        leaf, node = line.split(";")[:2]
        tree.setdefault(node, []).append(leaf)
    return tree


def medical(rows: int, seed: int) -> Stream:
    """Generate the synthetic patients sample that replaces the paper's."""
    table, past = nps.generate(rows, seed), nps.prior()
    counts = dict(zip(past.column("value").to_pylist(), past.column("count").to_pylist(), strict=True))
    every = -(-rows // 100)
    seoul, male = {"location": ["Seoul"]}, {"sex": ["male"]}
    queries = {
        "M1": Query(nps.NOTIFIABLE, every),
        "M2": Query(nps.NOTIFIABLE, every, seoul),
        "M3": Query(nps.NOTIFIABLE, every, seoul | male),
    }
    quasi = ("age", "length_of_stay", "sex", "location", "admission_route")
    return Stream("nps", table, quasi, "disease", counts, queries, fixed=4)


def run(
    out: Path,
    *,
    quick: bool = False,
    seed: int = 1,
    data: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run every figure, write `figures.json` and one plot per figure into `out`, and return the summary.

    Args:
        out: the output folder.
        quick: use smaller sizes, to test that everything runs.
        seed: makes the run repeatable.
        data: the folder of the Adult set; by default the one that `datasets.adult.data_folder` finds.
        progress: called with a line for every figure.
    """
    from reticent.reproduce.plots import draw_delay_free as draw

    streams = _streams(data, quick=quick, seed=seed)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        study = Study(Path(name), seed, quick=quick)
        for stream in streams:
            for title, make in FIGURES.items():
                start = time.perf_counter()
                figures[f"{title} {stream.name}"] = make(study, stream)
                progress(f"figure {title}, {stream.name}: {time.perf_counter() - start:.1f} s")
        literal = {stream.name: study.literal(stream) for stream in streams}
    ours = compare_with_paper(figures) | {"largest share of records that CASTLE suppressed": study.suppressed}
    summary = {"figures": figures, "paper": PAPER, "ours": ours, "literal": literal, "quick": quick}
    out.mkdir(parents=True, exist_ok=True)
    (out / "figures.json").write_text(json.dumps(summary, indent=2, default=float) + "\n")
    draw(figures, out)
    return summary


def _streams(data: Path | None, *, quick: bool, seed: int) -> list[Stream]:
    where = data or adult.data_folder("adult.data")
    streams = [medical(2_000 if quick else nps.RECORDS, seed)]
    if where is not None:
        streams.insert(0, demographic(where, 2_000 if quick else 32_561))
    return streams


class Study:
    """Runs one method on one stream, and stores the measurements that the figures share."""

    def __init__(self, folder: Path, seed: int, *, quick: bool) -> None:
        self.folder, self.seed, self.quick = folder, seed, quick
        self.suppressed: dict[str, float] = {}

    @property
    def ls(self) -> tuple[int, ...]:
        """The values of l to run."""
        return LS[:2] if self.quick else LS

    def measure_delay_free(self, stream: Stream, rows: int | None = None, **settings: Any) -> dict[str, float | None]:
        """Measure time per tuple and information loss of delay-free; None if the generation does not finish."""
        publisher = self.build(stream, **settings)
        table = stream.table.slice(0, rows)
        start = time.process_time()
        try:
            (release,) = publisher.push(table)
            dict(release.tables)  # tables are built lazily; include this in the time
        except GuaranteeError:
            return {"ms": None, "loss": None}
        seconds = time.process_time() - start
        return {"ms": seconds / table.num_rows * 1e3, "loss": _loss(release, len(publisher.policy.quasi))}

    def build(self, stream: Stream, **settings: Any) -> DelayFree:
        """Build a delay-free publisher."""
        policy = stream.policy(self.folder, settings.pop("dimensions", None), method="delay-free", **settings)
        publisher = publisher_class("stream", "delay-free")(policy, rng=Rng.from_seed(self.seed))
        assert isinstance(publisher, DelayFree)  # noqa: S101
        return publisher

    def measure_castle(
        self, stream: Stream, delta: int, l: int = 10, *, dimensions: int | None = None, rows: int | None = None
    ) -> dict[str, float]:
        """Measure the same for CASTLE; a tuple's time includes the cost of all tuples until its release."""
        policy = stream.policy(self.folder, dimensions, k=l, method="castle", l=l, delta=delta)
        publisher = Castle(policy, rng=Rng.from_seed(self.seed))
        table = stream.table.slice(0, rows)
        start = time.process_time()
        for at in range(0, table.num_rows, 5_000):
            publisher.push(table.slice(at, 5_000))
        publisher.close()
        each = (time.process_time() - start) / table.num_rows * 1e3
        metrics, share = publisher.metrics, publisher.counts.suppressed / table.num_rows
        name = f"{stream.name}, delta = {delta}"
        self.suppressed[name] = max(share, self.suppressed.get(name, 0.0))
        return {
            "ms": each * max(1.0, metrics.get("average_wait", 1.0)),
            "loss": metrics.get("information_loss", 1.0),
            "cells": metrics.get("loss", 1.0),
        }

    def sau_without_validation(self, stream: Stream, **settings: Any) -> float | None:
        """Measure SAU without late validation: a group accepts only the record that opened it."""
        publisher = self.build(stream, retire_after=1, **settings)
        table = stream.table.slice(0, 1_000)
        try:
            publisher.place(table, 2 * np.arange(table.num_rows, dtype=np.uint64))
        except GuaranteeError:
            return None
        return publisher.metrics["sau"]

    def literal(self, stream: Stream) -> dict[str, dict[str, float]]:
        """Return the share of groups for which the paper's generation stops within 100,000 draws, by pool and l."""
        tries = 10 if self.quick else 100
        return {
            name: {str(l): sum(self._stops(stream, l, at, settings) for at in range(tries)) / tries for l in self.ls}
            for name, settings in LITERAL.items()
        }

    def _stops(self, stream: Stream, l: int, at: int, settings: dict[str, Any]) -> bool:
        policy = stream.policy(self.folder, method="delay-free", l=l, **settings)
        publisher = publisher_class("stream", "delay-free")(policy, rng=Rng.from_seed(at))
        try:
            publisher.push(stream.table.slice(at, 1))
        except GuaranteeError:
            return False
        return True


def _loss(release: Release, quasi: int) -> float:
    """Compute equations (6) and (7) from the release: distinct candidates and records of every group."""
    names, candidates = np.unique(release.tables["group"].column("group").to_numpy(), return_counts=True)
    joined, records = np.unique(release.tables["tuple"].column("group").to_numpy(), return_counts=True)
    return stream_information_loss(candidates[np.searchsorted(names, joined)], records, quasi)


def by_dimension(study: Study, stream: Stream) -> dict[str, Curves]:
    """Run Figures 3 and 4: time per tuple and information loss by number of quasi-identifiers; equation (5) for CASTLE."""
    sizes = list(range(1, len(stream.quasi) + 1))
    return _compare_methods(study, stream, sizes, lambda size: {"dimensions": size})


def by_records(study: Study, stream: Stream) -> dict[str, Curves]:
    """Run Figures 5 and 6: the same by number of records."""
    total = stream.table.num_rows
    sizes = [total * part // 5 for part in range(1, 6)]
    return _compare_methods(study, stream, sizes, lambda size: {"rows": size, "dimensions": stream.fixed})


def _compare_methods(
    study: Study, stream: Stream, sizes: list[int], setting: Callable[[int], dict[str, int]]
) -> dict[str, Curves]:
    times: Curves = {"x": [float(size) for size in sizes]}
    losses: Curves = {"x": times["x"]}
    cells: Curves = {"x": times["x"]}
    deltas = DELTAS[:2] if study.quick else DELTAS
    runs: dict[str, Callable[..., Mapping[str, float | None]]] = {
        name: partial(study.measure_delay_free, stream, l=10, **extra) for name, extra in VARIANTS.items()
    }
    runs |= {f"CASTLE, delta = {delta}": partial(study.measure_castle, stream, delta) for delta in deltas}
    for name, make in runs.items():
        figures = [make(**setting(size)) for size in sizes]
        times[name] = [figure["ms"] for figure in figures]
        losses[name] = [figure["loss"] for figure in figures]
        if name.startswith("CASTLE"):
            cells[name] = [figure["cells"] for figure in figures]
    return {"time": times, "loss": losses, "cells": cells}


def by_l(study: Study, stream: Stream) -> dict[str, Curves]:
    """Run Figure 7: time per tuple and information loss by l."""
    times: Curves = {"x": [float(l) for l in study.ls]}
    losses: Curves = {"x": times["x"]}
    for name, settings in VARIANTS.items():
        runs = [study.measure_delay_free(stream, l=l, **settings) for l in study.ls]
        times[name] = [one["ms"] for one in runs]
        losses[name] = [one["loss"] for one in runs]
    return {"time": times, "loss": losses}


def uncertainty(study: Study, stream: Stream) -> dict[str, Curves]:
    """Run Figure 8: sensitive attribute uncertainty over time, its lower limit, and the same without late validation."""
    step = max(1, stream.table.num_rows // 40)
    ends = list(range(step, stream.table.num_rows + 1, step))
    curves: Curves = {"x": [float(end) for end in ends]}
    kinds: dict[str, dict[str, Any]] = {pool: {"pool": pool} for pool in ("matched", "empirical")}
    for name, settings in (kinds | LITERAL).items():
        for l in study.ls:
            publisher = study.build(stream, l=l, **settings)
            curves[f"{name}, l = {l}"] = _over_time(publisher, stream, ends)
            if name == "matched":
                curves[f"limit, l = {l}"] = [publisher.metrics["sau_limit"]] * len(ends)
            if name != "empirical":
                alone = study.sau_without_validation(stream, l=l, **settings)
                curves[f"without late validation, {name}, l = {l}"] = [alone] * len(ends)
    return {"sau": curves}


def _over_time(publisher: DelayFree, stream: Stream, ends: list[int]) -> list[float | None]:
    curve: list[float | None] = []
    for start, end in pairwise([0, *ends]):
        try:
            publisher.push(stream.table.slice(start, end - start))
        except GuaranteeError:
            return curve + [None] * (len(ends) - len(curve))
        curve.append(publisher.metrics["sau"])
    return curve


def queries(study: Study, stream: Stream) -> dict[str, Any]:
    """Run Figures 9 and 10: a hundred windows of each query, with true count and estimate.

    Two figures show whether the estimate follows the true count: their correlation, and the error of a constant answer.
    """
    curves: dict[str, Any] = {}
    for name, query in stream.queries.items():
        publisher, monitor = study.build(stream, l=10), Monitor(query)
        answers = []
        for at in range(0, stream.table.num_rows, 10_000):
            for release in publisher.push(stream.table.slice(at, 10_000)):
                answers += list(monitor.read(release))
        answers += list(monitor.close())
        true = np.array(true_counts(stream.table, stream.sensitive, query), dtype=np.float64)
        counts = np.array([answer.count for answer in answers])
        curves[f"{name} delay-free"] = {
            "x": [float(answer.window) for answer in answers],
            "truth": true.tolist(),
            "estimate": counts.tolist(),
            "standard error": [answer.error for answer in answers],
            "average error": float(np.abs(counts - true).mean()),
            "average error of the mean": float(np.abs(true.mean() - true).mean()),
            "correlation": float(np.corrcoef(counts, true)[0, 1]),
        }
    return curves


FIGURES: dict[str, Callable[[Study, Stream], dict[str, Any]]] = {
    "3 and 4": by_dimension,
    "5 and 6": by_records,
    "7": by_l,
    "8": uncertainty,
    "9 and 10": queries,
}


def compare_with_paper(figures: dict[str, Any]) -> dict[str, Any]:
    """Return our values of the numbers in the paper's text."""
    ours: dict[str, Any] = {}
    for name, long in (("adult", "Adult"), ("nps", "NPS")):
        if f"5 and 6 {name}" not in figures:
            continue
        times = figures[f"5 and 6 {name}"]["time"]
        ours[f"time per tuple, {long}, milliseconds"] = times["delay-free"][-1]
        ours[f"time per tuple, {long}, delta = 10, milliseconds"] = times["CASTLE, delta = 10"][-1]
        sau = figures[f"8 {name}"]["sau"]
        ours[f"SAU at the end, {long}"] = {key: curve[-1] for key, curve in sau.items() if key != "x"}
        answers = figures[f"9 and 10 {name}"]
        for word in ("average error", "average error of the mean", "correlation"):
            ours[f"{word}, {long}"] = {key: entry[word] for key, entry in answers.items()}
    return ours
