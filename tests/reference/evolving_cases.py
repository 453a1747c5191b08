"""Tables and policies for the tests of evolving tables."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.policy import Policy
from reticent.release import Ledger, LedgerEntry, Release

METHODS = ("veil", "indexed", "enc", "encc", "eac", "red")
DOMAIN = 40
FILES = Path(tempfile.mkdtemp(prefix="reticent-evolving-"))
atexit.register(shutil.rmtree, FILES, ignore_errors=True)


def prior(**settings) -> dict:
    """A prior of the values, with a kernel under which every value may follow every other."""
    values = [f"v{v:02d}" for v in range(DOMAIN)]
    (FILES / "prior.csv").write_text(
        "value,count\n" + "".join(f"{v},{10_000 // (i + 8)}\n" for i, v in enumerate(values))
    )
    steps = [(v, w, 0.4 if v == w else 0.6 / (DOMAIN - 1)) for v in values for w in values]
    (FILES / "kernel.csv").write_text("value,next,probability\n" + "".join(f"{v},{w},{p:.9f}\n" for v, w, p in steps))
    return {"file": str(FILES / "prior.csv"), "kernel": {"file": str(FILES / "kernel.csv")}, **settings}


def policy(method: str, l: int, columns=None, **more) -> Policy:
    columns = columns or {
        "id": "identifier",
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
        "zip": "quasi",
        "ward": "plain",
        "ill": "sensitive",
    }
    columns |= {"visit": "identifier"} if "record" in more else {}
    rules = {"version": 1, "person": "id", "columns": columns, "evolving": {"method": method, "l": l, **more}}
    return Policy.from_dict(rules | ({"prior": prior()} if method == "veil" else {}))


def build(method: str, l: int, seed: int = 1, **more):
    return publisher(policy(method, l, **more), "evolving", method, rng=Rng.from_seed(seed))


def table(ids, values, *, zips=None) -> pa.Table:
    """One row per id; by default the zip is the id, so that quasi-identifiers name the person."""
    ids = list(ids)
    return pa.table(
        {
            "id": pa.array([str(i) for i in ids], pa.string()),
            "age": pa.array([20 + i % 60 for i in ids], pa.int64()),
            "zip": pa.array([f"z{z}" for z in (zips or ids)], pa.string()),
            "ward": pa.array(["w"] * len(ids), pa.string()),
            "ill": pa.array([f"v{v:02d}" for v in values], pa.string()),
        }
    )


def enter(ledger: Ledger, release: Release, members) -> None:
    """Writes a publication into a ledger, as the gate does."""
    entry = LedgerEntry(len(ledger) + 1, "", release.policy_hash, release.method, release.records, "")
    ledger.record(entry, *members)


def skewed(rng: np.random.Generator, n: int, domain: int, flat: float = 8.0) -> np.ndarray:
    weights = 1 / (np.arange(domain) + flat)
    return rng.choice(domain, n, p=weights / weights.sum())


def churn(method: str, *, n: int, l: int, domain: int, publications: int, seed: int):
    """Publications of a table that loses 10% and gains 10% between any two; yields release, engine, true values."""
    rng = np.random.default_rng(seed)
    engine = build(method, l, seed)
    values = dict(enumerate(skewed(rng, n, domain).tolist()))
    engine.insert(table(values, values.values()))
    live, following = list(values), n
    for number in range(publications):
        if number:
            gone = set(rng.choice(live, n // 10, replace=False).tolist())
            engine.delete([str(i) for i in sorted(gone)])
            fresh = dict(zip(range(following, following + n // 10), skewed(rng, n // 10, domain).tolist(), strict=True))
            following += n // 10
            values |= fresh
            engine.insert(table(fresh, fresh.values()))
            live = [i for i in live if i not in gone] + list(fresh)
        (release,) = engine.cut(again=True)
        yield release, engine, values
