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
import hashlib
import json
from pathlib import Path

import numpy as np

from reticent.disk import OWNER_FILE
from reticent.engine.veil.domain import MISSING
from reticent.engine.veil.prior.fitted import FittedPrior, figures
from reticent.engine.veil.prior.kernel import Kernel
from reticent.engine.veil.prior.prior import Prior
from reticent.policy.hierarchy import ROOT
from reticent.policy.prior import Prior as Strata
from reticent.policy.prior import report_name

_VALUE, _COUNT = "value", "count"
_KERNEL = ("value", "stay", "within")


def strata_of(prior: Prior) -> Strata:
    """A prior as its file would be read back: counts by stratum, values that a row does not offer left out."""
    strata: dict[tuple[str, ...], dict[str | None, float]] = {}
    for row, shares, size in zip(prior.strata, prior.shares, prior.sizes, strict=True):
        # A missing cell is an empty one, here as in a release.
        nodes = tuple(row.get(name, ROOT).replace(MISSING, "") for name in prior.columns)
        # Noise may leave nobody in a row that offers values all the same; its shares count, not its size.
        people = max(size, 1.0)
        counts = {prior.labels[code]: float(f"{shares[code] * people:.4g}") for code in np.flatnonzero(shares)}
        if counts:
            strata[nodes] = {None if label == MISSING else label: count for label, count in counts.items()}
    return Strata(prior.columns, strata)


def write_prior(prior: Prior, path: Path) -> None:
    """Writes a prior; `reticent.policy.prior` reads it."""
    path.touch(mode=OWNER_FILE)
    strata = strata_of(prior)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*strata.by, _VALUE, _COUNT])
        for nodes, counts in strata.strata.items():
            out.writerows([*nodes, label or "", f"{count:.4g}"] for label, count in counts.items())


def write_kernel(kernel: Kernel, labels: tuple[str, ...], path: Path) -> None:
    """Writes a kernel of few numbers: the stay of each value, and the share of the changes within the parent node."""
    path.touch(mode=OWNER_FILE)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(_KERNEL)
        for label, stay in zip(labels, kernel.stay, strict=True):
            out.writerow([label.replace(MISSING, ""), f"{stay:.4g}", f"{kernel.within:.4g}"])


def write_fit(fitted: FittedPrior, path: Path, kernel: Path | None = None) -> list[Path]:
    """Writes a prior, its kernel if there is one, and the report that ties its figures to these files; says which files."""
    kernel = kernel or path.with_name(kernel_name(path.name))
    write_prior(fitted.prior, path)
    if fitted.kernel is not None:
        write_kernel(fitted.kernel.kernel, fitted.domain.labels, kernel)
    files = {"prior": path} | ({"kernel": kernel} if fitted.kernel is not None else {})
    digests = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
    report = path.with_name(report_name(path.name))
    report.touch(mode=OWNER_FILE)
    report.write_text(json.dumps({"sha256": digests} | figures(fitted), indent=1) + "\n", encoding="utf-8")
    return [*files.values(), report]


def kernel_name(prior: str) -> str:
    """The kernel that is written beside a prior: kernel.csv beside prior.csv, x.kernel.csv beside x.csv."""
    return "kernel.csv" if prior == "prior.csv" else f"{prior.removesuffix('.csv').removesuffix('.prior')}.kernel.csv"
