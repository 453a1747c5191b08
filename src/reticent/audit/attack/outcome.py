"""The outcome of an attack: how sure the attacker is, and how often the guesses are right."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reticent.arrays import Floats, Int64s

Z = 1.959963984540054  # two-sided 95%
REFUTE_DEVIATIONS = 5.0  # standard deviations: chance alone must not refute an honest release
CERTAIN = 0.999  # posterior that counts as certain; the rest is rounding and sampling
_WORST = 10
BINS = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


@dataclass(frozen=True)
class Person:
    """One of the persons with the highest posterior, by pseudonym."""

    pseudonym: str
    posterior: float


@dataclass(frozen=True, repr=False)
class Outcome:
    """The result of one attack on one release, or on several.

    Attributes:
        attack: short name.
        question: what the attacker knows and does, in plain words.
        tried: number of attacked persons (or records).
        right: expected or counted number of right guesses.
        counted: whether `right` was counted with the true values, rather than expected from the posterior.
        claim: the risk bound: the chance of a right guess that the release allows; None if it claims none.
        highest: the highest posterior of any person.
        sure: number of persons about whom the attacker is certain.
        bins: number of persons per range of the posterior, see `BINS`.
        worst: the persons with the highest posteriors.
        bounded: whether the claim bounds every single posterior, and posteriors are exact.
        notes: limits of the attack.
    """

    attack: str
    question: str
    tried: int
    right: float
    counted: bool
    claim: float | None
    highest: float
    sure: int
    bins: tuple[int, ...]
    worst: tuple[Person, ...] = ()
    bounded: bool = False
    notes: tuple[str, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_posterior(cls, attack: str, question: str, posterior: Floats, key: bytes, **others: Any) -> Outcome:
        """Build the outcome from the posterior of each person's best guess; `others` override the attributes."""
        figures: dict[str, Any] = {
            "tried": len(posterior),
            "right": float(posterior.sum()),
            "counted": False,
            "claim": None,
            "highest": float(posterior.max(initial=0)),
            "sure": int((posterior > CERTAIN).sum()),
            "bins": tuple(np.histogram(np.clip(posterior, 0, 1), BINS)[0].tolist()),
            "worst": worst_of(posterior, key),
        }
        return cls(attack, question, **(figures | others))

    @property
    def accuracy(self) -> float:
        """The share of right guesses."""
        return self.right / self.tried if self.tried else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval of the accuracy (Wilson)."""
        return wilson_interval(self.right, self.tried)

    @property
    def refuted(self) -> bool:
        """Whether the attack is right more often than the release claims, far beyond chance.

        Chance must not refute an honest release, so the interval used here is much wider than the one shown.
        """
        if self.claim is None or not self.tried:
            return False
        return wilson_interval(self.right, self.tried, REFUTE_DEVIATIONS)[0] > self.claim or (
            self.bounded and self.highest > self.claim + 1e-9
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        low, high = self.interval
        return {
            "attack": self.attack,
            "question": self.question,
            "tried": self.tried,
            "accuracy": round(self.accuracy, 6),
            "interval": [round(low, 6), round(high, 6)],
            "counted": self.counted,
            "claim": self.claim,
            "refuted": self.refuted,
            "highest": round(self.highest, 6),
            "sure": self.sure,
            "bins": {"edges": BINS.tolist(), "persons": list(self.bins)},
            "worst": [{"pseudonym": p.pseudonym, "posterior": round(p.posterior, 6)} for p in self.worst],
            "notes": list(self.notes),
            "figures": self.figures,
        }


def wilson_interval(right: float, tried: float, z: float = Z) -> tuple[float, float]:
    """Return the confidence interval of a share (Wilson 1927), 95% by default, within 0 and 1.

    >>> [round(x, 3) for x in wilson_interval(10, 100)]
    [0.055, 0.174]
    """
    if not tried:
        return 0.0, 1.0
    share = right / tried
    middle = share + z * z / (2 * tried)
    spread = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    below = 1 + z * z / tried
    return max(0.0, (middle - spread) / below), min(1.0, (middle + spread) / below)


def pseudonyms(places: Int64s, key: bytes) -> list[str]:
    """Return keyed hashes of row numbers; only the owner of the key can trace them to persons."""
    return [hashlib.blake2b(str(int(place)).encode(), digest_size=5, key=key).hexdigest() for place in places]


def worst_of(posterior: Floats, key: bytes, rows: Int64s | None = None) -> tuple[Person, ...]:
    """Return the persons with the highest posteriors; `rows` has their row numbers, by default their positions."""
    order = np.argsort(-posterior, kind="stable")[:_WORST]
    names = pseudonyms(order if rows is None else rows[order], key)
    return tuple(Person(name, float(posterior[place])) for name, place in zip(names, order, strict=True))
