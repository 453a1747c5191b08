"""Skewness: how much more likely a value becomes when the attacker learns the person's group.

Guarantee: exact; the attacker compares each group with the distribution of the whole table.
Not covered: attacker knowledge beyond the published distribution.
Cost: linear in the rows.
Reference: N. Li, T. Li, S. Venkatasubramanian, "t-closeness", ICDE 2007.
Differences from the paper: the gain of the most likely value is reported, not only the distance.
"""

from __future__ import annotations

import numpy as np

from reticent.arrays import Floats
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.grouped_records import iter_grouped_columns
from reticent.audit.attack.outcome import Outcome
from reticent.verify.groups import Groups
from reticent.verify.published import Published
from reticent.verify.requirements import requirements

QUESTION = "Compares a person's group with the whole table, and looks for values that became much more likely."


def skewness(evidence: Evidence) -> Outcome | None:
    """Attack the latest release; `highest` is the largest gain over the share in the whole table."""
    release = evidence.releases[-1]
    for column, seen in iter_grouped_columns(evidence):
        gain, claim = _gain(seen.offers)[seen.group], _closeness(release)
        above = gain > claim + 1e-9 if claim is not None else gain > 0.5
        return Outcome.from_posterior(
            "skewness",
            QUESTION,
            gain,
            evidence.key,
            right=float(above.sum()),
            counted=True,
            sure=int(above.sum()),
            notes=(
                "Here posterior means the gain in probability over the whole table, and accuracy the share of persons "
                + (f"beyond the claimed t = {claim:g}." if claim is not None else "with a gain above one half."),
            ),
            figures={"column": column, "t": claim, "mean_gain": float(gain.mean())},
        )
    return None


def _gain(offers: Groups) -> Floats:
    totals = np.bincount(offers.value, weights=offers.count)
    gain = offers.shares() - (totals / max(1, totals.sum()))[offers.value]
    out = np.zeros(offers.size)
    np.maximum.at(out, offers.group, gain)
    return out


def _closeness(release: Published) -> float | None:
    """Return the claimed t if its distance bounds the gain of a single value; only the equal distance does."""
    bounds = [float(r.numbers[0]) for r in requirements(release.claims) if r.model == "t" and r.kind == "equal"]
    return min(bounds, default=None)
