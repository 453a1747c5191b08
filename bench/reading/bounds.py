"""The least variance that an unbiased count can have: the Fisher information of the channel, at the true distribution."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from reticent.read.estimate.channel import Channel
from reticent.read.estimate.groups import Groups
from reticent.read.estimate.persons import KernelStep
from reticent.read.estimate.veil import Veil


def veil_bound(veil: Veil, rows: np.ndarray, values: np.ndarray, target: np.ndarray) -> float:
    """The bound of one count."""
    return float(veil_bounds(veil, rows, values, target[:, None])[0])


def veil_bounds(veil: Veil, rows: np.ndarray, values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Sum over rows of n (a' I^-1 a - a theta); the second term is the sampling of the records, which is not ours.

    Args:
        veil: what the release publishes.
        rows: row of the prior of each record of the region.
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
    """The least second moment of an unbiased score of each target."""
    # Scaled by the square root of theta, so that rare values do not spoil the inversion.
    root = np.sqrt(np.maximum(theta, 1e-9))
    scaled = law * root
    information = scaled.T @ (scaled / likely[:, None]) + 1e-9 * np.eye(len(root))
    wanted = root[:, None] * targets
    return np.asarray((wanted * np.linalg.solve(information, wanted)).sum(axis=0))


@dataclass(frozen=True)
class Lives:
    """Persons of a region: row of the prior, true first value (-1: none of the domain), and which of their events lie in it."""

    rows: np.ndarray
    firsts: np.ndarray
    events: list[tuple[int, ...]]


def lives_bound(veil: Veil, step: KernelStep, lives: Lives, target: np.ndarray) -> float:
    """The bound of a count over several events of linked persons, where they move as the kernel says.

    Somebody who is told which candidate became which sees where each slot went. Let F be how many of a life's events count and
    G(x) its mean from the first value x. The optimal unbiased score is (sum over slots of a(x) F + b(x)) / w, w being how
    likely the first set is beside the prior, since slots move alike whichever is true: G is told by the first set, and F - G by
    the slots' own ways. Recipients are not told, so their bound is not below this one.
    """
    total = 0.0
    for row in np.unique(lives.rows):
        mine = np.flatnonzero(lives.rows == row)
        known = lives.firsts[mine][lives.firsts[mine] >= 0]
        theta = (np.bincount(known, minlength=len(target)) + veil.shares[row]) / (len(known) + 1)
        kinds = Counter(lives.events[person] for person in mine)
        moments = [_moments(step, int(row), events, target) for events in kinds]
        mean, spread = (np.stack(part, axis=1) for part in zip(*moments, strict=True))
        total += float(_lives_excess(veil.channel(int(row)), theta, mean, spread) @ np.array(list(kinds.values())))
    return total


def _moments(step: KernelStep, row: int, events: tuple[int, ...], target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of how many of these events count, from each first value."""

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


def _lives_excess(channel: Channel, theta: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    seen, (law, chance) = channel.offered_codes, _law(channel)
    theta, mean, spread = theta[seen] / max(theta[seen].sum(), 1e-12), mean[seen], spread[seen]
    likely = np.maximum(law @ theta, 1e-300)
    # Sums over slots are sums over copies, and law holds chance x copies / pi.
    beside = (chance / likely) @ law
    decoys = (beside / np.maximum(beside, 1e-300) ** 2 * channel.pi[seen]) @ spread
    return np.maximum(_second(law, theta, likely, mean) + decoys - theta @ (spread + mean**2), 0.0)


_LAWS: dict[int, tuple[Channel, tuple[np.ndarray, np.ndarray]]] = {}


def _law(channel: Channel) -> tuple[np.ndarray, np.ndarray]:
    """Probability of each set given each seen value, and of each set under the prior; kept, since it is asked for again and again."""
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
    """Groups show how many of theirs lie in the region; the composition says of which values.

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
