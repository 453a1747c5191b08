"""Audit: seconds for a large release, and the success of the attacks on the faithful methods."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bench.join_or_open import Effort, join_or_open
from reticent.api import anonymize
from reticent.audit.attack import Evidence, Outcome
from reticent.audit.attack.outcome import REFUTE_DEVIATIONS
from reticent.audit.attack.subtraction import subtraction
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.policy import Policy
from reticent.report import AuditInputs, audit
from reticent.verify.published import read_release, text_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

DOMAIN, L, TUPLES = 30, 10, 1000
FULL = Effort(tuples=TUPLES)


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - the runner's contract
    """Return all figures; frequencies in the streams fall gently, as those of diagnoses (flat: not at all)."""
    seeds, more = range(1 if quick else 6), range(1 if quick else 12)
    return {
        "large_release": _large(50_000 if quick else 1_000_000),
        "join_or_open": {
            "delay-free, uniform pool": _stream("delay-free", seeds, sloping=True, pool="uniform"),
            "delay-free, uniform pool, flat stream": _stream("delay-free", seeds, sloping=False, pool="uniform"),
            "delay-free, matched pool": _stream("delay-free", more, sloping=True, pool="matched"),
        },
        "subtraction": {name: _evolving(name, 600 if quick else 2000) for name in ("enc",)},
    }


def _large(rows: int) -> dict[str, float]:
    """Return wall and processor time of a full audit of a release in two tables, without and with its original."""
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "id": pa.array(np.arange(rows)).cast(pa.string()),
            "age": rng.integers(0, 100, rows),
            "zip": rng.integers(10_000, 99_999, rows),
            "sex": rng.choice(["f", "m"], rows),
            "ill": pa.array([f"v{v:02d}" for v in rng.integers(0, 40, rows)]),
        }
    )
    columns = {"id": "identifier", "age": "quasi", "zip": "quasi", "sex": "quasi", "ill": "sensitive"}
    policy = Policy.from_dict({"version": 1, "columns": columns, "privacy": {"l": 10}, "table": {"method": "anatomy"}})
    release = anonymize(table, policy, seed=1)
    out: dict[str, float] = {"rows": rows}
    for name, material in (("alone", AuditInputs(seed=1)), ("with_original", AuditInputs(original=table, seed=1))):
        wall, cpu = time.perf_counter(), time.process_time()
        audit([release], policy, material)
        out[f"{name}_seconds"] = time.perf_counter() - wall
        out[f"{name}_cpu_seconds"] = time.process_time() - cpu
    return out


def _stream(method: str, seeds: range, effort: Effort = FULL, *, sloping: bool, **more: Any) -> dict[str, Any]:
    """Return the accuracy on independent streams: mean, standard error, and coverage of the intervals."""
    shares = 1 / (np.arange(DOMAIN) + 8.0) if sloping else np.ones(DOMAIN)
    start = time.process_time()
    outcomes = [_attacked(method, seed, shares / shares.sum(), effort, more) for seed in seeds]
    accuracy = [outcome.accuracy for outcome in outcomes]
    out = {
        "accuracy": accuracy,
        "mean": float(np.mean(accuracy)),
        "standard_error": float(np.std(accuracy, ddof=1) / len(outcomes) ** 0.5) if len(outcomes) > 1 else None,
        "chance": 1 / L,
        "design_effect": float(np.mean([outcome.design for outcome in outcomes])),
        "cpu_seconds_each": (time.process_time() - start) / len(outcomes),
    }
    return {
        **out,
        "refuted_had_it_claimed_chance": sum(outcome.bounds(REFUTE_DEVIATIONS)[0] > 1 / L for outcome in outcomes),
    }


def _attacked(method: str, seed: int, shares: NDArray[np.float64], effort: Effort, more: dict[str, Any]) -> Outcome:
    """Attack one stream with its own key; the auditor's random choices are independent of the stream's."""
    names = [f"v{v:02d}" for v in range(DOMAIN)]
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{name},{round(share * 100_000)}\n" for name, share in zip(names, shares, strict=True)]
        (Path(folder) / "prior.csv").write_text("value,count\n" + "".join(lines))
        rules = {"version": 1, "person": "id", "prior": {"file": "prior.csv"}}
        columns = {"id": "identifier", "age": "quasi", "ill": "sensitive"}
        stream = {"method": method, "l": L, **more}
        policy = Policy.from_dict(rules | {"columns": columns, "stream": stream}, base=folder)
        people = [str(i) for i in range(TUPLES)]
        ill = [names[v] for v in np.random.default_rng(seed).choice(DOMAIN, TUPLES, p=shares)]
        table = pa.table({"id": people, "age": people, "ill": ill})
        engine = publisher(policy, "stream", method, rng=Rng.from_seed(seed))
        seen = tuple(read_release(release, "") for release in [*engine.push(table), *engine.close()])
        rng = np.random.default_rng([seed, 1])
        outcome = join_or_open(Evidence(seen, policy, text_table(table), rng=rng), effort)
    if outcome is None:
        raise RuntimeError("the attack does not apply to its own benchmark")
    return outcome


def _evolving(method: str, rows: int) -> dict[str, float]:
    """Audit five publications, with a tenth deleted and a tenth inserted between two."""
    rng = np.random.default_rng(3)
    shares = 1 / (np.arange(40) + 8.0)
    age = {"role": "quasi", "hierarchy": {"intervals": [10, 20]}}
    columns = {"id": "identifier", "age": age, "zip": "quasi", "ill": "sensitive"}
    policy = Policy.from_dict(
        {"version": 1, "person": "id", "columns": columns, "evolving": {"method": method, "l": L}}
    )
    engine: Any = publisher(policy, "evolving", method, rng=Rng.from_seed(1))

    def batch(first: int, many: int) -> pa.Table:
        ids = [str(i) for i in range(first, first + many)]
        ill = [f"v{v:02d}" for v in rng.choice(40, many, p=shares / shares.sum())]
        ages = [20 + i % 60 for i in range(first, first + many)]
        return pa.table({"id": ids, "age": ages, "zip": ids, "ill": ill})

    engine.insert(batch(0, rows))
    live, following, releases = list(range(rows)), rows, []
    for number in range(5):
        if number:
            gone = set(rng.choice(live, rows // 10, replace=False).tolist())
            engine.delete([str(i) for i in sorted(gone)])
            engine.insert(batch(following, rows // 10))
            live = [i for i in live if i not in gone] + list(range(following, following + rows // 10))
            following += rows // 10
        releases += engine.cut(again=True)
    outcome = subtraction(Evidence(tuple(read_release(release, "") for release in releases), policy))
    return {} if outcome is None else {"persons": outcome.tried, "accuracy": outcome.accuracy, **outcome.figures}
