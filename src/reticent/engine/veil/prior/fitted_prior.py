"""The result of fitting a prior: the prior, its privacy cost, and measurements; as text, figures and files.

    ward,sex,value,count
    surgery,male,K35,120
    surgery,*,K35,310
    *,*,K35,425

The columns before `value` contain labels of published nodes, on any level of their hierarchies, or `*`, or nothing where the cell
is missing. A record belongs to the first stratum of the file that matches it. Counts may be fractions. A stratum does not offer
a value that it does not name or counts as 0.
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
    """The effect of publishing the most disclosive column one level coarser, or not at all."""

    column: str
    dropped: bool
    before: Score
    after: Score


@dataclass(frozen=True, repr=False)
class FittedKernel:
    """The transition kernel, and how much better-informed attackers gain.

    Attributes:
        kernel: the kernel of all persons of the past.
        persons: persons with several events; None where their number would disclose something.
        misfit: what a finer kernel gains per event, on held-out persons; None with too few of them.
        attackers: scores of an attacker with that kernel on held-out persons after some events.
    """

    kernel: Kernel
    persons: int | None
    misfit: Misfit | None
    attackers: tuple[TrajectoryScore, ...]


@dataclass(frozen=True, repr=False)
class FittedPrior:
    """A prior with its domain, its privacy cost and its measurements.

    Attributes:
        domain: the values that can be offered.
        prior: their shares in each stratum.
        measures: how well an informed attacker does; None where the prior was counted on the records to be released.
        coarser: the same for a coarser publication; None where there is nothing to coarsen.
        kernel: the transition kernel; None where hardly anybody has several records.
        persons: persons of the past.
        epsilon: their privacy cost; None where the past is public.
    """

    domain: Domain
    prior: Prior
    measures: Measures | None
    coarser: CoarserColumn | None
    kernel: FittedKernel | None
    persons: int
    epsilon: float | None

    def for_l(self, l: int) -> FittedPrior:
        """Return the prior for another number of candidates: shares that could not be estimated are moved a little."""
        shares = np.array([nudge_shares(row, l) for row in self.prior.shares])
        return replace(self, prior=replace(self.prior, shares=shares))


def report(fitted: FittedPrior) -> str:
    """Return a short text that helps the custodian decide whether the prior is good enough."""
    columns, measures = ", ".join(fitted.prior.columns) or "nothing", fitted.measures
    noise = "public, no noise" if fitted.epsilon is None else f"noise for epsilon = {fitted.epsilon:g}"
    lines = [f"{len(fitted.domain)} values in {len(fitted.prior.strata)} strata by {columns}."]
    if measures is None:
        lines.append(f"{fitted.persons} persons who will be released: {noise}, nothing measured.")
    else:
        lines += [
            f"{fitted.persons} persons of the past, {noise}.",
            *_attacker_lines(measures),
            *_odds_ratio_lines(measures),
            f"Omission rate: {measures.omission_rate:.1%} of the true values.",
            f"Largest useful l: {measures.useful_l} (requested: {measures.l}).",
            *_disclosive_lines(measures),
            *_coarser_lines(fitted),
        ]
    return "\n".join([*lines, *_kernel_lines(fitted)]) + "\n"


def figures(fitted: FittedPrior) -> dict[str, Any]:
    """Return all figures of a fit: means and quantiles over held-out persons, never a maximum."""
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
        "disclosive_columns": [
            {"column": column.column, "nats": list(column.nats)} for column in measures.disclosive_columns
        ],
        "coarser": None if coarser is None else asdict(coarser),
        "kernel": None if fitted.kernel is None else _kernel_figures(fitted.kernel),
    }
    return dict(_round_floats(plain))


def _kernel_figures(kernel: FittedKernel) -> dict[str, Any]:
    return {
        "persons": kernel.persons,
        "misfit": None if kernel.misfit is None else asdict(kernel.misfit),
        "attackers": [asdict(score) for score in kernel.attackers],
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
        f"An informed attacker guesses {before.right:.1%} of {measures.persons} held-out persons right without the release,",
        f"and {after.right:.1%} with the release: {measures.ratio:.2f} times the larger of that and 1/l.",
        f"The attacker is surer than .5 of {before.above_half:.1%} before, of {after.above_half:.1%} after;",
        f"surer than .9 of {before.above_nine_tenths:.2%} before, of {after.above_nine_tenths:.2%} after.",
        f"Log-likelihood per person (nats): prior {measures.prior_likelihood:.3f}, attacker {measures.attacker_likelihood:.3f}.",
    ]


def _odds_ratio_lines(measures: Measures) -> list[str]:
    half, nine, most = measures.odds_ratio
    mean = measures.mean_odds_ratio
    quantiles = np.nanquantile(measures.stratum_odds_ratio[:, 1], (0.5, 0.9))
    return [
        f"Odds ratio: mean {mean:.2f} (geometric), median {half:.2f}, 90th percentile {nine:.1f}, 99th {most:.1f}.",
        f"Its 90th percentile is {quantiles[0]:.1f} in the median stratum, {quantiles[1]:.1f} in one stratum of ten.",
    ]


def _disclosive_lines(measures: Measures) -> list[str]:
    lines = []
    for column in [column for column in measures.disclosive_columns if column.nats][:3]:  # a root discloses nothing
        levels = ", then ".join(f"{nats:.2f}" for nats in column.nats)
        lines.append(f"'{column.column}' alone discloses {levels} nats per person, from its published level upwards.")
    return lines


def _coarser_lines(fitted: FittedPrior) -> list[str]:
    coarser = fitted.coarser
    if coarser is None:
        return []
    how = "were dropped" if coarser.dropped else "were published one level coarser"
    return [
        f"If '{coarser.column}' {how}, the attacker would guess {coarser.before.right:.1%} before and {coarser.after.right:.1%} after."
    ]


def _kernel_lines(fitted: FittedPrior) -> list[str]:
    kernel = fitted.kernel
    if kernel is None:
        return []
    stay, within = kernel.kernel.stay.mean(), kernel.kernel.within
    persons = "" if kernel.persons is None else f" of {kernel.persons} persons"
    lines = [f"Kernel{persons}: {stay:.0%} stay, {within:.0%} of the changes go to siblings."]
    if kernel.misfit is not None:
        lines.append(
            f"Its misfit on {kernel.misfit.events} held-out transitions: {kernel.misfit.gain:.3f} nats per event; "
            f"{kernel.misfit.unreached:.1%} of the transitions are omitted."
        )
    return lines + [
        f"After {score.events} events an attacker with a finer kernel guesses {score.right:.1%} (standard error {score.error:.1%}), "
        f"an attacker with the published kernel {score.published:.1%}."
        for score in kernel.attackers
    ]


_VALUE, _COUNT = "value", "count"
_KERNEL_HEADER = ("value", "stay", "within")


def strata_of(prior: Prior) -> Strata:
    """Return the counts by stratum as the prior's file would be read back, without values that a stratum does not offer."""
    strata: dict[tuple[str, ...], dict[str | None, float]] = {}
    for conditions, shares, size in zip(prior.strata, prior.shares, prior.sizes, strict=True):
        # A missing cell is written empty, as in a release.
        nodes = tuple(conditions.get(name, ROOT).replace(MISSING, "") for name in prior.columns)
        # Noise may leave no person in a stratum that offers values; then its shares count, not its size.
        people = max(size, 1.0)
        counts = {prior.labels[code]: float(f"{shares[code] * people:.4g}") for code in np.flatnonzero(shares)}
        if counts:
            strata[nodes] = {None if label == MISSING else label: count for label, count in counts.items()}
    return Strata(prior.columns, strata)


def write_prior(prior: Prior, path: Path) -> None:
    """Write a prior; `reticent.policy.prior` reads it."""
    path.touch(mode=OWNER_FILE)
    strata = strata_of(prior)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([*strata.by, _VALUE, _COUNT])
        for nodes, counts in strata.strata.items():
            out.writerows([*nodes, label or "", f"{count:.4g}"] for label, count in counts.items())


def write_kernel(kernel: Kernel, labels: tuple[str, ...], path: Path) -> None:
    """Write a kernel: the stay probability of each value, and the share of changes within the parent node."""
    path.touch(mode=OWNER_FILE)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(_KERNEL_HEADER)
        for label, stay in zip(labels, kernel.stay, strict=True):
            out.writerow([label.replace(MISSING, ""), f"{stay:.4g}", f"{kernel.within:.4g}"])


def write_fit(fitted: FittedPrior, path: Path, kernel: Path | None = None, *, seeded: bool = False) -> list[Path]:
    """Write a prior, its kernel if any, and the report that ties its figures to these files; return the paths.

    An attacker who guesses the seed can remove `seeded` noise: the report says so, and every release made with it.
    """
    kernel = kernel or path.with_name(kernel_name(path.name))
    write_prior(fitted.prior, path)
    if fitted.kernel is not None:
        write_kernel(fitted.kernel.kernel, fitted.domain.labels, kernel)
    files = {"prior": path} | ({"kernel": kernel} if fitted.kernel is not None else {})
    digests = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
    report = path.with_name(report_name(path.name))
    report.touch(mode=OWNER_FILE)
    measured = figures(fitted) | ({"seeded": True} if seeded and fitted.epsilon is not None else {})
    report.write_text(json.dumps({"sha256": digests} | measured, indent=1) + "\n", encoding="utf-8")
    return [*files.values(), report]


def kernel_name(prior: str) -> str:
    """Return the name of the kernel for a prior: kernel.csv for prior.csv, x.kernel.csv for x.csv."""
    return "kernel.csv" if prior == "prior.csv" else f"{prior.removesuffix('.csv').removesuffix('.prior')}.kernel.csv"
