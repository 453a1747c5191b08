"""Noisy totals: how many first sights of each row of the prior have each value, for recipients to calibrate their counts by.

Guarantee (to each released person, against a reader who knows everybody else's record): with one record per person, another value
    moves two counts by one, so noise of scale 2 / epsilon makes the table epsilon-differentially private: a weight a becomes at
    most a e^epsilon / (a e^epsilon + 1 - a).
Not covered: a second table of totals over the same persons: epsilon adds, so the ledger lets them stand in no other publication.
Cost: two draws per row and value.
Reference: `engine/veil/prior/noise.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.arrays import Int32s, UInt32s, UInt64s
from reticent.engine.veil.prior.noise import noised
from reticent.errors import PolicyError
from reticent.policy import Policy

if TYPE_CHECKING:
    from reticent.engine.veil.house import House


def totals_asked(policy: Policy) -> float | None:
    """The epsilon of the totals that a policy asks for, if it does."""
    return None if policy.prior is None else policy.prior.totals


def refuse_totals(policy: Policy, kind: str) -> None:
    """Refuses totals where epsilon would not stay what is stated."""
    if totals_asked(policy) is None:
        return
    if kind != "table":
        raise PolicyError(
            f"prior.totals: a release of kind {kind} has none: every further release of the same persons would cost epsilon anew.",
            hint="Take totals out, or publish them once, with a table.",
        )
    if policy.prior is not None and policy.prior.unit is not None:
        raise PolicyError(
            "prior.totals: a unit and totals do not go together: a value that relatives share would be counted several times.",
            hint="Take totals out, or the unit.",
        )


def totals(house: House, persons: UInt64s, rows: UInt32s, values: Int32s, key: bytes, epsilon: float) -> dict[str, Any]:
    """The noisy table, as `veil.json` holds it; refuses persons who would be counted twice.

    Args:
        house: rows and values.
        persons: whose first sights these are.
        rows: of the prior.
        values: codes of the domain; -1 counts nowhere.
        key: of the noise.
        epsilon: what it may tell of a person.
    """
    if len(np.unique(persons)) < len(persons):
        raise PolicyError(
            "prior.totals: some persons have several records of their first event.",
            hint="Write person: {records: first}, or take totals out.",
        )
    shape = house.stretches.shape
    known = values >= 0
    flat = rows[known].astype(np.int64) * shape[1] + values[known]
    exact = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)
    noisy = noised(exact, epsilon, np.random.default_rng(list(key)))
    return {"epsilon": epsilon, "counts": noisy.tolist()}
