"""The design prior of a stream: from a file of the past, from the domain, or from the epoch that ends.

Counts become a prior that is fit for a design: values get an upper bound that is the wider the rarer they are, and `other`
gets room for values that nobody has seen. All numbers are whole, so that the classes made from them are exact.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reticent.engine.classes import design
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy.prior import read_prior
from reticent.policy.tree import read_tree, tree_from_dict

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from reticent.policy import Policy

Label = str | None


@dataclass(frozen=True, repr=False)
class Prior:
    """Counts per value and where they come from: "past", "domain" or "epoch"."""

    counts: Mapping[Label, int]
    source: str

    def __repr__(self) -> str:
        return f"Prior({len(self.counts)} values from the {self.source})"


@dataclass(frozen=True)
class Plan:
    """A design on codes: one row of slots per class, in published order, and whole weights."""

    classes: npt.NDArray[np.int32]
    weights: npt.NDArray[np.uint64]


def starting_prior(policy: Policy) -> Prior:
    """The prior a stream starts with; refuses a policy that names neither the past nor the domain."""
    column = sensitive_column(policy)
    if policy.prior is not None and policy.prior.file is not None:
        return Prior(read_prior(policy.path(policy.prior.file), "prior"), "past")
    spec = policy.columns[column].hierarchy
    if spec is not None and spec.file is not None:
        return Prior(dict.fromkeys(read_tree(policy.path(spec.file), column=column).paths, 1), "domain")
    if spec is not None and spec.tree is not None:
        return Prior(dict.fromkeys(tree_from_dict(spec.tree, column=column).paths, 1), "domain")
    raise PolicyError(
        f"A stream needs to know which values '{column}' can have before the first record comes.",
        hint="Write prior: {file: prior.csv} with value,count of the past (0 is allowed), or give the column "
        "a hierarchy from a file.",
    )


def sensitive_column(policy: Policy) -> str:
    """The one sensitive column of a stream."""
    if len(policy.sensitive) != 1:
        raise PolicyError(
            f"A stream needs exactly one sensitive column; the policy has {len(policy.sensitive)}.",
            hint="Merge them into one column, or keep the others inside as identifiers.",
        )
    return policy.sensitive[0]


def check_possible(counts: Mapping[Label, int], l: int) -> None:
    """Refuses an l that the most frequent value forbids, and offers the largest that is possible."""
    total, top = sum(counts.values()), max(counts.values(), default=0)
    if top and top * l <= total:
        return
    most = total // top if top else 0
    offer = f"The largest possible l is {most}." if most > 1 else "No l above 1 is possible with this prior."
    raise GuaranteeError(
        f"l = {l} cannot be met: the most frequent value makes up {top / total if total else 1:.4f} of the prior, "
        f"more than 1/{l}; nothing was published.",
        hint=f"No method can keep every posterior at 1/{l} here. {offer}",
    )


def widened(prior: Prior, other: str) -> dict[Label, int]:
    """Counts fit for a design, in eighths of a record: a little above what was seen, the rarer the more.

    A value that comes more often than its design forces whole groups open, one that comes less often only leaves its own
    slots free. So one record and a quarter of a standard deviation are added to each count (measured best on short pasts),
    and `other`, for what nobody has seen, counts as one record.
    """
    if prior.source == "domain":
        return {**dict.fromkeys(prior.counts, 1), other: 1}
    raised = {label: 8 * n + 2 * math.isqrt(n) + 8 for label, n in prior.counts.items()}
    return {**raised, other: raised.get(other, 8)}


def plan(
    counts: Mapping[int, int], l: int, *, copies: int, rank: npt.NDArray[np.uint32], last: Plan | None = None
) -> Plan:
    """The classes of a prior on codes, slots in the published order.

    Args:
        counts: the design prior.
        l: values per class, in `copies` slots each.
        copies: slots per class divided by l.
        rank: the published order of the codes.
        last: the design in use; its classes are kept as far as the prior allows, so that their open groups go on
            filling up.
    """
    # What each value needs in classes, and the weight all classes have together: the prior can be met while no need
    # exceeds the rest.
    left, rest = {code: l * n for code, n in counts.items()}, sum(counts.values())
    kept: list[tuple[tuple[int, ...], int]] = []
    if last is not None and copies == 1:
        kept, left, rest = _keep(last, left, rest)
    made = kept
    if rest:
        classes = design({code: n for code, n in left.items() if n}, l, copies=copies)
        made = kept + [
            (tuple(sorted(c.values, key=lambda code: int(rank[code]))), int(c.weight * rest)) for c in classes
        ]
    return Plan(np.array([row for row, _ in made], dtype=np.int32), np.array([w for _, w in made], dtype=np.uint64))


def _keep(last: Plan, left: dict[int, int], rest: int) -> tuple[list[tuple[tuple[int, ...], int]], dict[int, int], int]:
    """Gives the last design's classes as much of their old weight as leaves a prior that can still be met.

    What is left must obey the same rule as any prior here: no value above the rest.
    """
    need = np.zeros(max(max(left, default=0), int(last.classes.max())) + 1, dtype=np.int64)
    need[list(left)] = list(left.values())
    before, total = int(last.weights.sum()), rest
    order = np.argsort(-last.weights.astype(np.int64), kind="stable")
    kept: dict[tuple[int, ...], int] = {}
    # First the old weights, then more where they leave room: a class that goes on is worth more than a new one.
    for limits in (last.weights, None):
        for at in order:
            row = last.classes[at]
            inside = need[row]
            need[row] = 0
            wanted = rest if limits is None else int(limits[at]) * total // before
            weight = min(wanted, int(inside.min()), rest - int(need.max()))
            need[row] = inside - weight
            rest -= weight
            if weight:
                key = tuple(int(code) for code in row)
                kept[key] = kept.get(key, 0) + weight
    return list(kept.items()), {code: int(n) for code, n in enumerate(need) if n}, rest


def blurred(counts: Mapping[Label, int], key: bytes, epoch: int) -> dict[Label, int]:
    """Counts with two-sided geometric noise (epsilon = 1 per record), before they shape a public design.

    The next epoch's classes tell the prior they were made for; exact counts would tell of the last epoch's records.
    """
    return {label: max(0, n + _geometric(key, epoch, label)) for label, n in counts.items()}


def _geometric(key: bytes, epoch: int, label: Label) -> int:
    digest = hashlib.blake2b(repr((epoch, label)).encode(), key=key, digest_size=16).digest()
    sides = (int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big"))
    up, down = (int(-math.log((side + 1) / 2**64)) for side in sides)
    return up - down
