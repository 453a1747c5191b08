"""prior.csv: the columns that the rows condition on, the value, and a count.

    ward,sex,value,count
    surgery,male,K35,120
    surgery,*,K35,310
    *,*,K35,425

The columns named before the value hold labels of published nodes, on any level of their hierarchies, `*`, or nothing
where the column is missing. A record belongs to the first row of the prior that matches it, rows being tried in the order in which the file first names them.
Counts need not be whole. What a row does not name, or counts as 0, it does not offer.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np

from reticent.disk import OWNER_FILE
from reticent.engine.veil.prior.fields import MISSING
from reticent.policy.hierarchy import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from reticent.engine.veil.prior.prior import Prior

_VALUE, _COUNT = "value", "count"


def write_prior(prior: Prior, path: Path) -> None:
    """Writes a prior; `reticent.policy.prior` reads it."""
    path.touch(mode=OWNER_FILE)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*prior.columns, _VALUE, _COUNT])
        for row, shares, size in zip(prior.strata, prior.shares, prior.sizes, strict=True):
            # A missing cell is an empty one, here as in a release.
            nodes = [row.get(name, ROOT).replace(MISSING, "") for name in prior.columns]
            for code in np.flatnonzero(shares):
                out.writerow([*nodes, prior.labels[code], f"{shares[code] * size:.4g}"])
