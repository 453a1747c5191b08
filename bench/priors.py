"""Priors: how often an informed attacker is right under the veil, and the error of the recipient's counts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.datasets import adult, hospital
from reticent.engine.veil.prior.fields import published_fields
from reticent.engine.veil.prior.fit import fit
from reticent.engine.veil.prior.fitted_prior import FittedPrior
from reticent.engine.veil.prior.prior import draw_candidates, random_permutations
from reticent.policy import Policy
from reticent.read.estimate.veil import Records, Veil, counts

_AGE = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}}
_STAY = {"role": "quasi", "hierarchy": {"intervals": [[1, 3, 7, 14, 28], [7, 28]]}, "level": 1}


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - the runner's contract
    """Measure Adult (l = 8) exact and one or two levels up, and the hospital (l = 10); public prior, and epsilon 1."""
    figures: dict[str, Any] = {}
    for name, (table, policy, l) in _worlds(20_000 if quick else 100_000).items():
        for epsilon in (None, 1.0):
            start = time.perf_counter()
            fitted = fit(table, policy, policy.sensitive[0], l=l, epsilon=epsilon, rng=np.random.default_rng(1))
            seconds = time.perf_counter() - start
            key = f"{name}, {'public' if epsilon is None else f'epsilon {epsilon:g}'}"
            figures[key] = _figures(fitted) | _counts(fitted, table, policy, l) | {"seconds": round(seconds, 1)}
    return figures | {"million_records_seconds": _million()}


def _worlds(size: int) -> dict[str, tuple[pa.Table, Policy, int]]:
    worlds = {"hospital": (*_hospital(size), 10)}
    folder = adult.data_folder("adult.data")
    if folder is not None:
        worlds |= {"adult, as it is": (*_adult(folder, {}), 8)}
        up = {"age": 2, "education": 1, "native-country": 1, "marital-status": 1, "workclass": 1}
        worlds |= {"adult, levels": (*_adult(folder, up), 8)}
    return worlds


def adult_fields(folder: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Return Adult including missing values, and its quasi-identifiers."""
    table = adult.load_stream(folder)
    for at, name in enumerate(table.column_names):
        if name in {"workclass", "native-country"}:
            table = table.set_column(at, name, pc.if_else(pc.equal(table[name], "?"), None, table[name]))
    columns: dict[str, Any] = {"race": {"role": "quasi"}, "sex": {"role": "quasi"}, "age": dict(_AGE)}
    for name in ("education", "marital-status", "native-country", "workclass"):
        columns[name] = {"role": "quasi", "hierarchy": {"file": f"adult_hierarchy_{name}.csv"}}
    return table, columns


def _adult(folder: Path, levels: dict[str, int]) -> tuple[pa.Table, Policy]:
    table, columns = adult_fields(folder)
    for name, level in levels.items():
        columns[name]["level"] = level
    columns[adult.STREAM_SENSITIVE] = {"role": "sensitive"}
    return table, Policy.from_dict({"version": 1, "columns": columns}, base=folder)


def _hospital(size: int) -> tuple[pa.Table, Policy]:
    table = hospital.generate(size, 0)
    days = pc.days_between(table["birth_date"], table["admission_date"])
    names = ("sex", "ward", "admission_route", "length_of_stay", "diagnosis")
    columns = {name: table[name] for name in names} | {"age": pc.cast(pc.floor(pc.divide(days, 365.2425)), pa.int64())}
    roles = dict.fromkeys(("sex", "ward", "admission_route"), "quasi")
    roles |= {"length_of_stay": _STAY, "age": _AGE | {"level": 2}}
    roles |= {"diagnosis": {"role": "sensitive", "hierarchy": {"icd10": True}}}
    return pa.table(columns), Policy.from_dict({"version": 1, "columns": roles})


def _figures(fitted: FittedPrior) -> dict[str, Any]:
    measures = fitted.measures
    return {
        "values": len(fitted.domain),
        "rows": len(fitted.prior.strata),
        "right_before": round(measures.before.right, 4),
        "right_after": round(measures.after.right, 4),
        "ratio": round(measures.ratio, 3),
        "above_half": [round(score.above_half, 4) for score in (measures.before, measures.after)],
        "above_nine_tenths": [round(score.above_nine_tenths, 4) for score in (measures.before, measures.after)],
        "odds_ratio": [round(ratio, 2) for ratio in measures.odds_ratio],
        "omission_rate": round(measures.omission_rate, 4),
        "useful_l": measures.useful_l,
    }


def _counts(fitted: FittedPrior, table: pa.Table, policy: Policy, l: int) -> dict[str, Any]:
    """Return coverage of the 95 % interval and median relative standard error, for values in 1 % of records or more."""
    rng = np.random.default_rng(2)
    prior, values = fitted.prior, fitted.domain.encode(table[policy.sensitive[0]])
    rows = prior.assign_strata(published_fields(table, policy, prior.columns), table.num_rows)
    unseen = prior.shares[rows, values] == 0
    omission_rates = np.bincount(rows, unseen, minlength=len(prior.strata)) / np.bincount(
        rows, minlength=len(prior.strata)
    )
    orders = random_permutations(len(prior.labels), rng)
    segments = prior.segments(l)
    veil = Veil(prior.labels, segments, orders, omission_rates, np.zeros(len(omission_rates)))
    covered, errors = [], []
    for _ in range(20):
        records = Records(rows, draw_candidates(values, rows, segments, orders, rng))
        for code in np.flatnonzero(np.bincount(values, minlength=len(prior.labels)) >= table.num_rows / 100):
            true = int(((values == code) & ~unseen).sum())
            answer = counts(veil, records, np.eye(len(prior.labels))[code])
            covered.append(bool(answer.low[0] <= true <= answer.high[0]))
            errors.append(float(np.sqrt(answer.variance[0]) / true))
    return {"coverage": round(float(np.mean(covered)), 3), "relative_error": round(float(np.median(errors)), 3)}


def _million() -> dict[str, float]:
    """Return seconds to count one value in a million records (l = 10, 30 strata, 139 values); first and second time."""
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.full(139, 0.5), size=30)
    whole = np.floor(shares * 10 * (1 << 40)).astype(np.int64)
    whole[np.arange(30), whole.argmax(axis=1)] += 10 * (1 << 40) - whole.sum(axis=1)
    orders = random_permutations(139, rng)
    veil = Veil(
        tuple(f"v{code:03}" for code in range(139)), whole.astype(np.uint64), orders, np.zeros(30), np.zeros(30)
    )
    records = Records(rng.integers(30, size=1_000_000), rng.integers(139, size=(1_000_000, 10)).astype(np.uint16))
    seconds = {}
    for name in ("first", "again"):
        start = time.perf_counter()
        counts(veil, records, np.eye(139)[7])
        seconds[name] = round(time.perf_counter() - start, 2)
    return seconds
