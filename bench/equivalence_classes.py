"""Equivalence classes: the veil with k compared with `local` with k and l, one record per person.

Measured are the verifier's result, linkage, an informed attacker and counts. The prior comes from the first third, the
attacker's model from the second. The last third is published without a hint whose record is whose.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.attackers import World, _adult, _hospital
from bench.reading.queries import queries
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.informed_attacker import figures_of, update_beliefs
from reticent.audit.attack.linkage import linkage
from reticent.audit.attack.observations import observations_of
from reticent.datasets import adult
from reticent.engine.veil.prior.fit import fit
from reticent.engine.veil.prior.fitted_prior import write_prior
from reticent.policy import Policy
from reticent.publication import table as tables
from reticent.read.received import read as receive
from reticent.release import Release
from reticent.verify import verify
from reticent.verify.original.persons import Input
from reticent.verify.published import read_release, text_table

PERSON = "number"
K, L = 5, 3
QUESTIONS = 100


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - the runner's contract
    """Return the figures by data and method."""
    size = 3_000 if quick else 18_000
    with tempfile.TemporaryDirectory() as place:
        hospital = _hospital(size, Path(place), exact=True)
        hospital.table = _letters(hospital.table.drop_columns(["ward"]), hospital.sensitive)
        del hospital.columns["ward"]  # it discloses the diagnosis
        worlds = {"hospital": hospital}
        folder = adult.data_folder("adult.data")
        if folder is not None:
            worlds["adult"] = _adult(folder, size)
        return {title: _world(world, Path(place)) for title, world in worlds.items()}


def _letters(table: pa.Table, name: str) -> pa.Table:
    """Return the table with the first letter of every code: finer counts are too small at this size."""
    cells = pa.array([str(value)[:1] for value in table[name].to_pylist()])
    return table.set_column(table.column_names.index(name), name, cells)


def _world(world: World, place: Path) -> dict[str, Any]:
    kinds = {
        "local": ("local", {"k": K, "l": L}),
        "veil with k": ("veil", {"k": K, "l": L}),
        "veil": ("veil", {"l": L}),
    }
    return {title: _method(world, place, method, privacy) for title, (method, privacy) in kinds.items()}


def _policy(world: World, privacy: dict[str, Any], **sections: Any) -> Policy:
    columns = {PERSON: "identifier", **world.columns, world.sensitive: "sensitive"}
    base = {"version": 1, "person": PERSON, "columns": columns, "privacy": {**privacy, "suppression": 0.05}}
    return Policy.from_dict(base | sections, base=world.base)


def _method(world: World, place: Path, method: str, privacy: dict[str, Any]) -> dict[str, Any]:
    first, second, last = world.thirds
    last = last.append_column(PERSON, pa.array([f"p{at}" for at in range(last.num_rows)]))
    policy = _policy(world, privacy)
    if method == "veil":
        file = place / f"prior {len(list(place.iterdir()))}.csv"
        past = first.append_column(PERSON, pa.array([f"q{at}" for at in range(first.num_rows)]))
        fitted = fit(past, policy, world.sensitive, l=L, epsilon=None, rng=np.random.default_rng(1))
        write_prior(fitted.prior, file)
        policy = _policy(world, privacy, prior={"file": str(file)}, table={"method": "veil"})
    start = time.perf_counter()
    release = tables.publish(last, policy, method=method, seed=5).release
    seconds = time.perf_counter() - start
    result = verify(release, policy, original=Input(last))
    return {
        "seconds": round(seconds, 1),
        "holds": result.holds,
        "suppressed": release.records.suppressed,
        "linkage": _linkage(release, policy, last),
        "attacker": _attacker(world, release, policy, last, second),
        "counts": _counts(world, release, last, place),
    }


def _linkage(release: Release, policy: Policy, original: pa.Table) -> dict[str, float]:
    """Return the highest and mean probability of linking a record to its person, and the number of unique records."""
    evidence = Evidence((read_release(release, ""),), policy, text_table(original), rng=np.random.default_rng(2))
    outcome = linkage(evidence)
    assert outcome is not None
    return {
        "highest": round(outcome.highest, 3),
        "mean": round(outcome.right / max(1, outcome.tried), 3),
        "alone": round(outcome.sure / max(1, outcome.tried), 3),
    }


def _attacker(world: World, release: Release, policy: Policy, last: pa.Table, second: pa.Table) -> dict[str, Any]:
    seen = observations_of(read_release(release, ""), policy)
    names = [*world.columns, world.sensitive]
    both = pa.concat_tables([text_table(last.select(names)), text_table(second.select(names))])
    source = np.arange(both.num_rows) >= last.num_rows
    assert seen is not None
    reading = update_beliefs(
        seen, both, source, ~source[: last.num_rows], policy, np.random.default_rng(3), limit=4_000
    )
    assert reading is not None
    figures = figures_of(reading, seen)
    return {key: figures[key] for key in ("before", "after", "above_half", "above_nine_tenths")}


def _counts(world: World, release: Release, original: pa.Table, place: Path) -> dict[str, float]:
    """Return the median relative error of random counts, and the share of intervals that contain the true count."""
    folder = place / f"release {len(list(place.iterdir()))}"
    release.to_dir(folder)
    received = receive(folder)
    values = set(received.values)
    errors, hits = [], []
    for query in queries(original, tuple(world.columns), world.sensitive, QUESTIONS, np.random.default_rng(4)):
        if not set(query.values) <= values:
            continue  # a rare code is counted under its parent
        answer = received.count(query.values, where=query.where)
        errors.append(abs(answer.estimate - query.count) / query.count)
        hits.append(answer.low <= query.count <= answer.high)
    return {
        "error": round(float(np.median(errors)), 3),
        "withheld": round(float(np.mean(hits)), 3),
        "asked": len(errors),
    }
