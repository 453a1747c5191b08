"""How far luck carries an attacker on a sealed stream, where guesses stand and fall together.

Two records in the same state are guessed alike, so guesses are not independent and the binomial interval is too narrow.
A sealed stream says what is equally likely instead: within a class every relabelling of its slots, applied to all of its
records at once. The variance of the number of right guesses over all relabellings is therefore exact, whatever the
attacker did, and it does not depend on how many of his guesses are right.

Cost: records x slots, plus classes x slots^2.
Reference: W. Hoeffding, "A combinatorial central limit theorem", Ann. Math. Statist. 22 (1951), for the variance.
Differences from the paper: classes are independent of each other, so their variances add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reticent.audit.attack.transcript import Transcript


@dataclass(frozen=True, repr=False)
class Guesses:
    """What was guessed and what is true, a row per record.

    Attributes:
        offered: the codes that the record's group offers, -1 beyond its last slot.
        alike: the class of the record: groups that offer the same are one class.
        code: the code guessed.
        chance: per slot how likely it is the true one: 0 or 1 where the truth is known.
    """

    offered: NDArray[np.int64]
    alike: NDArray[np.int64]
    code: NDArray[np.int64]
    chance: NDArray[np.float64]


def guesses(seen: Transcript, code: NDArray[np.int64], chance: NDArray[np.float64]) -> Guesses:
    """Guesses about the records of a transcript."""
    _, alike = np.unique(seen.slots, axis=0, return_inverse=True)
    return Guesses(seen.slots[seen.group], alike.reshape(-1)[seen.group], code, chance)


def design_effect(guesses: Guesses) -> float:
    """How many times the variance of independent guesses; never below 1."""
    mean = variance = 0.0
    for number in range(int(guesses.alike.max(initial=-1)) + 1):
        rows = np.flatnonzero(guesses.alike == number)
        if len(rows):
            one, other = _moments(guesses, rows)
            mean, variance = mean + one, variance + other
    tried = len(guesses.code)
    share = mean / tried if tried else 0.0
    return max(1.0, variance / (tried * share * (1 - share))) if 0 < share < 1 else 1.0


def _moments(guesses: Guesses, rows: NDArray[np.int64]) -> tuple[float, float]:
    """Mean and variance of the right guesses in a class over all relabellings of its slots."""
    offered = guesses.offered[rows]
    width = int((offered[0] >= 0).sum())
    named = offered[:, :width] == guesses.code[rows, None]
    right = guesses.chance[rows, :width].T @ named  # right[s, r]: what slot s adds when it is renamed to slot r
    if width < 2:
        return float(right.sum()), 0.0
    centred = right - right.mean(axis=0) - right.mean(axis=1, keepdims=True) + right.mean()
    return float(right.sum() / width), float((centred**2).sum() / (width - 1))
