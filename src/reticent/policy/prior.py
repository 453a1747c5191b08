"""The one reader of priors: how often each sensitive value occurred in the past, as `value,count` lines."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from reticent.errors import PolicyError

if TYPE_CHECKING:
    from pathlib import Path

Counts = dict[str | None, int]
"""Value -> count; None stands for a missing value."""


def read_prior(path: Path, place: str) -> Counts:
    """The counts of a file; a head `value,count` may stand on its first line, and a count of 0 is allowed.

    Args:
        path: the file.
        place: the setting that names it, for messages.

    Raises:
        PolicyError: it cannot be read, a line is no value and whole count, or nothing was counted.
    """
    counts: Counts = {}
    for number, row in enumerate(_rows(path, place), 1):
        if number == 1 and [cell.strip().lower() for cell in row] == ["value", "count"]:
            continue
        if len(row) != 2 or not row[1].strip().isdecimal():
            raise PolicyError(
                f"{place}: line {number} of {path.name} is not a value and a whole count.",
                hint="Write one value,count per line.",
            )
        value = row[0] or None
        counts[value] = counts.get(value, 0) + int(row[1])
    if not any(counts.values()):
        raise PolicyError(f"{place}: {path.name} holds no counts.", hint="Give value,count of the past.")
    return counts


def _rows(path: Path, place: str) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise PolicyError(f"{place}: cannot read {path.name} as CSV.", hint="Give a file of value,count.") from None
