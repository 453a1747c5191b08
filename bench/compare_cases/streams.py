"""Streams: the same admissions through Arrow, from CSV to NDJSON with a store, and one by one.

Every version has delay-free; in place of the veil, an earlier version has sealed groups, its default.
"""

from __future__ import annotations

import shutil
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from bench.compare_cases.measure import Taken
from reticent.engine import publisher_class
from reticent.engine.rng import Rng
from reticent.errors import ReticentError
from reticent.policy import Policy

if TYPE_CHECKING:
    from pathlib import Path

ROWS, FIRST, SINGLES, L = 500_000, 200, 5_000, 10
COLUMNS = {
    "admitted": "plain",
    "patient_id": "identifier",
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
    **dict.fromkeys(("sex", "region"), "quasi"),
    "postcode": {"role": "quasi", "hierarchy": {"prefix": 5}},
    "admission_route": "quasi",
    "diagnosis": "sensitive",
}
LEVELS = {
    "age": {"role": "quasi", "level": 1, "hierarchy": {"intervals": [[5, 15, 30, 45, 60, 75, 85], [15, 45, 75]]}},
    "postcode": {"role": "quasi", "level": 3, "hierarchy": {"prefix": 5}},
}


def prepare(folder: Path, *, quick: bool) -> None:
    """Write admissions for both versions, without columns that the other version does not know."""
    from reticent.datasets import feed
    from reticent.datasets.writers import csv_text

    table = feed.generate(ROWS // 10 if quick else ROWS, 1)
    table = pa.table({name: table.column(name).cast(pa.string()) for name in COLUMNS}).combine_chunks()
    pq.write_table(table, folder / "feed.parquet")
    pc.write_csv(table, folder / "feed.csv")
    counted = table["diagnosis"].value_counts().to_pylist()
    # No value above 1/l of all, as delay-free requires.
    most = sum(one["counts"] for one in counted) // (2 * L)
    lines = [f"{one['values']},{min(one['counts'], most)}" for one in counted]
    (folder / "prior.csv").write_text("value,count\n" + "\n".join(lines) + "\n")
    (folder / "strata.csv").write_text(csv_text(feed.strata()))
    (folder / "kernel.csv").write_text(csv_text(feed.kernel()))


def policy_of(folder: Path, method: str) -> Policy:
    """Return a policy with ten candidates; an earlier version had sealed groups instead of the veil."""
    rules = {"version": 1, "person": "patient_id", "columns": COLUMNS}
    prior = {"file": "prior.csv"}
    try:
        now = rules | {"privacy": {"l": L}, "prior": prior, "stream": {"method": method}}
        if method == "veil":
            now["columns"] = COLUMNS | LEVELS
            now["prior"] = {"file": "strata.csv", "by": ["sex", "age"], "kernel": {"file": "kernel.csv"}}
        return Policy.from_dict(now, base=folder)
    except ReticentError:
        before = {"method": "sealed" if method == "veil" else method, "l": L, "prior": prior}
        return Policy.from_dict(rules | {"stream": before}, base=folder)


class Arrow:
    """The engine alone, in batches of 50,000."""

    method = "delay-free"

    def __init__(self, data: Path, scratch: Path) -> None:
        self.data, self.folder, self.policy = data, scratch / "streams", policy_of(data, self.method)
        self.table = pq.read_table(data / "feed.parquet").combine_chunks()

    def engine(self) -> Any:
        """Return a new engine."""
        return publisher_class("stream", self.policy.stream.method)(self.policy, rng=Rng.from_seed(1))

    def __call__(self) -> Taken:
        """Run all batches."""
        taken, engine = Taken(), self.engine()
        for start in range(0, self.table.num_rows, 50_000):
            taken.part("push", partial(engine.push, self.table.slice(start, 50_000)))
        return taken


class Singles(Arrow):
    """One record at a time: median and 99th percentile in seconds, after the start of a stream."""

    def __call__(self) -> Taken:
        """Push a few thousand records."""
        taken, engine, times = Taken(), self.engine(), []
        for at in range(FIRST + SINGLES):
            record = self.table.slice(at, 1)
            start = time.perf_counter()
            engine.push(record)
            times.append(time.perf_counter() - start)
        taken.seconds |= {"median": float(np.median(times[FIRST:])), "p99": float(np.quantile(times[FIRST:], 0.99))}
        return taken


class VeiledArrow(Arrow):
    """The same under the veil, or in sealed groups."""

    method = "veil"


class VeiledSingles(Singles):
    """The same under the veil, or in sealed groups."""

    method = "veil"


class Durable(Arrow):
    """From CSV to NDJSON, every batch on disk before it is sent."""

    def __call__(self) -> Taken:
        """Stream the whole file."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        taken, places = Taken(), (self.data / "feed.csv", self.folder / "store.db", self.folder / "out.ndjson")
        start = time.perf_counter()
        taken.part("processor", partial(stream, self.policy, *places))
        taken.seconds["clock"] = time.perf_counter() - start
        return taken


def stream(policy: Policy, source: Path, store: Path, sink: Path) -> None:
    """Run a stream with the interface of this version or of an earlier one."""
    try:
        from reticent.connectors.stream import Stream
    except ModuleNotFoundError:
        from reticent.connectors.runner import StreamRunner
        from reticent.connectors.runner.sink import File

        from reticent.store import Store

        with Store.open(store) as opened, StreamRunner(policy, opened, File(sink)) as runner:
            runner.run(str(source))
    else:
        with Stream(policy, store=store) as running:
            running.run(str(source), str(sink))


MEASURES = {
    "arrow": Arrow,
    "single push": Singles,
    "veil, arrow": VeiledArrow,
    "veil, single push": VeiledSingles,
    "csv to ndjson": Durable,
}
