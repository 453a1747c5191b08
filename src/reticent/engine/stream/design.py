"""The design prior of a stream: from a file of the past, from the domain, or from the epoch that ends.

Counts become a prior that is fit for a design: rare values get an upper confidence bound, since a value met once in the
past may well be three times as frequent, and `other` gets the share that unseen values may have by the rule of three.
All numbers are whole, so that the classes made from them are exact.
"""

from __future__ import annotations

import csv
import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reticent.engine.classes import design
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy.tree import read_tree, tree_from_dict

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from reticent.policy import Policy

Label = str | None
# Below this count a relative error of one in five is likely; above it the count is taken as it is.
_RARE = 30
# Not seen in n records: with 95% confidence its share is at most 3/n (rule of three).
_UNSEEN = 3


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
    if policy.stream.prior is not None:
        return Prior(_read_counts(policy), "past")
    spec = policy.columns[column].hierarchy
    if spec is not None and spec.file is not None:
        return Prior(dict.fromkeys(read_tree(policy.path(spec.file), column=column).paths, 1), "domain")
    if spec is not None and spec.tree is not None:
        return Prior(dict.fromkeys(tree_from_dict(spec.tree, column=column).paths, 1), "domain")
    raise PolicyError(
        f"A stream needs to know which values '{column}' can have before the first record comes.",
        hint="Write stream: {prior: {file: prior.csv}} with value,count of the past (0 is allowed), or give the column "
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
    """Counts fit for a design: rare values raised to an upper confidence bound, room for unseen ones."""
    if prior.source == "domain":
        return {**dict.fromkeys(prior.counts, 1), other: 1}
    raised = {label: max(n, min(n + math.isqrt(n) + 1, _RARE)) for label, n in prior.counts.items()}
    # A share of 3/n, but never more than a single value may have in a short past.
    room = max(1, min(_UNSEEN, max(raised.values(), default=1)))
    return {**raised, other: max(raised.get(other, 0), room)}


def plan(counts: Mapping[int, int], l: int, *, copies: int, rank: npt.NDArray[np.uint32]) -> Plan:
    """The classes of a prior on codes, slots in the published order."""
    classes = design(counts, l, copies=copies)
    total = sum(counts.values())
    rows = [sorted(entry.values, key=lambda code: int(rank[code])) for entry in classes]
    weights = [int(entry.weight * total) for entry in classes]
    return Plan(np.array(rows, dtype=np.int32), np.array(weights, dtype=np.uint64))


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


def _read_counts(policy: Policy) -> dict[Label, int]:
    path = policy.path(policy.stream.prior.file)  # type: ignore[union-attr]
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise PolicyError(
            f"stream.prior: cannot read {path.name} as CSV.", hint="Give a file of value,count."
        ) from None
    counts: dict[Label, int] = {}
    for number, row in enumerate(rows, 1):
        if number == 1 and [cell.strip().lower() for cell in row] == ["value", "count"]:
            continue
        if len(row) != 2 or not row[1].strip().isdigit():
            raise PolicyError(
                f"stream.prior: line {number} of {path.name} is not a value and a whole count.",
                hint="Write one value,count per line.",
            )
        label = row[0] or None
        counts[label] = counts.get(label, 0) + int(row[1])
    if not any(counts.values()):
        raise PolicyError(f"stream.prior: {path.name} holds no counts.", hint="Give value,count of the past.")
    return counts
