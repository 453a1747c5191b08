"""The kernel of a house: how values follow one another from event to event, as whole numbers on the domain.

Two forms, told by the head of the file: `value,next,probability` is a matrix written out, as the update files of series;
`value,stay,within` says how often each value stays, and which share of the changes (the same for all) ends under the parent
node of the hierarchy, the rest going by the prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import Floats, UInt16s, UInt32s, UInt64s
from reticent.engine.veil.domain import OUTSIDE, Domain
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.prior import read_csv_rows
from reticent.policy.updates import read_updates

_PROBABILITY_ONE = 1 << 32
"""A probability of one; what rounds to nothing never happens."""
_STAY_HEADER = ["value", "stay", "within"]


@dataclass(frozen=True, repr=False)
class MatrixKernel:
    """A sparse matrix: the targets of value v stand at `starts[v] : starts[v + 1]`, with their weights."""

    starts: UInt64s
    targets: UInt16s
    weights: UInt64s

    def to_core(self) -> _core.veil.Kernel:
        """As the core takes it."""
        return _core.veil.Kernel.from_matrix(self.starts, self.targets, self.weights)

    def stay_probabilities(self, segments: UInt64s) -> Floats:
        """Rows x values: how likely a value stays."""
        own = np.repeat(np.arange(len(self.starts) - 1), (self.starts[1:] - self.starts[:-1]).astype(np.int64))
        weights = self.weights.astype(np.float64)
        whole = np.bincount(own, weights, minlength=segments.shape[1])
        kept = np.bincount(own, weights * (own == self.targets), minlength=segments.shape[1])
        return np.tile(kept / whole, (len(segments), 1))

    def to_metadata(self) -> dict[str, Any]:
        """As `veil.json` says it."""
        return {"starts": self.starts.tolist(), "targets": self.targets.tolist(), "weights": self.weights.tolist()}


@dataclass(frozen=True, repr=False)
class StayKernel:
    """Few numbers, in units of the line: the stay of every value, the share within the parent, and who is whose sibling."""

    stay: UInt64s
    within: int
    parents: UInt32s

    def to_core(self) -> _core.veil.Kernel:
        """As the core takes it."""
        return _core.veil.Kernel.from_stays(self.stay, within=self.within, parents=self.parents)

    def stay_probabilities(self, segments: UInt64s) -> Floats:
        """Rows x values: how likely a value stays; for certain where its row has no other."""
        alone = (segments > 0).sum(axis=1) <= 1
        return np.where(alone[:, None], 1.0, self.stay / _core.veil.SLOT_LENGTH)

    def to_metadata(self) -> dict[str, Any]:
        """As `veil.json` says it."""
        return {"stay": self.stay.tolist(), "within": self.within, "parents": self.parents.tolist()}


TransitionKernel = MatrixKernel | StayKernel


def read_kernel(policy: Policy, sensitive: str, domain: Domain) -> TransitionKernel | None:
    """The kernel that the policy names under `prior`, or the update file of the column; None without either."""
    updates = policy.columns[sensitive].updates
    named = policy.prior.kernel.file if policy.prior is not None and policy.prior.kernel is not None else None
    file = named or (updates.file if updates is not None else None)
    if file is None:
        return None
    path = policy.path(file)
    lines = read_csv_rows(path, "prior.kernel", "Give value,next,probability or value,stay,within.")
    if lines and [cell.strip().lower() for cell in lines[0]] == _STAY_HEADER:
        return _parse_stays(lines[1:], path.name, domain)
    return _build_matrix(read_updates(path, column=sensitive), domain)


def _build_matrix(updates: dict[Any, dict[Any, float]], domain: Domain) -> MatrixKernel:
    values = list(dict.fromkeys([*updates, *(after for row in updates.values() for after in row)]))
    codes = dict(zip(values, domain.encode(pa.array(values, pa.string())).tolist(), strict=True))
    matrix: list[dict[int, int]] = [{} for _ in domain.labels]
    for value, following in updates.items():
        at = codes[value]
        for after, probability in following.items():
            to, weight = codes[after], round(probability * _PROBABILITY_ONE)
            if OUTSIDE not in (at, to) and weight:
                matrix[at][to] = matrix[at].get(to, 0) + weight
    rows = [sorted((following or {at: 1}).items()) for at, following in enumerate(matrix)]
    return MatrixKernel(
        np.cumsum([0, *map(len, rows)]).astype(np.uint64),
        np.array([to for row in rows for to, _ in row], dtype=np.uint16),
        np.array([weight for row in rows for _, weight in row], dtype=np.uint64),
    )


def _parse_stays(lines: list[list[str]], file: str, domain: Domain) -> StayKernel:
    """A value of the domain that the file lacks stays as often as the others do on average."""
    known: dict[int, float] = {}
    shares = set()
    for number, line in enumerate(lines, 2):
        own, within = _parse_shares(line, f"prior.kernel: {file}, line {number}")
        shares.add(within)
        known[domain.code(line[0] or None)] = own
    if len(shares) != 1:
        raise PolicyError(
            f"prior.kernel: {file} gives {len(shares)} different shares within the parent.",
            hint="Write the same on every line.",
        )
    usual = sum(known.values()) / len(known)
    stay = [round(known.get(code, usual) * _core.veil.SLOT_LENGTH) for code in range(len(domain))]
    return StayKernel(np.array(stay, dtype=np.uint64), round(shares.pop() * _core.veil.SLOT_LENGTH), domain.parents())


def _parse_shares(line: list[str], place: str) -> tuple[float, float]:
    try:
        own, within = (float(cell) for cell in line[1:])
    except ValueError:
        own = within = -1.0
    if not (0 <= own <= 1 and 0 <= within <= 1):
        raise PolicyError(f"{place}: two shares between 0 and 1 are needed.", hint="Write value,stay,within.")
    return own, within
