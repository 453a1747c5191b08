"""The least variance that an unbiased count can have: the Fisher information of the channel, at the true distribution."""

from __future__ import annotations

import numpy as np

from reticent.read.estimate.channel import Channel
from reticent.read.estimate.groups import Groups
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
    seen, law = channel.seen, _law(channel)
    theta, targets = theta[seen] / max(theta[seen].sum(), 1e-12), targets[seen]
    # Scaled by the square root of theta, so that rare values do not spoil the inversion.
    root = np.sqrt(np.maximum(theta, 1e-9))
    scaled = law * root
    information = scaled.T @ (scaled / np.maximum(law @ theta, 1e-300)[:, None])
    wanted = root[:, None] * targets
    information += 1e-9 * np.eye(len(wanted))
    return np.maximum((wanted * np.linalg.solve(information, wanted)).sum(axis=0) - theta @ targets, 0.0)


_LAWS: dict[int, tuple[Channel, np.ndarray]] = {}


def _law(channel: Channel) -> np.ndarray:
    """Probability of each set given each seen value; kept, since it is asked for again and again."""
    if id(channel) not in _LAWS:
        _LAWS[id(channel)] = channel, _law_of(channel)
    return _LAWS[id(channel)][1]


def _law_of(channel: Channel) -> np.ndarray:
    seen = channel.seen
    sets, at = np.unique(np.sort(channel.sets, axis=1), axis=0, return_inverse=True)
    weights = np.bincount(at.reshape(-1), channel.weights)
    copies = np.zeros((len(sets), len(channel.pi)))
    for column in sets.T:
        np.add.at(copies, (np.arange(len(sets)), column), 1)
    return (weights[:, None] * copies[:, seen]) / channel.pi[seen]


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
