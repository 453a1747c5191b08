"""Series: the second release of a census (10 % left, 25 % new, 25 % changed), by the engine and with a store."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.compare_cases.measure import Taken, worded
from reticent.engine import publisher
from reticent.engine.rng import Rng

if TYPE_CHECKING:
    from pathlib import Path

    from reticent.policy import Policy

METHODS = ("m-distinct", "m-distinct*", "m-invariance")
ROWS = 20_000


def prepare(folder: Path, *, quick: bool) -> None:
    """Write two snapshots, which one version generates for both."""
    from bench.series import setting
    from reticent.reproduce.census_series import SIZES, census, snapshots

    rows = ROWS // 10 if quick else ROWS
    for place, table in enumerate(snapshots(setting(rows), census(rows * 3 // 2, 1))):
        columns = {"person": pa.array(table.persons).cast(pa.string())}
        columns |= {name: pa.array(table.quasi[:, i]) for i, name in enumerate(list(SIZES)[:4])}
        columns["occupation"] = pa.array(table.values).cast(pa.string())
        pq.write_table(pa.table(columns), folder / f"{place}.parquet")


def policy_of(method: str) -> Policy:
    """Return a policy with m = 4 and an update diameter of ten where values change."""
    updates = {"updates": {"diameter": 10}} if method.startswith("m-distinct") else {}
    columns: dict[str, Any] = {
        "person": "identifier",
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
        **dict.fromkeys(("gender", "marital_status", "education"), "quasi"),
        "occupation": {"role": "sensitive", **updates},
    }
    risk = {"max_risk": 0.5} if method.startswith("m-distinct") else {}
    rules = {"version": 1, "person": "person", "columns": columns, "series": {"method": method, "m": 4, **risk}}
    return worded(rules, "series", "model")


class Alone:
    """Both releases by the engine alone."""

    def __init__(self, data: Path, scratch: Path, method: str) -> None:
        self.method, self.policy, self.folder = method, policy_of(method), scratch / "series"
        self.tables = [pq.read_table(data / f"{place}.parquet") for place in (0, 1)]

    def __call__(self) -> Taken:
        """Run the first and the second release."""
        taken, engine = Taken(), publisher(self.policy, "series", self.method, rng=Rng.from_seed(1))
        for name, table in zip(("first", "second"), self.tables, strict=True):
            engine.push(table)
            (release,) = taken.part(name, engine.cut)
            taken.figures[f"counterfeits, {name}"] = float(release.metrics.get("counterfeits", 0))
        return taken


class Kept(Alone):
    """Both releases with a store, the verifier and the folders."""

    def __call__(self) -> Taken:
        """Run the first and the second release."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        taken = Taken()
        for name, table in zip(("first", "second"), self.tables, strict=True):
            taken.part(name, partial(republish, table, self.policy, self.folder / "store.db", self.folder / name))
        return taken


def republish(table: pa.Table, policy: Policy, store: Path, folder: Path) -> None:
    """Publish the next release of the series in a store."""
    try:
        from reticent.stateful import Series
    except ImportError:
        from reticent.series import republish as former

        former(table, policy, store, folder)
        return
    Series(store, policy).publish(table, folder)


class Core:
    """The groups of the second release alone; l-diversity, which no series offers, has only this."""

    def __init__(self, data: Path, scratch: Path, method: str) -> None:
        from bench.series import setting
        from reticent.reproduce.census_series import census, snapshots

        del data, scratch
        self.method, self.snapshots = method, list(snapshots(setting(ROWS), census(ROWS * 3 // 2, 1)))

    def __call__(self) -> Taken:
        """Run the first and the second release."""
        from reticent.reproduce.census_series import Series, diameter

        taken, series = Taken(), Series(self.method, 4, diameter(10))
        for name, table in zip(("first", "second"), self.snapshots, strict=True):
            grouping = taken.part(name, partial(series.publish, table))
            taken.figures[f"counterfeits, {name}"] = int(grouping.counterfeits.sum())
        return taken


MEASURES = {
    f"{method}, {where}": partial(kind, method=method)
    for method in METHODS
    for where, kind in (("engine", Alone), ("on a store", Kept))
} | {"l-diversity, core": partial(Core, method="l-diversity")}
