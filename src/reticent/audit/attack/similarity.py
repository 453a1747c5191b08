"""Similarity: the values of a group differ, but all are the same kind of illness.

Guarantee: exact for an attacker who guesses categories on the hierarchy level just below the top.
Not covered: closeness that the hierarchy does not express.
Cost: linear in the rows.
Reference: N. Li, T. Li, S. Venkatasubramanian, "t-closeness", ICDE 2007.
Differences from the paper: categories come from the policy's hierarchy.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reticent.arrays import Floats, Int32s
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.grouped_records import iter_grouped_columns
from reticent.audit.attack.outcome import Outcome
from reticent.errors import DataError
from reticent.policy.hierarchy import build_levels
from reticent.verify.groups import Groups

QUESTION = "Guesses the category instead of the value, one level below the top of the sensitive column's hierarchy."


def similarity(evidence: Evidence) -> Outcome | None:
    """Attack the latest release whose sensitive column has a hierarchy."""
    for column, seen in iter_grouped_columns(evidence):
        category = _categories(evidence, column, seen.offers.values)
        if category is None:
            continue
        shares, prior = _shares(seen.offers, category)
        posterior = shares[seen.group]
        return Outcome.from_posterior(
            "similarity",
            QUESTION,
            posterior,
            evidence.key,
            counted=evidence.releases[-1].shape == "generalized",
            notes=(f"Without groups, the best guess of a category is right in {prior:.1%} of all cases.",),
            figures={"column": column, "baseline": prior, "categories": int(category.max()) + 1},
        )
    return None


def _categories(evidence: Evidence, column: str, values: tuple[str | None, ...]) -> Int32s | None:
    spec = evidence.policy.columns[column].hierarchy
    if spec is None:
        return None
    try:
        steps = build_levels(spec, pa.array(values, pa.string()), column=column, base=evidence.policy.base)
    except DataError:  # counterfeit or placeholder values that are not in the hierarchy
        return None
    return steps.node_ids[-2] if steps.height >= 2 else None


def _shares(offers: Groups, category: Int32s) -> tuple[Floats, float]:
    width = int(category.max()) + 1
    keys, at = np.unique(offers.group * width + category[offers.value], return_inverse=True)
    counts = np.bincount(at, weights=offers.count)
    top = np.zeros(offers.size)
    np.maximum.at(top, keys // width, counts)
    whole = np.bincount(category[offers.value], weights=offers.count)
    return top / np.maximum(offers.sizes(), 1), float(whole.max() / whole.sum())
