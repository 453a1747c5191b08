"""What an attack found: how sure the attacker is of whom, and how often he was right."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reticent.arrays import Floats, Int64s

Z = 1.959963984540054  # two-sided 95%
REFUTE_DEVIATIONS = (
    5.0  # deviations before a claim counts as refuted: an honest release must not be refused by bad luck
)
CERTAIN = 0.999  # of a value; what is left is rounding and sampling
_WORST = 10
BINS = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


@dataclass(frozen=True)
class Person:
    """One of the persons worst off, by pseudonym."""

    pseudonym: str
    posterior: float


@dataclass(frozen=True, repr=False)
class Outcome:
    """The result of one attack on one release, or on several.

    Attributes:
        attack: short name.
        question: what the attacker knows and does, in plain words.
        tried: persons (or records) attacked.
        right: expected or counted number of right guesses.
        counted: whether `right` was counted against the truth, rather than expected from the posterior.
        claim: the chance of a right guess that the release concedes; None where it claims none.
        highest: the largest posterior of any person.
        sure: persons of whom the attacker is certain.
        bins: number of persons per range of the posterior, see `BINS`.
        worst: the persons worst off.
        bounded: whether every single posterior must keep to the claim, and is computed exactly.
        notes: what limits the attack.
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
        """The outcome when the attacker gives every person's value this probability; `others` are as above."""
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
        """Share of guesses that are right."""
        return self.right / self.tried if self.tried else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval of the accuracy (Wilson)."""
        return wilson_interval(self.right, self.tried)

    @property
    def refuted(self) -> bool:
        """Whether the attack does better than the release claims, far beyond chance.

        An honest release must not be refused by bad luck, so the interval used here is much wider than the one shown.
        """
        if self.claim is None or not self.tried:
            return False
        return wilson_interval(self.right, self.tried, REFUTE_DEVIATIONS)[0] > self.claim or (
            self.bounded and self.highest > self.claim + 1e-9
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
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
    """The confidence interval of a share (Wilson 1927), 95% by default; it stays within 0 and 1.

    >>> [round(x, 3) for x in wilson(10, 100)]
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
    """Keyed hashes of row numbers: the custodian can tell who it is, a reader of the report cannot."""
    return [hashlib.blake2b(str(int(place)).encode(), digest_size=5, key=key).hexdigest() for place in places]


def worst_of(posterior: Floats, key: bytes, rows: Int64s | None = None) -> tuple[Person, ...]:
    """The persons the attacker is surest of, by their row numbers: their positions, if nobody says them."""
    order = np.argsort(-posterior, kind="stable")[:_WORST]
    names = pseudonyms(order if rows is None else rows[order], key)
    return tuple(Person(name, float(posterior[place])) for name, place in zip(names, order, strict=True))
