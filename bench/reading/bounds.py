"""The least variance of an unbiased count: the Fisher information of the channel at the true distribution."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from reticent.read.estimate.channel import Channel
from reticent.read.estimate.groups import Groups
from reticent.read.estimate.persons import KernelStep
from reticent.read.estimate.veil import Veil


def veil_bound(veil: Veil, rows: np.ndarray, values: np.ndarray, target: np.ndarray) -> float:
    """Return the bound of one count."""
    return float(veil_bounds(veil, rows, values, target[:, None])[0])


def veil_bounds(veil: Veil, rows: np.ndarray, values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Sum n (a' I^-1 a - a theta) over strata; the second term is the sampling of the records, which is not ours.

    Args:
        veil: what the release publishes.
        rows: stratum of each record of the region.
        values: their true values, as codes; -1 for none of the domain.
        targets: values x counts, 1 for the values that are counted.
    """
    total = np.zeros(targets.shape[1])
    for row in np.unique(rows):
        mine = values[rows == row]
        known = mine[mine >= 0]
        theta = (np.bincount(known, minlength=len(targets)) + veil.shares[row]) / (len(known) + 1)
        total += len(mine) * _excess(veil.channel(int(row)), theta, targets)
    return total


def _excess(channel: Channel, theta: np.ndarray, targets: np.ndarray) -> np.ndarray:
    seen, (law, _) = channel.offered_codes, _law(channel)
    theta, targets = theta[seen] / max(theta[seen].sum(), 1e-12), targets[seen]
    likely = np.maximum(law @ theta, 1e-300)
    return np.maximum(_second(law, theta, likely, targets) - theta @ targets, 0.0)


def _second(law: np.ndarray, theta: np.ndarray, likely: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the least second moment of an unbiased score of each target."""
    # Scaled by the square root of theta, so that rare values do not harm the inversion.
    root = np.sqrt(np.maximum(theta, 1e-9))
    scaled = law * root
    information = scaled.T @ (scaled / likely[:, None]) + 1e-9 * np.eye(len(root))
    wanted = root[:, None] * targets
    return np.asarray((wanted * np.linalg.solve(information, wanted)).sum(axis=0))


@dataclass(frozen=True)
class PersonEvents:
    """Persons of a region: stratum, true first value (-1: not in the domain), and which of their events are in it."""

    rows: np.ndarray
    firsts: np.ndarray
    events: list[tuple[int, ...]]


def persons_bound(veil: Veil, step: KernelStep, persons: PersonEvents, target: np.ndarray) -> float:
    """Return the bound of a count over several events of linked persons who move as the kernel says.

    Assume a recipient who knows which candidate became which and sees where each slot went. Let F be the number of a
    person's events that count and G(x) its mean from the first value x. The optimal unbiased score is (sum over slots
    of a(x) F + b(x)) / w, where w is the likelihood of the first set relative to the prior, since all slots move alike:
    the first set gives G, and the paths of the slots give F - G. Recipients know less, so their bound is not below this
    one.
    """
    total = 0.0
    for row in np.unique(persons.rows):
        mine = np.flatnonzero(persons.rows == row)
        known = persons.firsts[mine][persons.firsts[mine] >= 0]
        theta = (np.bincount(known, minlength=len(target)) + veil.shares[row]) / (len(known) + 1)
        kinds = Counter(persons.events[person] for person in mine)
        moments = [_moments(step, int(row), events, target) for events in kinds]
        mean, spread = (np.stack(part, axis=1) for part in zip(*moments, strict=True))
        total += float(_persons_excess(veil.channel(int(row)), theta, mean, spread) @ np.array(list(kinds.values())))
    return total


def _moments(step: KernelStep, row: int, events: tuple[int, ...], target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the number of these events that count, from each first value."""

    def moved(goal: np.ndarray, times: int) -> np.ndarray:
        for _ in range(times):
            goal = step(row, goal)
        return goal

    mean = sum((moved(target, event) for event in events), np.zeros(len(target)))
    square = mean.copy()  # of an indicator
    for at, event in enumerate(events):
        for later in events[at + 1 :]:
            square += 2 * moved(target * moved(target, later - event), event)
    return mean, square - mean**2


def _persons_excess(channel: Channel, theta: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    seen, (law, chance) = channel.offered_codes, _law(channel)
    theta, mean, spread = theta[seen] / max(theta[seen].sum(), 1e-12), mean[seen], spread[seen]
    likely = np.maximum(law @ theta, 1e-300)
    # Sums over slots are sums over copies, and law has chance x copies / pi.
    ratio = (chance / likely) @ law
    false_part = (ratio / np.maximum(ratio, 1e-300) ** 2 * channel.pi[seen]) @ spread
    return np.maximum(_second(law, theta, likely, mean) + false_part - theta @ (spread + mean**2), 0.0)


_LAWS: dict[int, tuple[Channel, tuple[np.ndarray, np.ndarray]]] = {}


def _law(channel: Channel) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of each set given each seen value, and under the prior; cached for repeated use."""
    if id(channel) not in _LAWS:
        _LAWS[id(channel)] = channel, _law_of(channel)
    return _LAWS[id(channel)][1]


def _law_of(channel: Channel) -> tuple[np.ndarray, np.ndarray]:
    seen = channel.offered_codes
    sets, at = np.unique(np.sort(channel.sets, axis=1), axis=0, return_inverse=True)
    weights = np.bincount(at.reshape(-1), channel.weights)
    copies = np.zeros((len(sets), len(channel.pi)))
    for column in sets.T:
        np.add.at(copies, (np.arange(len(sets)), column), 1)
    return (weights[:, None] * copies[:, seen]) / channel.pi[seen], weights


def groups_bound(groups: Groups, inside: np.ndarray, totals: np.ndarray, target: np.ndarray) -> float:
    """Return the bound for groups, which show how many of their records are in the region but not their values.

    Args:
        groups: the published groups.
        inside: true records of each value in the region.
        totals: true records of each value.
        target: 1 for the values to count.
    """
    share = np.clip(inside / np.maximum(totals, 1), 1e-4, 1 - 1e-4)
    number = int(groups.groups.max()) + 1
    weight = groups.counts * (
        1.0 if groups.records is None else (groups.records / np.bincount(groups.groups, groups.counts))[groups.groups]
    )
    noise = np.bincount(groups.groups, weight * (share * (1 - share))[groups.values], minlength=number)
    root = np.sqrt(np.maximum(totals * share * (1 - share), 1e-9))
    dense = np.zeros((number, groups.size))
    np.add.at(dense, (groups.groups, groups.values), weight)
    scaled = dense * (root / np.maximum(totals, 1))
    information = scaled.T @ (scaled / np.maximum(noise, 1e-12)[:, None])
    wanted = root * target
    own = float(target @ (totals * share * (1 - share)))
    return max(float(wanted @ np.linalg.pinv(information, rcond=1e-9) @ wanted) - own, 0.0)
