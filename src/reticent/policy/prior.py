"""The one reader of priors: how often each sensitive value occurred in the past, for everybody or by stratum.

A file has one line per value: `value,count`, or `sex,age,value,count` where it depends on published columns; such a cell is a
node of the column's hierarchy, or `*` for all. A record belongs to the first stratum of the file that holds it, so strata with `*`
come last.
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
"""Value -> count; None stands for a missing value."""


@dataclass(frozen=True, repr=False)
class Strata:
    """Counts by stratum.

    Attributes:
        by: the columns that strata are made of.
        strata: per stratum, a node or `*` for each of these columns -> counts.
    """

    by: tuple[str, ...]
    strata: Mapping[tuple[str, ...], dict[str | None, float]]

    def total_counts(self) -> dict[str | None, float]:
        """Counts over all strata."""
        totals: Counter[str | None] = Counter()
        for counts in self.strata.values():
            totals.update(counts)
        return dict(totals)


def read_prior(path: Path) -> Counts:
    """The counts of a file over all strata; a count of 0 is allowed."""
    totals = {value: round(count) for value, count in read_strata(path).total_counts().items()}
    if not any(totals.values()):
        raise PolicyError(f"prior: {path.name} holds no counts.", hint="Give value,count of the past.")
    return totals


def read_strata(path: Path) -> Strata:
    """The counts of a file by stratum; without columns before `value` the head may be left out."""
    rows = read_csv_rows(path, "prior", "Give a file of value,count.")
    head = [cell.strip() for cell in rows[0]] if rows else []
    headed = [cell.lower() for cell in head[-2:]] == ["value", "count"]
    by = tuple(head[:-2]) if headed else ()
    strata: dict[tuple[str, ...], dict[str | None, float]] = {}
    for number, row in enumerate(rows[headed:], 1 + headed):
        count = _parse_count(row[-1])
        if len(row) != len(by) + 2 or count is None:
            raise PolicyError(
                f"prior: line {number} of {path.name} is not {', '.join((*by, 'value'))} and a count of 0 or more.",
                hint="Write one value,count per line.",
            )
        counts = strata.setdefault(tuple(row[:-2]), {})
        value = row[-2] or None
        counts[value] = counts.get(value, 0) + count
    if not all(any(counts.values()) for counts in strata.values()) or not strata:
        raise PolicyError(f"prior: {path.name} holds no counts.", hint="Give value,count of the past.")
    _refuse_unreachable_strata(list(strata), path)
    return Strata(by, strata)


def report_name(file: str) -> str:
    """The report beside a prior: prior.report.json beside prior.csv."""
    return f"{file.removesuffix('.csv')}.report.json"


def read_report(policy: Policy) -> dict[str, Any] | None:
    """What was measured of the policy's prior when it was made; None where nobody measured it.

    Figures of a kernel count only for the kernel that the policy names.

    Raises:
        PolicyError: the report is of another prior, or says another epsilon than the policy.
    """
    settings = policy.prior
    if settings is None or settings.file is None or not policy.path(report_name(settings.file)).is_file():
        return None
    name = report_name(settings.file)
    try:
        report = json.loads(policy.path(name).read_text(encoding="utf-8"))
        digests = dict(report.pop("sha256"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise PolicyError(f"prior: cannot read {name}.", hint="Make it again with `reticent prior`.") from None
    if digests.get("prior") != _digest(policy.path(settings.file)):
        raise PolicyError(
            f"prior: {name} was measured on another file than {settings.file}.",
            hint="Make both again with `reticent prior`, or take the report away: releases then say that nobody measured it.",
        )
    if settings.epsilon is not None and settings.epsilon != report.get("epsilon"):
        raise PolicyError(
            f"prior.epsilon: {settings.epsilon:g} is not what {name} says.", hint="Take epsilon out of the policy."
        )
    if settings.kernel is None or digests.get("kernel") != _digest(policy.path(settings.kernel.file)):
        report["kernel"] = None
    return dict(report)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _refuse_unreachable_strata(strata: list[tuple[str, ...]], path: Path) -> None:
    """A stratum behind a wider one would never be reached."""
    hidden, above = 0, dict[tuple[int, ...], set[tuple[str, ...]]]()
    for cells in strata:
        hidden += any(tuple(cells[at] for at in columns) in wider for columns, wider in above.items())
        columns = tuple(at for at, cell in enumerate(cells) if cell != "*")
        above.setdefault(columns, set()).add(tuple(cells[at] for at in columns))
    if hidden:
        raise PolicyError(
            f"prior: {hidden} strata of {path.name} stand behind wider ones and would never be reached.",
            hint="Put those with * last.",
        )


def _parse_count(cell: str) -> float | None:
    try:
        count = float(cell)
    except ValueError:
        return None
    return count if 0 <= count < math.inf else None


def read_csv_rows(path: Path, setting: str, hint: str) -> list[list[str]]:
    """The lines of a CSV file that the setting `place` names, but empty ones."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise PolicyError(f"{setting}: cannot read {path.name} as CSV.", hint=hint) from None
