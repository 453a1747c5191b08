"""`reticent reproduce m-distinct`: Figures 3 to 9 of Li and Zhou (2008), with the paper's numbers next to ours.

The data is a synthetic census with the paper's domain sizes; all other settings are the paper's. The gate is off, as in
the paper.

A range count query (section VI-C) counts the records in a range of every quasi-identifier and of the sensitive values.
The estimate of a group is its number of records (without counterfeits) times the chance that a record is in the range,
if records are spread evenly over the group's ranges and values.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent import _core
from reticent.engine.series.grouping import Grouping
from reticent.engine.series.update_graph import risk_of
from reticent.reproduce.census_series import SIZES, Series, Setting, Snapshot, census, diameter, snapshots

Curve = dict[str, list[float]]
Run = tuple[Curve, Snapshot, Grouping]
"""The measurements of a series, its last table, and the groups that were released for it."""

PAPER = {
    "vulnerable share, 2-diversity, 20 releases": 0.66,
    "invalid records of m-Invariance at d = 1": 0,
    "counterfeits at the default setting": 0,
    "counterfeits per group, m = 8, d = 5, 3,000 deleted": "below 2",
}
"""Numbers of the paper's text; it gives none for its curves."""


@dataclass(frozen=True)
class Scale:
    """How much of the paper's setting is run; curves over time use fewer queries than the paper's 10,000."""

    setting: Setting
    ms: tuple[int, ...] = (2, 4, 6, 8)
    ds: tuple[int, ...] = (5, 10, 15, 20, 25)
    queries: int = 10_000
    queries_over_time: int = 2_000
    pool: int = 200_000


FULL = Scale(Setting())
QUICK = Scale(
    Setting(first=2_000, deleted=200, inserted=500, updated=500, releases=6),
    ms=(2, 4),
    ds=(5, 10),
    queries=500,
    queries_over_time=200,
    pool=10_000,
)


def run(
    out: Path, *, quick: bool = False, seed: int = 1, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Run every figure, write `figures.json`, `summary.json` and one plot per figure into `out`, and return all."""
    from reticent.reproduce.plots import draw_m_distinct as draw

    scale = QUICK if quick else FULL
    scale = replace(scale, setting=replace(scale.setting, seed=seed))
    study = Study(scale, census(scale.pool, seed))
    out.mkdir(parents=True, exist_ok=True)
    figures = {}
    for name, make in FIGURES.items():
        start = time.perf_counter()
        figures[name] = make(study)
        progress(f"{name}: {time.perf_counter() - start:.1f} s")
        draw({name: figures[name]}, out)
        (out / "figures.json").write_text(json.dumps(figures, indent=2, default=float) + "\n")
    summary = {"paper": PAPER, "ours": compare_with_paper(figures), "setting": vars(scale.setting) | {"quick": quick}}
    (out / "summary.json").write_text(json.dumps(summary, indent=2, default=float) + "\n")
    return summary | {"figures": figures}


@dataclass(frozen=True, repr=False)
class Study:
    """The census, its scale, and the series published so far, because several figures use the same series."""

    scale: Scale
    pool: npt.NDArray[np.int32]
    cache: dict[tuple[str, int, int, int], Run] = field(default_factory=dict)

    @property
    def checkpoints(self) -> list[float]:
        """The releases with expensive measurements: the first, every fourth, and the last."""
        last = self.scale.setting.releases
        return [float(n) for n in range(1, last + 1) if n == 1 or n % 4 == 0 or n == last]

    def series(self, method: str, m: int, *, diameter: int | None = None, deleted: int | None = None) -> Curve:
        """Return the measurements of a whole series, for every release or at the checkpoints."""
        return self.run(method, m, diameter=diameter, deleted=deleted)[0]

    def run(self, method: str, m: int, *, diameter: int | None = None, deleted: int | None = None) -> Run:
        """Publish a series, or return it from the cache."""
        setting = self.scale.setting
        setting = replace(setting, diameter=diameter or setting.diameter, deleted=deleted or setting.deleted)
        key = method, m, setting.diameter, setting.deleted
        if key not in self.cache:
            self.cache[key] = self._publish(method, m, setting)
        return self.cache[key]

    def _publish(self, method: str, m: int, setting: Setting) -> Run:
        series = Series(method, m, diameter(setting.diameter))
        measured: Curve = {"invalid": [], "counterfeits": [], "vulnerable": [], "error": []}
        for number, table in enumerate(snapshots(setting, self.pool), 1):
            grouping = series.publish(table)
            measured["invalid"].append(float((grouping.withheld > 0).sum()))
            measured["counterfeits"].append(float(grouping.counterfeits.mean()))
            if number in self.checkpoints and method == "l-diversity":
                measured["vulnerable"].append(_vulnerable(series))
            if number in self.checkpoints and method == "m-distinct":
                measured["error"].append(self.error(table, grouping, 0.5, self.scale.queries_over_time))
        return measured, table, grouping

    def error(self, table: Snapshot, grouping: Grouping, theta: float, count: int) -> float:
        """Return the median error of random queries."""
        queries = Queries.draw(list(SIZES.values()), theta, count, np.random.default_rng(7))
        return float(np.median(relative_errors(queries.estimate(grouping, table.quasi), queries.count(table.records))))


def _vulnerable(series: Series) -> float:
    """Return the share of all published versions with only one feasible value left."""
    risk = risk_of(series.history, series.updates)
    return float(risk.disclosed.sum() / risk.versions.sum())


def _floats(numbers: tuple[int, ...]) -> list[float]:
    return [float(n) for n in numbers]


def figure_3a(study: Study) -> Curve:
    """Vulnerable share over time under l-diversity."""
    curves = {f"l = {m}": study.series("l-diversity", m)["vulnerable"] for m in study.scale.ms}
    return {"release": study.checkpoints} | curves


def figure_3b(study: Study) -> Curve:
    """Vulnerable share after the last release, by diameter."""
    ds = study.scale.ds
    return {"d": _floats(ds)} | {
        f"l = {m}": [study.series("l-diversity", m, diameter=d)["vulnerable"][-1] for d in ds]
        for m in study.scale.ms[:2]
    }


def figure_4a(study: Study) -> Curve:
    """Cumulative number of records that m-Invariance cannot publish, over time."""
    return {f"m = {m}": np.cumsum(study.series("m-invariance", m)["invalid"]).tolist() for m in study.scale.ms}


def figure_4b(study: Study) -> Curve:
    """The same after the last release, by diameter."""
    ds = (1, *study.scale.ds)
    return {"d": _floats(ds)} | {
        f"m = {m}": [sum(study.series("m-invariance", m, diameter=d)["invalid"]) for d in ds]
        for m in study.scale.ms[1:2]
    }


def figure_5a(study: Study) -> Curve:
    """Median query error over time, theta = 0.5."""
    return {"release": study.checkpoints} | {f"m = {m}": study.series("m-distinct", m)["error"] for m in study.scale.ms}


def figure_5b(study: Study) -> Curve:
    """Median query error by theta, m = 4, last release, compared with l-diversity."""
    thetas = [round(0.1 * i, 1) for i in range(1, 10)]
    out: Curve = {"theta": thetas}
    for method in ("m-distinct", "l-diversity"):
        _, table, grouping = study.run(method, 4)
        out[method] = [study.error(table, grouping, theta, study.scale.queries) for theta in thetas]
    return out


def figure_6(study: Study) -> Curve:
    """Median query error of the last release by diameter, m = 4."""
    points = [study.series("m-distinct", 4, diameter=d)["error"][-1] for d in study.scale.ds]
    return {"d": _floats(study.scale.ds), "m = 4": points}


def _counterfeits_per_group(study: Study, m: int, d: int) -> list[float]:
    """Counterfeits per group, release by release, with 3,000 deleted."""
    deleted = study.scale.setting.deleted * 3 // 2
    return study.series("m-distinct", m, diameter=d, deleted=deleted)["counterfeits"]


def figure_7(study: Study) -> Curve:
    """Counterfeits per group over time, m = 6, d = 5, 3,000 deleted; and at the default setting."""
    return {
        "m = 6, d = 5": _counterfeits_per_group(study, 6, 5),
        "m = 4, default": study.series("m-distinct", 4)["counterfeits"],
    }


def figure_8a(study: Study) -> Curve:
    """Counterfeits per group by diameter, m = 6, 3,000 deleted, mean over the releases."""
    return {
        "d": _floats(study.scale.ds),
        "m = 6": [float(np.mean(_counterfeits_per_group(study, 6, d))) for d in study.scale.ds],
    }


def figure_8b(study: Study) -> Curve:
    """Counterfeits per group by m, d = 5, 3,000 deleted: mean over the releases, and the worst release."""
    curves = [_counterfeits_per_group(study, m, 5) for m in study.scale.ms]
    return {
        "m": _floats(study.scale.ms),
        "d = 5": [float(np.mean(values)) for values in curves],
        "worst release": [float(np.max(values)) for values in curves],
    }


def figure_9(study: Study) -> Curve:
    """CPU seconds for the second release, by diameter (m = 4) and by m."""
    out: Curve = {"d": _floats(study.scale.ds), "m": _floats(study.scale.ms)}
    out["by d"] = [_second_release_seconds(study, 4, d) for d in study.scale.ds]
    out["by m"] = [_second_release_seconds(study, m, study.scale.setting.diameter) for m in study.scale.ms]
    return out


def _second_release_seconds(study: Study, m: int, d: int) -> float:
    """Return the smallest CPU time of three runs; the paper's program had one thread."""
    setting = replace(study.scale.setting, diameter=d, releases=2)
    series = Series("m-distinct", m, diameter(d))
    first, second = snapshots(setting, study.pool)
    series.publish(first)
    seconds = []
    for _ in range(3):
        again = replace(series)  # a history is immutable
        start = time.process_time()
        again.publish(second)
        seconds.append(time.process_time() - start)
    return min(seconds)


FIGURES: dict[str, Callable[[Study], Curve]] = {
    "3a": figure_3a,
    "3b": figure_3b,
    "4a": figure_4a,
    "4b": figure_4b,
    "5a": figure_5a,
    "5b": figure_5b,
    "6": figure_6,
    "7": figure_7,
    "8a": figure_8a,
    "8b": figure_8b,
    "9": figure_9,
}


def compare_with_paper(figures: dict[str, Curve]) -> dict[str, float]:
    """Return our values of the numbers in the paper's text."""
    return {
        "vulnerable share, 2-diversity, 20 releases": figures["3a"]["l = 2"][-1],
        "invalid records of m-Invariance at d = 1": figures["4b"]["m = 4"][0],
        "counterfeits at the default setting": max(figures["7"]["m = 4, default"]),
        "counterfeits per group, m = 8, d = 5, 3,000 deleted": figures["8b"]["worst release"][-1],
    }


Grid = npt.NDArray[np.int32]


@dataclass(frozen=True, repr=False)
class Queries:
    """Closed ranges: one row per query, one column per attribute, with the sensitive attribute last."""

    low: Grid
    high: Grid

    @classmethod
    def draw(cls, sizes: list[int], theta: float, n: int, rng: np.random.Generator) -> Queries:
        """Draw random queries that cover the share `theta` of every domain; `sizes` are the domain sizes."""
        width = np.maximum(1, np.round(theta * np.array(sizes))).astype(np.int64)
        low = np.stack([rng.integers(0, size - w + 1, n) for size, w in zip(sizes, width, strict=True)], axis=1)
        return cls(np.ascontiguousarray(low, dtype=np.int32), np.ascontiguousarray(low + width - 1, dtype=np.int32))

    def count(self, records: Grid) -> npt.NDArray[np.int64]:
        """Return the true counts; `records` has one column per attribute, with the sensitive attribute last."""
        return _core.series.count(self.low, self.high, np.ascontiguousarray(records, dtype=np.int32))

    def estimate(self, grouping: Grouping, positions: Grid) -> npt.NDArray[np.float64]:
        """Return the recipient's estimates from the release; `positions` are the quasi-identifiers of the rows."""
        shown, starts = positions[grouping.donor], grouping.offsets[:-1]
        records = np.diff(grouping.offsets) - grouping.counterfeits
        return _core.series.estimate(
            self.low,
            self.high,
            low=np.ascontiguousarray(np.minimum.reduceat(shown, starts, axis=0), dtype=np.int32),
            high=np.ascontiguousarray(np.maximum.reduceat(shown, starts, axis=0), dtype=np.int32),
            records=records.astype(np.int32),
            groups=(grouping.offsets, grouping.value),
        )


def relative_errors(estimate: npt.NDArray[np.float64], true_counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the paper's error |R* - R| / R*, with R* the estimate; 0 if both are 0, infinite if only R* is 0."""
    difference = np.abs(estimate - true_counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = difference / estimate
    return np.where(difference == 0, 0.0, errors)
