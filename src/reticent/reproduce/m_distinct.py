"""`reticent reproduce m-distinct`: Figures 3 to 9 of Li and Zhou (2008), with the numbers their text states beside ours.

The data is a synthetic census with the paper's domain sizes; everything else is the paper's setting. The gate is off, as in the paper.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.engine.series.queries import Queries, errors
from reticent.engine.series.sug import risk_of
from reticent.reproduce.census_series import SIZES, Series, Setting, Snapshot, census, diameter, snapshots

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from reticent.engine.series.grouping import Grouping

    Curve = dict[str, list[float]]

PAPER = {
    "vulnerable share, 2-diversity, 20 releases": 0.66,
    "invalid records of m-Invariance at d = 1": 0,
    "counterfeits at the default setting": 0,
    "counterfeits per group, m = 8, d = 5, 3,000 deleted": "below 2",
}
"""What the paper's text says; its curves are only drawn."""


@dataclass(frozen=True)
class Scale:
    """How much of the paper's setting is run; curves over time ask fewer queries than the paper's 10,000."""

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
    out: Path, *, quick: bool = False, seed: int = 1, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Runs every figure, writes `figures.json`, `summary.json` and one plot per figure into `out`, and returns the figures."""
    from reticent.reproduce.m_distinct_plots import draw

    scale = QUICK if quick else FULL
    scale = replace(scale, setting=replace(scale.setting, seed=seed))
    study = Study(scale, census(scale.pool, seed))
    out.mkdir(parents=True, exist_ok=True)
    figures = {}
    for name, make in FIGURES.items():
        start = time.perf_counter()
        figures[name] = make(study)
        say(f"{name}: {time.perf_counter() - start:.1f} s")
        draw({name: figures[name]}, out)
        (out / "figures.json").write_text(json.dumps(figures, indent=2, default=float) + "\n")
    summary = {"paper": PAPER, "ours": beside(figures), "setting": vars(scale.setting) | {"quick": quick}}
    (out / "summary.json").write_text(json.dumps(summary, indent=2, default=float) + "\n")
    return summary | {"figures": figures}


Look = Callable[[Series, Snapshot, "Grouping"], float]


@dataclass(frozen=True, repr=False)
class Study:
    """The census and how much of it to use."""

    scale: Scale
    pool: npt.NDArray[np.int32]

    @property
    def marks(self) -> list[float]:
        """The releases at which costly things are looked at: the first, every fourth, the last."""
        last = self.scale.setting.releases
        return [float(n) for n in range(1, last + 1) if n == 1 or n % 4 == 0 or n == last]

    def series(self, method: str, m: int, look: Look, *, at: list[float] | None = None, **changes: int) -> list[float]:
        """Publishes a whole series and looks at every release, or at some."""
        setting = replace(self.scale.setting, **changes)
        series = Series(method, m, diameter(setting.diameter))
        figures = []
        for number, table in enumerate(snapshots(setting, self.pool), 1):
            grouping = series.publish(table)
            if at is None or number in at:
                figures.append(look(series, table, grouping))
        return figures

    def errors(self, theta: float, count: int | None = None) -> Look:
        """Looks at the median query error."""
        asked = count or self.scale.queries_over_time
        queries = Queries.draw(list(SIZES.values()), theta, asked, np.random.default_rng(7))

        def look(_: Series, table: Snapshot, grouping: Grouping) -> float:
            return float(np.median(errors(queries.estimate(grouping, table.quasi), queries.count(table.records))))

        return look


def _vulnerable(series: Series, _: Snapshot, __: Grouping) -> float:
    """Share of all published versions left with one feasible value."""
    risk = risk_of(series.history, series.updates)
    return float(risk.disclosed.sum() / risk.versions.sum())


def _invalid(_: Series, __: Snapshot, grouping: Grouping) -> float:
    return float((grouping.held > 0).sum())


def _counterfeits(_: Series, __: Snapshot, grouping: Grouping) -> float:
    return float(grouping.counterfeits.mean())


def _floats(numbers: tuple[int, ...]) -> list[float]:
    return [float(n) for n in numbers]


def figure_3a(study: Study) -> Curve:
    """Vulnerable share over time under l-diversity."""
    at = study.marks
    return {"release": at} | {f"l = {m}": study.series("l-diversity", m, _vulnerable, at=at) for m in study.scale.ms}


def figure_3b(study: Study) -> Curve:
    """Vulnerable share after the last release, by diameter."""
    ds, end = study.scale.ds, study.marks[-1:]
    return {"d": _floats(ds)} | {
        f"l = {m}": [study.series("l-diversity", m, _vulnerable, at=end, diameter=d)[0] for d in ds]
        for m in study.scale.ms[:2]
    }


def figure_4a(study: Study) -> Curve:
    """Records that m-Invariance cannot publish, added up over time."""
    curves = {f"m = {m}": study.series("m-invariance", m, _invalid) for m in study.scale.ms}
    return {name: np.cumsum(counts).tolist() for name, counts in curves.items()}


def figure_4b(study: Study) -> Curve:
    """The same after the last release, by diameter."""
    ds = (1, *study.scale.ds)
    return {"d": _floats(ds)} | {
        f"m = {m}": [sum(study.series("m-invariance", m, _invalid, diameter=d)) for d in ds]
        for m in study.scale.ms[1:2]
    }


def figure_5a(study: Study) -> Curve:
    """Median query error over time, theta = 0.5."""
    at, look = study.marks, study.errors(0.5)
    return {"release": at} | {f"m = {m}": study.series("m-distinct", m, look, at=at) for m in study.scale.ms}


def figure_5b(study: Study) -> Curve:
    """Median query error by theta, m = 4, last release, beside l-diversity."""
    thetas = [round(0.1 * i, 1) for i in range(1, 10)]
    out: Curve = {"theta": thetas}
    for method in ("m-distinct", "l-diversity"):
        looks = [study.errors(theta, study.scale.queries) for theta in thetas]
        series = Series(method, 4, diameter(study.scale.setting.diameter))
        for table in snapshots(study.scale.setting, study.pool):
            grouping = series.publish(table)
        out[method] = [look(series, table, grouping) for look in looks]
    return out


def figure_6(study: Study) -> Curve:
    """Median query error of the last release by diameter, m = 4."""
    look, end = study.errors(0.5), study.marks[-1:]
    points = [study.series("m-distinct", 4, look, at=end, diameter=d)[0] for d in study.scale.ds]
    return {"d": _floats(study.scale.ds), "m = 4": points}


def _many_deleted(study: Study) -> int:
    return study.scale.setting.deleted * 3 // 2


def figure_7(study: Study) -> Curve:
    """Counterfeits per group over time, m = 6, d = 5, 3,000 deleted; and at the default setting."""
    hard = study.series("m-distinct", 6, _counterfeits, diameter=5, deleted=_many_deleted(study))
    return {"m = 6, d = 5": hard, "m = 4, default": study.series("m-distinct", 4, _counterfeits)}


def figure_8a(study: Study) -> Curve:
    """Counterfeits per group by diameter, m = 6, 3,000 deleted, mean over the releases."""
    deleted = _many_deleted(study)
    means = [
        float(np.mean(study.series("m-distinct", 6, _counterfeits, diameter=d, deleted=deleted)))
        for d in study.scale.ds
    ]
    return {"d": _floats(study.scale.ds), "m = 6": means}


def figure_8b(study: Study) -> Curve:
    """Counterfeits per group by m, d = 5, 3,000 deleted: mean over the releases, and the worst release."""
    deleted = _many_deleted(study)
    curves = [study.series("m-distinct", m, _counterfeits, diameter=5, deleted=deleted) for m in study.scale.ms]
    return {
        "m": _floats(study.scale.ms),
        "d = 5": [float(np.mean(values)) for values in curves],
        "worst release": [float(np.max(values)) for values in curves],
    }


def figure_9(study: Study) -> Curve:
    """Seconds for the second release, by diameter (m = 4) and by m."""
    out: Curve = {"d": _floats(study.scale.ds), "m": _floats(study.scale.ms)}
    out["by d"] = [_second(study, 4, d) for d in study.scale.ds]
    out["by m"] = [_second(study, m, study.scale.setting.diameter) for m in study.scale.ms]
    return out


def _second(study: Study, m: int, d: int) -> float:
    setting = replace(study.scale.setting, diameter=d, releases=2)
    series = Series("m-distinct", m, diameter(d))
    first, second = snapshots(setting, study.pool)
    series.publish(first)
    start = time.perf_counter()
    series.publish(second)
    return time.perf_counter() - start


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


def beside(figures: dict[str, Curve]) -> dict[str, float]:
    """Our figures for what the paper's text states."""
    return {
        "vulnerable share, 2-diversity, 20 releases": figures["3a"]["l = 2"][-1],
        "invalid records of m-Invariance at d = 1": figures["4b"]["m = 4"][0],
        "counterfeits at the default setting": max(figures["7"]["m = 4, default"]),
        "counterfeits per group, m = 8, d = 5, 3,000 deleted": figures["8b"]["worst release"][-1],
    }
