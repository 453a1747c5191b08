"""What comes of fitting a prior: the prior, what it cost its persons, what it is worth; in plain words, as figures, and as files.

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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from reticent.disk import OWNER_FILE
from reticent.engine.veil.domain import MISSING, Domain
from reticent.engine.veil.prior.kernel import Kernel, Misfit
from reticent.engine.veil.prior.measure import Measures, Score
from reticent.engine.veil.prior.prior import Prior, nudge_shares
from reticent.engine.veil.prior.trajectory_attack import TrajectoryScore
from reticent.policy.hierarchy import ROOT
from reticent.policy.prior import Strata, report_name


@dataclass(frozen=True)
class CoarserColumn:
    """What would be gained if the most telling column were published one level coarser, or not at all."""

    column: str
    dropped: bool
    before: Score
    after: Score


@dataclass(frozen=True, repr=False)
class FittedKernel:
    """How values follow one another, and what it is worth against readers who know better.

    Attributes:
        kernel: of all persons of the past.
        persons: persons with several events; None where their number would tell of them.
        misfit: what a finer kernel gains per event, on held-out persons; None with too few of them.
        followed: what a reader with that kernel makes of held-out persons after some events.
    """

    kernel: Kernel
    persons: int | None
    misfit: Misfit | None
    attackers: tuple[TrajectoryScore, ...]


@dataclass(frozen=True, repr=False)
class FittedPrior:
    """A prior with its domain, what it cost its persons, and what it is worth.

    Attributes:
        domain: the values that can be offered.
        prior: their shares, row by row.
        measures: what an informed reader makes of it; None where the records are those to be released.
        coarser: what she would make of a coarser publication; None where there is nothing to coarsen.
        kernel: how values follow one another; None where hardly anybody has several records.
        persons: persons of the past.
        epsilon: spent on them; None where the past is public.
    """

    domain: Domain
    prior: Prior
    measures: Measures | None
    coarser: CoarserColumn | None
    kernel: FittedKernel | None
    persons: int
    epsilon: float | None

    def for_l(self, l: int) -> FittedPrior:
        """The same for another number of candidates: shares that could not be counted are moved a little."""
        shares = np.array([nudge_shares(row, l) for row in self.prior.shares])
        return replace(self, prior=replace(self.prior, shares=shares))


def report(fitted: FittedPrior) -> str:
    """A few lines for whoever decides whether this prior is good enough."""
    columns, measures = ", ".join(fitted.prior.columns) or "nothing", fitted.measures
    noise = "public, no noise" if fitted.epsilon is None else f"noise for epsilon = {fitted.epsilon:g}"
    lines = [f"{len(fitted.domain)} values in {len(fitted.prior.strata)} rows by {columns}."]
    if measures is None:
        lines.append(f"{fitted.persons} persons who will be released themselves: {noise}, nothing measured.")
    else:
        lines += [
            f"{fitted.persons} persons of the past, {noise}.",
            *_attacker_lines(measures),
            *_odds_ratio_lines(measures),
            f"Not offered: {measures.omission_rate:.1%} of the truths.",
            f"Largest useful l: {measures.useful_l} (asked: {measures.l}).",
            *_disclosive_lines(measures),
            *_coarser_lines(fitted),
        ]
    return "\n".join([*lines, *_kernel_lines(fitted)]) + "\n"


def figures(fitted: FittedPrior) -> dict[str, Any]:
    """All figures of a fit: means and quantiles over held-out persons, never a maximum."""
    measures, coarser = fitted.measures, fitted.coarser
    if measures is None:
        return {"source": "released", "epsilon": fitted.epsilon}
    half, nine, most = measures.odds_ratio
    plain = {
        "source": "past",
        "l": measures.l,
        "values": len(fitted.domain),
        "strata": len(fitted.prior.strata),
        "by": list(fitted.prior.columns),
        "persons": fitted.persons,
        "held_out": measures.persons,
        "epsilon": fitted.epsilon,
        "likelihood": {"prior": measures.prior_likelihood, "attacker": measures.attacker_likelihood},
        "attacker": {"before": asdict(measures.before), "after": asdict(measures.after), "ratio": measures.ratio},
        "odds_ratio": {"mean": measures.mean_odds_ratio, "50": half, "90": nine, "99": most},
        "omission_rate": measures.omission_rate,
        "largest_useful_l": measures.useful_l,
        "disclosive_columns": [{"column": one.column, "nats": list(one.nats)} for one in measures.disclosive_columns],
        "coarser": None if coarser is None else asdict(coarser),
        "kernel": None if fitted.kernel is None else _kernel_figures(fitted.kernel),
    }
    return dict(_round_floats(plain))


def _kernel_figures(kernel: FittedKernel) -> dict[str, Any]:
    return {
        "persons": kernel.persons,
        "misfit": None if kernel.misfit is None else asdict(kernel.misfit),
        "attackers": [asdict(one) for one in kernel.attackers],
    }


def _round_floats(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {key: _round_floats(part) for key, part in plain.items()}
    if isinstance(plain, list | tuple):
        return [_round_floats(part) for part in plain]
    return float(f"{plain:.4g}") if isinstance(plain, float) else plain


def _attacker_lines(measures: Measures) -> list[str]:
    before, after = measures.before, measures.after
    return [
        f"An informed reader of {measures.persons} held-out persons is right in {before.right:.1%} without the release,",
        f"in {after.right:.1%} with it: {measures.ratio:.2f} times the larger of that and 1/l.",
        f"She is surer than .5 of {before.above_half:.1%} before, of {after.above_half:.1%} after;",
        f"surer than .9 of {before.above_nine_tenths:.2%} before, of {after.above_nine_tenths:.2%} after.",
        f"Likelihood per person (nats): prior {measures.prior_likelihood:.3f}, reader {measures.attacker_likelihood:.3f}.",
    ]


def _odds_ratio_lines(measures: Measures) -> list[str]:
    half, nine, most = measures.odds_ratio
    mean = measures.mean_odds_ratio
    rows = np.nanquantile(measures.stratum_odds_ratio[:, 1], (0.5, 0.9))
    return [
        f"Kappa: mean {mean:.2f} (geometric), median {half:.2f}, 90th percentile {nine:.1f}, 99th {most:.1f}.",
        f"Its 90th percentile is {rows[0]:.1f} in the median row, {rows[1]:.1f} in one row of ten.",
    ]


def _disclosive_lines(measures: Measures) -> list[str]:
    lines = []
    for one in [one for one in measures.disclosive_columns if one.nats][:3]:  # a column at its root tells nothing
        levels = ", then ".join(f"{nats:.2f}" for nats in one.nats)
        lines.append(f"'{one.column}' alone tells {levels} nats per person, from its published level upwards.")
    return lines


def _coarser_lines(fitted: FittedPrior) -> list[str]:
    one = fitted.coarser
    if one is None:
        return []
    how = "were left out" if one.dropped else "were published one level coarser"
    return [
        f"If '{one.column}' {how}, she would be right in {one.before.right:.1%} before and {one.after.right:.1%} after."
    ]


def _kernel_lines(fitted: FittedPrior) -> list[str]:
    kernel = fitted.kernel
    if kernel is None:
        return []
    stay, within = kernel.kernel.stay.mean(), kernel.kernel.within
    of = "" if kernel.persons is None else f" of {kernel.persons} persons"
    lines = [f"Kernel{of}: {stay:.0%} stay, {within:.0%} of the changes go to siblings."]
    if kernel.misfit is not None:
        lines.append(
            f"Its misfit on {kernel.misfit.events} held-out steps: {kernel.misfit.gain:.3f} nats per event; "
            f"{kernel.misfit.unreached:.1%} of the steps cannot be offered."
        )
    return lines + [
        f"After {one.events} events one who knows a finer kernel is right in {one.right:.1%} (standard error {one.error:.1%}), "
        f"one who knows the published kernel in {one.published:.1%}."
        for one in kernel.attackers
    ]


_VALUE, _COUNT = "value", "count"
_KERNEL_HEADER = ("value", "stay", "within")


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
        out.writerow(_KERNEL_HEADER)
        for label, stay in zip(labels, kernel.stay, strict=True):
            out.writerow([label.replace(MISSING, ""), f"{stay:.4g}", f"{kernel.within:.4g}"])


def write_fit(fitted: FittedPrior, path: Path, kernel: Path | None = None, *, seeded: bool = False) -> list[Path]:
    """Writes a prior, its kernel if there is one, and the report that ties its figures to these files; says which files.

    Noise that is `seeded` hides nothing from who guesses the seed: the report says so, and every release made with it.
    """
    kernel = kernel or path.with_name(kernel_name(path.name))
    write_prior(fitted.prior, path)
    if fitted.kernel is not None:
        write_kernel(fitted.kernel.kernel, fitted.domain.labels, kernel)
    files = {"prior": path} | ({"kernel": kernel} if fitted.kernel is not None else {})
    digests = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
    report = path.with_name(report_name(path.name))
    report.touch(mode=OWNER_FILE)
    told = figures(fitted) | ({"seeded": True} if seeded and fitted.epsilon is not None else {})
    report.write_text(json.dumps({"sha256": digests} | told, indent=1) + "\n", encoding="utf-8")
    return [*files.values(), report]


def kernel_name(prior: str) -> str:
    """The kernel that is written beside a prior: kernel.csv beside prior.csv, x.kernel.csv beside x.csv."""
    return "kernel.csv" if prior == "prior.csv" else f"{prior.removesuffix('.csv').removesuffix('.prior')}.kernel.csv"
