"""Release each world with every method that hides values among others, and open it as a recipient."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from bench.reading.worlds import World
from reticent import _core
from reticent.cli import app
from reticent.engine.veil.prior.kernel import fit_kernel
from reticent.policy import Policy
from reticent.publication import table as tables
from reticent.read.load import Parts, shape_of
from reticent.read.received import Received, read

ORDERS = 64
LEAST = 50
"""Past records of a stratum, per candidate."""
EVERYBODY = ("*", "*")


@dataclass(frozen=True)
class Opened:
    """A release, and its true records."""

    received: Received
    true_records: pa.Table


def policy(world: World, **more: Any) -> Policy:
    columns = dict.fromkeys(world.fields, "quasi") | {world.hidden: "sensitive"}
    return Policy.from_dict({"version": 1, "columns": columns, "privacy": {"l": world.l, "suppression": 0.05}} | more)


def anatomy(world: World, seed: int, place: Path) -> Opened:
    data = _eligible(world)
    release = tables.publish(data, policy(world), method="anatomy", seed=seed).release
    release.to_dir(place / "anatomy")
    return Opened(read(place / "anatomy"), data)


def _eligible(world: World) -> pa.Table:
    """Return the records without values too frequent for l, so that nothing must be suppressed."""
    data = world.now.select([*world.fields, world.hidden])
    values = data[world.hidden].to_pylist()
    labels, counts = np.unique(values, return_counts=True)
    fine = counts * world.l <= counts.sum() * 0.98
    return data.filter(pa.array(np.isin(values, labels[fine])))


def generalized(world: World, seed: int, place: Path) -> Opened:
    data = world.now.select([*world.fields, world.hidden])
    whole = {name: {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}} for name in world.fields[:1]}
    columns = {**dict.fromkeys(world.fields, "quasi"), **whole, world.hidden: "sensitive"}
    rules = {"version": 1, "columns": columns, "privacy": {"k": 5, "suppression": 0.05}}
    release = tables.publish(data, Policy.from_dict(rules), method="local", seed=seed).release
    release.to_dir(place / "generalized")
    return Opened(read(place / "generalized"), data)


def delay_free(world: World, seed: int, place: Path) -> Opened:
    data = _eligible(world)
    pc.write_csv(data, place / "feed.csv")
    labels, counts = np.unique(world.past[world.hidden].to_pylist(), return_counts=True)
    present = np.isin(labels, data[world.hidden].to_pylist())
    lines = [f"{label},{count}" for label, count in zip(labels[present], counts[present], strict=True)]
    (place / "prior.csv").write_text("value,count\n" + "\n".join(lines) + "\n")
    rules = policy(world, stream={"method": "delay-free"}, prior={"file": "prior.csv"}).to_dict()
    (place / "policy.json").write_text(json.dumps(rules))
    words = [
        "stream",
        "feed.csv",
        "-p",
        "policy.json",
        "--store",
        "feed.db",
        "--to",
        "feed.ndjson",
        "--seed",
        str(seed),
    ]
    words = [str(place / word) if "." in word else word for word in words]
    app(words, standalone_mode=False)
    return Opened(read(place / "feed.ndjson"), data)


def veil(world: World, seed: int, place: Path) -> Opened:  # noqa: ARG001 - same signature as the others
    """Release first events with the prior of their stratum, and later events of linked persons with a kernel."""
    data = world.now
    labels = sorted(set(world.past[world.hidden].to_pylist()))
    full = Counter(_rows(world.past, world.rows))
    strata = [EVERYBODY, *sorted(cells for cells, number in full.items() if number >= LEAST * world.l)]
    counts = _counts(world.past, world, labels, strata)
    segments = _core.veil.segments_of_counts(counts, l=world.l)
    orders = _core.veil.random_permutations(len(labels), count=ORDERS, seed=bytes(32))
    kernel, document = _kernel(world, labels, counts[0] / counts[0].sum())
    core = _core.veil.Veil(key=_key(seed), l=world.l, segments=segments, permutations=orders, kernel=kernel)
    at = {cells: row for row, cells in enumerate(strata)}
    rows = np.array([at.get(cells, 0) for cells in _rows(data, world.rows)], dtype=np.uint32)
    codes = {label: code for code, label in enumerate(labels)}
    values = np.array([codes.get(value, -1) for value in data[world.hidden].to_pylist()], dtype=np.int32)
    persons = _persons(data, world)
    seen = _core.veil.People(core).add_events(persons, persons, rows, values)
    rows, lost = seen.strata.astype(np.int64), ~seen.offered
    omission_rates = np.bincount(rows[lost], minlength=len(strata)) / np.maximum(
        np.bincount(rows, minlength=len(strata)), 1
    )
    about = {"l": world.l, "sensitive": world.hidden, "domain": labels, "segments": segments.tolist()}
    about |= {
        "permutations": orders.tolist(),
        "kernel": document,
        "omission_rate": omission_rates.tolist(),
        "omission_rate_epsilon": None,
    }
    columns = {name: data[name] for name in world.fields} | {"row": pa.array(rows)}
    columns |= {"event": pa.array(seen.events.astype(np.int64)), "person": pa.array(persons.astype(np.int64))}
    columns |= {f"{world.hidden}_{i + 1}": pa.array(np.array(labels)[seen.candidates[:, i]]) for i in range(world.l)}
    table = pa.table(columns)
    if world.name == "feed":  # unlinked, as streams are: first events only
        first = pa.array(seen.events == 0)
        table, data = table.drop_columns(["person"]).filter(first), data.filter(first)
    parts = Parts("veil", "stream", {"data": table}, about)
    return Opened(Received(shape_of(parts, None), parts, world.hidden), data)


def _rows(table: pa.Table, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def _counts(past: pa.Table, world: World, labels: list[str], strata: list[tuple[str, ...]]) -> np.ndarray:
    """Return counts of the past by stratum, shrunk slightly toward the whole; rare values are omitted."""
    code, row = {v: i for i, v in enumerate(labels)}, {s: i for i, s in enumerate(strata)}
    counts = np.zeros((len(strata), len(labels)))
    for stratum, value in zip(_rows(past, world.rows), past[world.hidden].to_pylist(), strict=True):
        counts[row.get(stratum, 0), code[value]] += 1
    counts[0] = counts.sum(axis=0)
    counts += 20 * counts.sum(axis=0) / counts.sum()
    counts[counts < 0.2] = 0
    return np.rint(counts * 1024).astype(np.uint64)


def _kernel(world: World, labels: list[str], shares: np.ndarray) -> tuple[Any, dict[str, Any]]:
    """Return the kernel of the past's persons with all transitions; an unused one if no person returns."""
    one, parents = _core.veil.SLOT_LENGTH, (np.arange(len(labels)) // 8).astype(np.uint32)
    stay, within = np.full(len(labels), 0.5), 0.5
    if world.person is not None:
        who = np.unique(world.past[world.person].to_pylist(), return_inverse=True)[1]
        order = np.argsort(who, kind="stable")
        value = np.searchsorted(np.array(labels), world.past[world.hidden].to_pylist())[order]
        again = np.flatnonzero(np.diff(who[order]) == 0)
        rng = np.random.default_rng(1)
        fitted = fit_kernel(value[again], value[again + 1], parents, shares, epsilon=None, rng=rng)
        stay, within = fitted.stay, fitted.within
    stay, within = (stay * one).astype(np.uint64), int(within * one)
    document = {"stay": stay.tolist(), "within": within, "parents": parents.tolist()}
    return _core.veil.Kernel.from_stays(stay, within=within, parents=parents), document


def _key(seed: int) -> bytes:
    return seed.to_bytes(32, "little")


def _persons(data: pa.Table, world: World) -> np.ndarray:
    if world.person is None:
        return np.arange(data.num_rows, dtype=np.uint64)
    _, persons = np.unique(data[world.person].to_pylist(), return_inverse=True)
    return persons.astype(np.uint64)
