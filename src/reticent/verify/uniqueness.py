"""Uniqueness: records that are alone in their class, and how many of them are unique in the population too.

Guarantee: sample uniqueness is exact; population uniqueness is an estimate by a model of class sizes.
Not covered: data that is no random sample of the population.
Cost: linear in the distinct class sizes, for Pitman times the steps of a small optimization.
Reference: L. Zayatz, US Bureau of the Census report 91/08 (1991); N. Hoshino, "Applying Pitman's sampling formula to
    microdata disclosure risk assessment", J. Off. Stat. 17 (2001); choice: F. Dankar et al., BMC Med. Inform. 12 (2012).
Differences from the paper: Pitman's parameters are found by maximizing its likelihood directly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent.arrays import Floats, Int64s


def sample_uniques(sizes: Int64s) -> int:
    """Count the records that are alone in their class."""
    return int((sizes == 1).sum())


def population_uniques(sizes: Int64s, population: int) -> dict[str, float]:
    """Estimate the number of population uniques by each model; `chosen` is the recommended estimate."""
    rows = int(sizes.sum())
    if rows == 0 or population <= rows:
        return {"chosen": float(sample_uniques(sizes))}
    fraction = rows / population
    estimates = {"zayatz": zayatz(sizes, fraction), "pitman": pitman(sizes, population)}
    return estimates | {"chosen": estimates["pitman"] if fraction <= 0.1 else min(estimates.values())}


def zayatz(sizes: Int64s, fraction: float) -> float:
    """Estimate population uniques, assuming that the population's class sizes are distributed as the sample's."""
    unique = sample_uniques(sizes)
    if not unique:
        return 0.0
    size, many = np.unique(sizes, return_counts=True)
    seen_once = size * fraction * (1 - fraction) ** (size - 1)
    chance = fraction * float(many[0]) / float((seen_once * many).sum())
    return unique * chance / fraction


def pitman(sizes: Int64s, population: int) -> float:
    """Estimate population uniques by Pitman's sampling formula with maximum likelihood parameters."""
    from scipy.optimize import minimize
    from scipy.special import gammaln

    if not sample_uniques(sizes):
        return 0.0
    rows, classes = int(sizes.sum()), len(sizes)
    if classes == rows:  # all records are unique: the likelihood has no maximum
        return float(population)
    size, many = np.unique(sizes, return_counts=True)

    def parameters(at: Floats) -> tuple[float, float]:
        alpha = 1 / (1 + np.exp(-float(at[0])))
        return alpha, float(np.exp(np.clip(at[1], -20, 40))) - alpha * 0.999

    def negative_log_likelihood(at: Floats) -> float:
        alpha, theta = parameters(at)
        opened = (classes - 1) * np.log(alpha) + gammaln(theta / alpha + classes) - gammaln(theta / alpha + 1)
        drawn = gammaln(theta + rows) - gammaln(theta + 1)
        within = (many * (gammaln(size - alpha) - gammaln(1 - alpha))).sum()
        value = float(-(opened - drawn + within))
        return value if np.isfinite(value) else 1e300

    start = np.array([0.0, np.log(max(1.0, classes / 2))])
    optimum: Any = minimize(negative_log_likelihood, start, method="Nelder-Mead", options={"maxiter": 500})
    alpha, theta = parameters(optimum.x)
    alone = gammaln(theta + alpha + population - 1) - gammaln(theta + alpha)
    together = gammaln(theta + population) - gammaln(theta + 1)
    return min(float(population * np.exp(alone - together)), float(population))
