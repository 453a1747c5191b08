"""Reads priors: how often each sensitive value occurred in the past, overall or by stratum.

A file has one line per value: `value,count`, or `sex,age,value,count` if the prior depends on published columns. The cell
of such a column is a node of its hierarchy, or `*` for all. A record belongs to the first matching stratum of the file,
so strata with `*` come last.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.errors import PolicyError

if TYPE_CHECKING:
    from reticent.policy.policy import Policy

Counts = dict[str | None, int]
"""Value -> count; None is a missing value."""


@dataclass(frozen=True, repr=False)
class Strata:
    """Counts by stratum.

    Attributes:
        by: the columns that define the strata.
        strata: per stratum, a node or `*` for each of these columns -> counts.
    """

    by: tuple[str, ...]
    strata: Mapping[tuple[str, ...], dict[str | None, float]]

    def total_counts(self) -> dict[str | None, float]:
        """Return the counts summed over all strata."""
        totals: Counter[str | None] = Counter()
        for counts in self.strata.values():
            totals.update(counts)
        return dict(totals)


def read_prior(path: Path) -> Counts:
    """Read the counts of a file summed over all strata; a count of 0 is allowed."""
    totals = {value: round(count) for value, count in read_strata(path).total_counts().items()}
    if not any(totals.values()):
        raise PolicyError(f"prior: {path.name} contains no counts.", hint="Write one value,count per line.")
    return totals


def read_strata(path: Path) -> Strata:
    """Read the counts of a file by stratum; a file of value,count needs no header."""
    rows = read_csv_rows(path, "prior", "Write a CSV file with one value,count per line.")
    head = [cell.strip() for cell in rows[0]] if rows else []
    headed = [cell.lower() for cell in head[-2:]] == ["value", "count"]
    by = tuple(head[:-2]) if headed else ()
    strata: dict[tuple[str, ...], dict[str | None, float]] = {}
    for number, row in enumerate(rows[headed:], 1 + headed):
        count = _parse_count(row[-1])
        if len(row) != len(by) + 2 or count is None:
            raise PolicyError(
                f"prior: line {number} of {path.name} must be {','.join((*by, 'value', 'count'))} with a count of 0 or more.",
                hint="Correct the line.",
            )
        counts = strata.setdefault(tuple(row[:-2]), {})
        value = row[-2] or None
        counts[value] = counts.get(value, 0) + count
    if not all(any(counts.values()) for counts in strata.values()) or not strata:
        raise PolicyError(f"prior: {path.name} contains no counts.", hint="Give every stratum a count above 0.")
    _refuse_unreachable_strata(list(strata), path)
    return Strata(by, strata)


def report_name(file: str) -> str:
    """Return the name of a prior's report: prior.report.json for prior.csv."""
    return f"{file.removesuffix('.csv')}.report.json"


def read_report(policy: Policy) -> dict[str, Any] | None:
    """Read the measurements of the policy's prior from its report; return None if there is no report.

    Measurements of a kernel are dropped if the policy names another kernel.

    Raises:
        PolicyError: the report belongs to another prior, or its epsilon differs from the policy's.
    """
    settings = policy.prior
    if settings is None or settings.file is None or not policy.path(report_name(settings.file)).is_file():
        return None
    name = report_name(settings.file)
    try:
        report = json.loads(policy.path(name).read_text(encoding="utf-8"))
        digests = dict(report.pop("sha256"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise PolicyError(f"prior: cannot read {name}.", hint="Create it again with `reticent prior`.") from None
    if digests.get("prior") != _digest(policy.path(settings.file)):
        raise PolicyError(
            f"prior: {name} does not belong to {settings.file}.",
            hint="Create both again with `reticent prior`, or delete the report: releases then state that the prior is not measured.",
        )
    if settings.epsilon is not None and settings.epsilon != report.get("epsilon"):
        raise PolicyError(
            f"prior.epsilon: {settings.epsilon:g} differs from {name}.", hint="Remove epsilon from the policy."
        )
    if settings.kernel is None or digests.get("kernel") != _digest(policy.path(settings.kernel.file)):
        report["kernel"] = None
    return dict(report)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _refuse_unreachable_strata(strata: list[tuple[str, ...]], path: Path) -> None:
    """Refuse a stratum that comes after a wider one: no record would ever belong to the later stratum."""
    hidden, above = 0, dict[tuple[int, ...], set[tuple[str, ...]]]()
    for cells in strata:
        hidden += any(tuple(cells[at] for at in columns) in wider for columns, wider in above.items())
        columns = tuple(at for at, cell in enumerate(cells) if cell != "*")
        above.setdefault(columns, set()).add(tuple(cells[at] for at in columns))
    if hidden:
        raise PolicyError(
            f"prior: {hidden} strata of {path.name} come after wider strata, so no record would use them.",
            hint="Move strata with * to the end of the file.",
        )


def _parse_count(cell: str) -> float | None:
    try:
        count = float(cell)
    except ValueError:
        return None
    return count if 0 <= count < math.inf else None


def read_csv_rows(path: Path, setting: str, hint: str) -> list[list[str]]:
    """Return the rows of a CSV file without empty lines; errors name `setting`."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise PolicyError(f"{setting}: cannot read {path.name} as CSV.", hint=hint) from None
