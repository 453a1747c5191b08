"""Evolving tables: delete a tenth, insert a tenth and publish, in memory and with a store."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.compare_cases.measure import Taken, worded
from reticent.engine import publisher
from reticent.engine.rng import Rng

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from reticent.policy import Policy

L = 10
SIZES = {"indexed": 50_000, "encc": 50_000, "enc": 20_000, "red": 20_000, "eac": 10_000}
METHODS = tuple(SIZES)


def prepare(folder: Path, *, quick: bool) -> None:
    """Write the synthetic census, which one version generates for both."""
    from reticent.datasets import census

    share = 10 if quick else 1
    for method, size in SIZES.items():
        pq.write_table(census.generate((size + size // 10) // share, seed=1), folder / f"{method}.parquet")


def policy_of(method: str) -> Policy:
    """Return a policy: occupation is sensitive, all other columns are quasi-identifiers."""
    quasi = ("gender", "age", "quarter_of_birth", "marital_status", "race", "birthplace", "education")
    columns: dict[str, Any] = {"person_id": "identifier", **dict.fromkeys(quasi, "quasi"), "occupation": "sensitive"}
    columns["age"] = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}}
    rules = {"version": 1, "person": "person_id", "columns": columns, "evolving": {"method": method, "l": L}}
    return worded(rules, "evolving", "strategy")


class Changed:
    """One table with its changes, in memory."""

    def __init__(self, data: Path, scratch: Path, method: str) -> None:
        del scratch
        self.method, self.policy = method, policy_of(method)
        self.table = pq.read_table(data / f"{method}.parquet")

    def __call__(self) -> Taken:
        """Load, publish, delete, insert."""
        engine = publisher(self.policy, "evolving", self.method, rng=Rng.from_seed(1))
        return changed(self.table, engine, engine.cut)


class Kept(Changed):
    """The same with a store and the verifier; writing a publication is included."""

    def __init__(self, data: Path, scratch: Path, method: str) -> None:
        super().__init__(data, scratch, method)
        self.folder = scratch / "kept"

    def __call__(self) -> Taken:
        """Load, publish, delete, insert."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        try:
            from reticent.stateful import EvolvingTable
        except ImportError:
            from reticent.engine.evolving.durable import EvolvingTable
        EvolvingTable.create(self.folder / "store.db", self.policy)
        with EvolvingTable.open(self.folder / "store.db") as table:
            return changed(self.table, table, lambda: table.publish(self.folder / "release"))


def changed(table: pa.Table, engine: Any, publish: Callable[[], Any]) -> Taken:
    """Run the changes, shared by both cases."""
    taken, size = Taken(), table.num_rows * 10 // 11
    gone = pa.array(np.random.default_rng(2).permutation(size)[: size // 10])
    ids = table.column("person_id").take(gone)
    taken.part("load", lambda: engine.insert(table.slice(0, size)))
    taken.part("publish", publish)
    taken.part("delete", lambda: engine.delete(ids))
    taken.part("insert", lambda: engine.insert(table.slice(size)))
    return taken


MEASURES = {
    f"{method}, {where}": partial(kind, method=method)
    for method in METHODS
    for where, kind in (("in memory", Changed), ("on a store", Kept))
}
