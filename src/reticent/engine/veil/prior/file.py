"""prior.csv: the columns that the rows condition on, the value, and a count.

    ward,sex,diagnosis,count
    surgery,male,K35,120
    surgery,*,K35,310
    *,*,K35,425

The columns named before the value hold labels of published nodes, on any level of their hierarchies, or `*`. A record
belongs to the first row of the prior that matches it, rows being tried in the order in which the file first names them.
Counts need not be whole. What a row does not name, or counts as 0, it does not offer.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np

from reticent.engine.veil.prior.domain import OTHER
from reticent.engine.veil.prior.prior import Prior
from reticent.errors import PolicyError
from reticent.policy.hierarchy import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from reticent.engine.veil.prior.strata import Stratum

_COUNT = "count"


def write_prior(prior: Prior, path: Path, *, column: str) -> None:
    """Writes a prior; `column` is the sensitive one."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*prior.columns, column, _COUNT])
        for row, shares, size in zip(prior.strata, prior.shares, prior.sizes, strict=True):
            nodes = [row.get(name, ROOT) for name in prior.columns]
            for code in np.flatnonzero(shares):
                out.writerow([*nodes, prior.labels[code], f"{shares[code] * size:.4g}"])


def read_prior(path: Path, *, column: str) -> Prior:
    """Reads a prior; the value's column is called `value` or as in the policy.

    Raises:
        PolicyError: with the line, where the file is not one.
    """
    head, lines = _read(path)
    if len(head) < 2 or head[-1] != _COUNT or head[-2] not in {"value", column}:
        raise _bad(path, 1, f"the last two columns must be '{column}' (or 'value') and 'count'")
    counts: dict[tuple[str, ...], dict[str, float]] = {}
    for number, line in enumerate(lines, 2):
        if len(line) != len(head):
            raise _bad(path, number, f"{len(head)} cells are needed, {len(line)} are there")
        row = counts.setdefault(tuple(line[:-2]), {})
        if line[-2] in row:
            raise _bad(path, number, "this row has the value already")
        row[line[-2]] = _number(path, number, line[-1])
    return _prior(path, head[:-2], counts)


def _prior(path: Path, columns: list[str], counts: dict[tuple[str, ...], dict[str, float]]) -> Prior:
    empty = sum(not sum(row.values()) for row in counts.values())
    if empty or not counts:
        raise PolicyError(
            f"{path.name}: {empty} of {len(counts)} rows of the prior count nothing.", hint="Leave such rows out."
        )
    labels = tuple(sorted({*(value for row in counts.values() for value in row), OTHER}))
    table = np.array([[row.get(label, 0.0) for label in labels] for row in counts.values()])
    strata: list[Stratum] = [
        {name: node for name, node in zip(columns, nodes, strict=True) if node != ROOT} for nodes in counts
    ]
    _refuse_hidden(path, strata)
    sizes = table.sum(axis=1)
    return Prior(labels, tuple(strata), table / sizes[:, None], sizes)


def _refuse_hidden(path: Path, strata: list[Stratum]) -> None:
    """A row whose conditions hold a whole earlier row's can never be reached."""
    hidden = sum(any(above.items() <= row.items() for above in strata[:at]) for at, row in enumerate(strata))
    if hidden:
        raise PolicyError(
            f"{path.name}: {hidden} rows of the prior stand behind wider ones and would never be reached.",
            hint="Put rows with * last.",
        )


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            delimiter = ";" if ";" in file.readline() else ","
            file.seek(0)
            lines = [
                [cell.strip() for cell in row] for row in csv.reader(file, delimiter=delimiter, strict=True) if row
            ]
    except OSError as error:
        raise PolicyError(
            f"{path.name} cannot be read ({error.strerror}).",
            hint="Correct the path; it starts from the policy's folder.",
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise PolicyError(
            f"{path.name} is not a readable UTF-8 CSV file.", hint="Write value,count per line."
        ) from None
    if not lines:
        raise PolicyError(f"{path.name} is empty.", hint="Write value,count per line, under a header.")
    return lines[0], lines[1:]


def _number(path: Path, line: int, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = -1.0
    if not 0 <= number < np.inf:
        raise _bad(path, line, "the count is not a number of zero or more")
    return number


def _bad(path: Path, line: int, what: str) -> PolicyError:
    return PolicyError(f"{path.name}, line {line}: {what}.", hint="Write [columns...,] value, count under a header.")
