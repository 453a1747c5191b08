"""Utility of a release compared with the original, with the measures of `reticent.utility`.

The distribution of each quasi-identifier before and after is shown in a few bins; no bin name contains an unpublished cell.
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

ROWS = 20_000  # larger tables are sampled for the association
QUERIES = 200


def utility(
    releases: Sequence[Published],
    original: pa.Table | None,
    policy: Policy,
    rng: np.random.Generator,
    target: str | None = None,
) -> dict[str, Any]:
    """Measure the utility of the latest release; `target` is what the classifier predicts, by default the sensitive value."""
    latest = releases[-1]
    out: dict[str, Any] = {"stated": {k: v for k, v in latest.metrics.items() if isinstance(v, int | float)}}
    out |= _uncertainty(releases, policy)
    reconstruction = reconstruct(latest, original, policy) if original is not None else None
    if reconstruction is None:
        return out
    record_count = len(reconstruction.sensitive)
    out["attributes"] = {
        name: {
            "loss": _loss(column, record_count),
            "coarser": float((column.covered[column.label] > 1).mean()),
            "distance": _distance(*column.shares()),
            "association": _association(reconstruction, column, rng),
            "distribution": distribution(column),
        }
        for name, column in reconstruction.columns.items()
    }
    out["sensitive_distance"] = _distance(*reconstruction.shares())
    out["query_error"] = _query_error(reconstruction, rng)
    out["classifier"] = classifier_scores(reconstruction, rng, target)
    return out


def _uncertainty(releases: Sequence[Published], policy: Policy) -> dict[str, float]:
    """Return the sensitive attribute uncertainty (SAU) of a stream, and its lower limit for any method."""
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


def _loss(column: Column, record_count: int) -> float:
    size = column.within.shape[1]
    share = column.covered[column.label] / size
    counts = np.ones(record_count, dtype=np.int64)
    gone = np.arange(record_count) >= len(share)
    filled = np.concatenate([share, np.ones(max(0, record_count - len(share)))])[:record_count]
    return attribute_loss(filled, size, counts, gone)


def _distance(before: Floats, after: Floats) -> float:
    """Return the total variation between the original distribution and the one that a recipient estimates."""
    return float(np.abs(before - after).sum() / 2)


def _association(reconstruction: Reconstruction, column: Column, rng: np.random.Generator) -> dict[str, float]:
    """Return the association of the attribute with the sensitive value (Cramer's V), in the original and in the release.

    Before: with the original values; the small-sample correction keeps attributes with many values from looking
    associated by chance. After: of the published labels with the values that their records offer.
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
    """Return Cramer's V, corrected for the bias of small samples (Bergsma 2013)."""
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
    """Measure the relative error of random counts: some values of one attribute and some sensitive values."""
    true_counts, estimates = [], []
    names = list(reconstruction.columns)
    for _ in range(QUERIES if names else 0):
        column = reconstruction.columns[names[int(rng.integers(len(names)))]]
        selected = rng.random(column.within.shape[1]) < 0.3
        values = rng.random(len(reconstruction.values)) < 0.3
        true_counts.append(float((selected[column.source] & values[reconstruction.sensitive]).sum()))
        fits = column.within @ selected
        offered = reconstruction.group_share @ values
        estimates.append(float((fits[column.label] * offered[reconstruction.group]).sum()))
    if not true_counts:
        return {}
    floor = max(1.0, len(reconstruction.sensitive) / 1000)
    errors = relative_error(np.array(true_counts), np.array(estimates), floor=floor)
    return {"median": float(np.median(errors)), "p90": float(np.quantile(errors, 0.9)), "queries": len(errors)}


def _sample_rows(rows: int, rng: np.random.Generator) -> Int64s:
    return np.sort(rng.permutation(rows)[:ROWS]) if rows > ROWS else np.arange(rows)


_BINS = 8
OTHERS = "all others"


def distribution(column: Column) -> list[dict[str, Any]]:
    """Return the shares before, and as a recipient estimates them: numbers in equal bins, other values by published name."""
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
    """Return equal bins from low to high, named by rank: a bin edge could be a person's value."""
    edges = np.linspace(np.nanmin(numbers), np.nanmax(numbers), _BINS + 1)
    names = ["lowest", *(f"bin {at}" for at in range(2, _BINS)), "highest"]
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(names) - 1)
    bins = [(name, (place == at) & np.isfinite(numbers)) for at, name in enumerate(names)]
    return [*bins, ("missing", ~np.isfinite(numbers))]


def _by_name(column: Column) -> list[tuple[str, Bools]]:
    """Return the values that are published unchanged, most frequent first, and one bin for all others."""
    often = np.bincount(column.label, minlength=len(column.labels))
    published = {label: int(often[code]) for code, label in enumerate(column.labels) if often[code] > 0}
    known = [value for value in column.values if value in published]
    chosen = sorted(known, key=lambda value: (-published[value], str(value)))[:_BINS]
    values = np.array(column.values, dtype=object)
    bins = [("missing" if value is None else value, np.array([v == value for v in values])) for value in chosen]
    rest = np.array([value not in chosen for value in column.values], dtype=bool)
    return [*bins, (OTHERS, rest)]
