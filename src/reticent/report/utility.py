"""Utility beside the risk: what the release still tells about the original, in the figures of `reticent.utility`.

The distribution of each quasi-identifier before and after is shown in few bins whose names tell no cell that was not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from reticent.arrays import Bools, Floats, Int64s
from reticent.audit.attack.grouped_records import group_stream
from reticent.policy import Policy
from reticent.report.classifier import classifier_scores
from reticent.report.reconstruction import Column, Reconstruction, reconstruct
from reticent.utility.measures import attribute_loss
from reticent.utility.stream import sau, sau_limit
from reticent.utility.workload import relative_error
from reticent.verify.published import Published

ROWS = 20_000  # correlation and queries look at a random part of larger tables
QUERIES = 200


def utility(
    releases: Sequence[Published],
    original: pa.Table | None,
    policy: Policy,
    rng: np.random.Generator,
    target: str | None = None,
) -> dict[str, Any]:
    """Everything that can be measured of the latest release; `target` is what the classifier learns, if not the sensitive value."""
    latest = releases[-1]
    out: dict[str, Any] = {"stated": {k: v for k, v in latest.metrics.items() if isinstance(v, int | float)}}
    out |= _uncertainty(releases, policy)
    beside = reconstruct(latest, original, policy) if original is not None else None
    if beside is None:
        return out
    rows_in = len(beside.sensitive)
    out["attributes"] = {
        name: {
            "loss": _loss(column, rows_in),
            "coarser": float((column.covered[column.label] > 1).mean()),
            "distance": _distance(*column.shares()),
            "association": _association(beside, column, rng),
            "distribution": distribution(column),
        }
        for name, column in beside.columns.items()
    }
    out["sensitive_distance"] = _distance(*beside.shares())
    out["query_error"] = _query_error(beside, rng)
    out["classifier"] = classifier_scores(beside, rng, target)
    return out


def _uncertainty(releases: Sequence[Published], policy: Policy) -> dict[str, float]:
    """SAU where values are offered that nobody has, and the limit no method gets below."""
    streams = [release for release in releases if release.shape == "stream"]
    shown = group_stream(streams) if streams else None
    if shown is None:
        return {}
    slots = int(shown.offers.sizes().sum())
    totals = np.array(sorted(shown.offers.totals().values()))
    figures = {"sau": sau(slots, len(shown.group))}
    if len(totals):
        figures["sau_limit"] = sau_limit(policy.l_of("stream"), float(totals[-1] / max(1, totals.sum())))
    return figures


def _loss(column: Column, rows_in: int) -> float:
    size = column.within.shape[1]
    share = column.covered[column.label] / size
    counts = np.ones(rows_in, dtype=np.int64)
    gone = np.arange(rows_in) >= len(share)
    filled = np.concatenate([share, np.ones(max(0, rows_in - len(share)))])[:rows_in]
    return attribute_loss(filled, size, counts, gone)


def _distance(before: Floats, after: Floats) -> float:
    """Total variation between the original distribution and what a reader would reconstruct."""
    return float(np.abs(before - after).sum() / 2)


def _association(reconstruction: Reconstruction, column: Column, rng: np.random.Generator) -> dict[str, float]:
    """Association of the attribute with the sensitive value (Cramer's V), in the original and in the release.

    Before: of the original values as they are; the correction for small samples keeps fine attributes from looking associated by
    their fineness alone. After: of the published labels with what their records offer.
    """
    chosen = _sample_rows(len(column.label), rng)
    labels = column.within.shape[0]
    member = csr_array((np.ones(len(chosen)), (column.label[chosen], np.arange(len(chosen)))), (labels, len(chosen)))
    after = csr_array(member @ reconstruction.group_share[reconstruction.group[chosen]])
    members = _sample_rows(len(column.source), rng)
    pairs = column.source[members], reconstruction.sensitive[members]
    before = csr_array((np.ones(len(members)), pairs), (column.within.shape[1], len(reconstruction.values)))
    return {"before": cramer(before), "after": cramer(after)}


def cramer(table: csr_array) -> float:
    """Cramer's V, corrected for the bias of small samples (Bergsma 2013)."""
    by_row, by_column = table.sum(axis=1), table.sum(axis=0)
    rows, columns, total = int((by_row > 0).sum()), int((by_column > 0).sum()), float(table.sum())
    if total <= 1 or min(rows, columns) < 2:
        return 0.0
    table.sum_duplicates()
    cells = table.tocoo()
    phi = float((cells.data**2 / (by_row[cells.row] * by_column[cells.col])).sum()) - 1
    phi = max(0.0, phi - (rows - 1) * (columns - 1) / (total - 1))
    least = min(rows - (rows - 1) ** 2 / (total - 1), columns - (columns - 1) ** 2 / (total - 1)) - 1
    return float(min(1.0, np.sqrt(phi / least))) if least > 0 else 0.0


def _query_error(reconstruction: Reconstruction, rng: np.random.Generator) -> dict[str, float]:
    """Median relative error of random counts: a part of one attribute's values and some sensitive values."""
    truth, estimate = [], []
    names = list(reconstruction.columns)
    for _ in range(QUERIES if names else 0):
        column = reconstruction.columns[names[int(rng.integers(len(names)))]]
        asked = rng.random(column.within.shape[1]) < 0.3
        values = rng.random(len(reconstruction.values)) < 0.3
        truth.append(float((asked[column.source] & values[reconstruction.sensitive]).sum()))
        fits = column.within @ asked
        offered = reconstruction.group_share @ values
        estimate.append(float((fits[column.label] * offered[reconstruction.group]).sum()))
    if not truth:
        return {}
    errors = relative_error(np.array(truth), np.array(estimate), floor=max(1.0, len(reconstruction.sensitive) / 1000))
    return {"median": float(np.median(errors)), "p90": float(np.quantile(errors, 0.9)), "queries": len(errors)}


def _sample_rows(rows: int, rng: np.random.Generator) -> Int64s:
    return np.sort(rng.permutation(rows)[:ROWS]) if rows > ROWS else np.arange(rows)


_BINS = 8
OTHERS = "all others"


def distribution(column: Column) -> list[dict[str, Any]]:
    """Shares before, and as a reader would reconstruct them: numbers in even bins, other values by name if they were published."""
    before, after = column.shares()
    numbers = _numbers(column.values)
    bins = _by_name(column) if numbers is None else _by_size(numbers)
    return [
        {"name": name, "before": float(before[inside].sum()), "after": float(after[inside].sum())}
        for name, inside in bins
        if inside.any()
    ]


def _numbers(values: tuple[str | None, ...]) -> Floats | None:
    try:
        numbers = np.array([np.nan if value is None else float(value) for value in values])
    except ValueError:
        return None
    return numbers if len(set(values)) > _BINS and np.isfinite(numbers).any() else None


def _by_size(numbers: Floats) -> list[tuple[str, Bools]]:
    """Even bins from low to high, by their rank: a border may be somebody's number."""
    edges = np.linspace(np.nanmin(numbers), np.nanmax(numbers), _BINS + 1)
    names = ["lowest", *(f"bin {at}" for at in range(2, _BINS)), "highest"]
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(names) - 1)
    bins = [(name, (place == at) & np.isfinite(numbers)) for at, name in enumerate(names)]
    return [*bins, ("missing", ~np.isfinite(numbers))]


def _by_name(column: Column) -> list[tuple[str, Bools]]:
    """The values that stand in the release as they are, the most frequent of them first; all others together."""
    often = np.bincount(column.label, minlength=len(column.labels))
    published = {label: int(often[code]) for code, label in enumerate(column.labels) if often[code] > 0}
    known = [value for value in column.values if value in published]
    chosen = sorted(known, key=lambda value: (-published[value], str(value)))[:_BINS]
    values = np.array(column.values, dtype=object)
    bins = [("missing" if value is None else value, np.array([v == value for v in values])) for value in chosen]
    rest = np.array([value not in chosen for value in column.values], dtype=bool)
    return [*bins, (OTHERS, rest)]
