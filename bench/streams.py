"""Streams: cost of a record on codes, through Arrow, end to end with the durable store, and one at a time.

Figures are the best of several runs; `cpu` is processor time, which other work on the machine affects less.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from reticent._core import stream, veil
from reticent.connectors.stream import Stream
from reticent.datasets import adult, feed
from reticent.datasets.writers import csv_text
from reticent.engine import publisher_class
from reticent.engine.rng import Rng
from reticent.engine.stream.values import inclusion_probabilities
from reticent.policy import Policy

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "reference"))

DOMAIN, L = 30, 10
COLUMNS = {
    "admitted": "plain",
    "patient_id": "identifier",
    "household": "identifier",
    "age": {"role": "quasi", "level": 1, "hierarchy": {"intervals": [[5, 15, 30, 45, 60, 75, 85], [15, 45, 75]]}},
    "sex": "quasi",
    "region": "quasi",
    "postcode": {"role": "quasi", "level": 3, "hierarchy": {"prefix": 5}},
    "admission_route": "quasi",
    "diagnosis": "sensitive",
}


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Return all figures of the streams."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_prior(folder)
        return {
            "codes": _codes(100_000 if quick else 1_000_000),
            "arrow": _arrow(folder, 50_000 if quick else 1_000_000),
            "end_to_end": _end_to_end(folder, 50_000 if quick else 1_000_000),
            "single_push": _single(folder, 500 if quick else 10_000),
            "castle": _castle(folder, 20_000 if quick else 200_000),
            "memory": _memory(1_000_000 if quick else 50_000_000),
            "adult": _adult(folder, quick=quick),
        }


def _best(work: Callable[[], int], times: int = 3) -> dict[str, float]:
    """Return microseconds per record and records per second, in wall and processor time."""
    wall = cpu = float("inf")
    for _ in range(times):
        start, busy = time.perf_counter(), time.process_time()
        rows = work()
        wall = min(wall, (time.perf_counter() - start) / rows)
        cpu = min(cpu, (time.process_time() - busy) / rows)
    return {"us_per_record": wall * 1e6, "cpu_us_per_record": cpu * 1e6, "records_per_second": 1 / wall}


class _Codes:
    """A stream of codes: 30 values, the most frequent just below 1/10, a tenth of the records by returning persons."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(1)
        share = np.minimum(rng.dirichlet(np.ones(DOMAIN) * 3), 0.09)
        self.counts = np.maximum(1, share / share.sum() * 10_000).astype(int).tolist()
        self.rng, self.n, self.at = rng, n, 0

    def take(self) -> tuple[Any, ...]:
        share = np.array(self.counts) / sum(self.counts)
        codes = self.rng.choice(DOMAIN, size=self.n, p=share).astype(np.int32)
        quasi = self.rng.integers(0, 1 << 60, self.n).astype(np.uint64)
        seqs = np.arange(self.at, self.at + self.n, dtype=np.uint64)
        back = self.rng.random(self.n) < 0.1
        persons = np.where(back, self.rng.integers(0, max(self.at, 1), self.n), seqs).astype(np.uint64)
        self.at += self.n
        return seqs, quasi, persons, codes

    def delay_free(self) -> Any:
        rank = np.arange(DOMAIN, dtype=np.uint32)
        weights = inclusion_probabilities(self.counts, L)
        return stream.DelayFree(
            key=bytes(32), shard=0, l=L, pool="matched", weights=weights, rank=rank, retire_after=1_000_000, literal=0
        )

    def people(self) -> Any:
        segments = veil.segments_of_counts(np.array([self.counts], dtype=np.uint64), l=L)
        orders = veil.random_permutations(DOMAIN, count=64, seed=bytes(32))
        kernel = veil.Kernel.from_stays(
            np.full(DOMAIN, veil.SLOT_LENGTH // 2, dtype=np.uint64), within=0, parents=np.zeros(DOMAIN, dtype=np.uint32)
        )
        return veil.People(veil.Veil(key=bytes(32), l=L, segments=segments, permutations=orders, kernel=kernel))


class _Quick(random.Random):
    """Python's generator instead of ChaCha20, so that randomness does not slow down the reference implementation."""

    def at(self, seq: int) -> None:
        pass

    def index(self, n: int) -> int:
        return int(self.random() * n)

    below = index


def _codes(n: int) -> dict[str, Any]:
    from stream_reference import DelayFreeReference

    source = _Codes(n)
    free, people = source.delay_free(), source.people()
    rows = np.zeros(n, dtype=np.uint32)

    def native(push: Callable[..., Any]) -> dict[str, float]:
        parts = iter([source.take() for _ in range(3)])

        def work() -> int:
            push(*next(parts))
            return n

        return _best(work)

    records = list(zip(*(column[: min(n, 50_000)].tolist() for column in source.take()), strict=True))
    draw = _Quick(1)
    reference = DelayFreeReference(draw, draw, L, "matched", inclusion_probabilities(source.counts, L).tolist())

    def slowly() -> int:
        for seq, quasi, _, code in records:
            reference.push(seq, quasi, code)
        return len(records)

    figures: dict[str, Any] = {
        "delay_free": native(lambda seqs, quasi, _, codes: free.push(seqs, quasi, codes)),
        "veil": native(lambda _, __, who, codes: people.take(who, who, rows, codes)),
        "delay_free_twin": _best(slowly, 1),
    }
    figures["delay_free_times_the_twin"] = (
        figures["delay_free_twin"]["cpu_us_per_record"] / figures["delay_free"]["cpu_us_per_record"]
    )
    figures["paper_us_per_record"] = 37.0
    return figures


def _policy(folder: Path, **settings: Any) -> Policy:
    rules = {"version": 1, "person": "patient_id", "columns": COLUMNS, "privacy": {"l": L}}
    prior = {"file": "prior.csv", "by": ["sex", "age"], "kernel": {"file": "kernel.csv"}}
    return Policy.from_dict(rules | {"prior": prior, "stream": settings}, base=folder)


def _write_prior(folder: Path) -> None:
    for name, table in (("prior", feed.strata()), ("kernel", feed.kernel())):
        (folder / f"{name}.csv").write_text(csv_text(table))


def _publisher(folder: Path, method: str, **settings: Any) -> Any:
    return publisher_class("stream", method)(_policy(folder, method=method, **settings), rng=Rng.fresh())


def _arrow(folder: Path, n: int) -> dict[str, Any]:
    table = feed.generate(n, seed=1)
    table = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names}).combine_chunks()
    figures = {}
    for method in ("delay-free", "veil"):
        publisher = _publisher(folder, method)

        def push(publisher: Any = publisher) -> int:
            for start in range(0, n, 50_000):
                publisher.push(table.slice(start, 50_000))
            return n

        figures[method] = _best(push)
    return figures


def _end_to_end(folder: Path, n: int) -> dict[str, Any]:
    pacsv.write_csv(feed.generate(n, seed=1), folder / "feed.csv")
    policy = _policy(folder)
    number = iter(range(100))

    def work() -> int:
        at = next(number)
        with Stream(policy, store=folder / f"store_{at}.db") as running:
            return running.run(str(folder / "feed.csv"), str(folder / f"out_{at}.ndjson")).records.published

    figures: dict[str, Any] = _best(work, 2)
    figures["output_bytes_per_record"] = (folder / "out_0.ndjson").stat().st_size / n
    return figures


def _single(folder: Path, n: int) -> dict[str, Any]:
    """Push a record at a time through the public interface, Arrow in and a Release out."""
    table = feed.generate(n + 200, seed=2)
    table = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names}).combine_chunks()
    figures = {}
    for method in ("delay-free", "veil"):
        publisher = _publisher(folder, method)
        batches = [table.slice(i, 1) for i in range(n + 200)]
        times = []
        for batch in batches:
            start = time.perf_counter()
            publisher.push(batch)
            times.append(time.perf_counter() - start)
        kept = np.array(times[200:]) * 1e6
        figures[method] = {f"p{q}_us": float(np.percentile(kept, q)) for q in (50, 90, 99)}
    return figures


def _castle(folder: Path, n: int) -> dict[str, Any]:
    table = feed.generate(n, seed=3).drop_columns(["admitted"])
    columns = {name: role for name, role in COLUMNS.items() if name != "admitted"}
    policy = Policy.from_dict(
        {
            "version": 1,
            "person": "patient_id",
            "columns": columns,
            "privacy": {"k": 10},
            "stream": {"method": "castle", "delta": 1000},
        },
        base=folder,
    )
    figures: dict[str, Any] = {"delta": 1000, "k": 10, "beta": policy.stream.beta}

    def through() -> int:
        publisher = publisher_class("stream", "castle")(policy, rng=Rng.fresh())
        for start in range(0, n, 50_000):
            publisher.push(table.slice(start, 50_000))
        publisher.close()
        figures["information_loss"] = publisher.metrics["information_loss"]  # type: ignore[attr-defined]
        return n

    figures |= {"arrow": _best(through, 1), "codes": _best(_castle_codes(n), 2)}
    return figures


def _castle_codes(n: int) -> Callable[[], int]:
    rng = np.random.default_rng(5)
    leaves = rng.integers(0, 16, (n, 4)).astype(np.uint32)
    numbers = rng.integers(0, 90, (n, 1)).astype(np.float64)
    seqs, values = np.arange(n, dtype=np.uint64), rng.integers(0, 60, n).astype(np.uint32)
    tables = [list(range(16)), [i // 4 for i in range(16)], [0] * 16]
    losses = [[0.0] * 16, [3 / 15] * 4, [1.0]]

    def work() -> int:
        settings = {"k": 10, "l": 1, "delta": 1000, "beta": 50, "mu": 100, "reuse": 256}
        core = stream.Castle(key=bytes(32), shard=0, categories=4, numbers=1, **settings)
        for attribute in range(4):
            core.set_hierarchy(attribute, tables, losses)
        core.push(seqs, seqs, values, leaves, numbers)
        core.close()
        return n

    return work


def _memory(n: int) -> dict[str, Any]:
    """Return resident memory during a long stream with a tenth of its records by returning persons."""
    figures: dict[str, Any] = {"records": n}
    step = min(500_000, n // 2)
    for name in ("delay_free", "veil"):
        source = _Codes(step)
        free, people, rows = source.delay_free(), source.people(), np.zeros(step, dtype=np.uint32)
        seen, start = [], time.perf_counter()
        for _ in range(n // step):
            seqs, quasi, who, codes = source.take()
            people.take(who, who, rows, codes) if name == "veil" else free.push(seqs, quasi, codes)
            seen.append(_resident())
        tenth = max(1, len(seen) // 10)
        figures[name] = {
            "mb_after_a_tenth": seen[tenth - 1],
            "mb_at_the_end": seen[-1],
            "state_bytes": len(people.to_bytes() if name == "veil" else free.snapshot()),
            "persons": len(people),
            "open_groups": free.totals().open,
            "seconds": time.perf_counter() - start,
        }
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def _resident() -> float:
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _adult(folder: Path, *, quick: bool) -> dict[str, Any] | str:
    """Return SAU with its limit, the prior from the first 2,000 records; needs the Adult data in RETICENT_DATA."""
    where = os.environ.get("RETICENT_DATA")
    if quick or not where:
        return "not run: set RETICENT_DATA to the folder that holds adult/"
    table = adult.load_stream(Path(where) / "adult")
    column = table.column(adult.STREAM_SENSITIVE)
    past = dict.fromkeys(column.unique().to_pylist(), 0)
    for value in column.slice(0, 2000).to_pylist():
        past[value] += 1
    pacsv.write_csv(pa.table({"value": list(past), "count": list(past.values())}), folder / "adult_prior.csv")
    roles = dict.fromkeys(adult.STREAM_QUASI, "quasi") | {adult.STREAM_SENSITIVE: "sensitive"}
    figures: dict[str, Any] = {}
    for l in (5, 10, 15, 20, 25):
        rules = {"version": 1, "columns": roles, "prior": {"file": "adult_prior.csv"}}
        policy = Policy.from_dict(rules | {"stream": {"method": "delay-free", "l": l}}, base=folder)
        publisher = publisher_class("stream", "delay-free")(policy, rng=Rng.from_seed(1))
        publisher.push(table)
        metrics = publisher.metrics
        figures[f"delay-free l={l}"] = {"sau": metrics["sau"], "sau_limit": metrics["sau_limit"]}
    return figures
