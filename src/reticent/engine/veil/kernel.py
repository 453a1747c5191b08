"""The transition kernel: how values follow one another from event to event, in integers on the value domain.

The header of the file names one of two forms. `value,next,probability` is a full matrix, as in the update files of series.
`value,stay,within` gives the probability that each value stays, and the share of changes (the same for all values) that end
below the same parent node; the other changes follow the prior.
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
"""The integer for a probability of 1; a probability that rounds to 0 never happens."""
_STAY_HEADER = ["value", "stay", "within"]


@dataclass(frozen=True, repr=False)
class MatrixKernel:
    """A sparse matrix: `starts[v] : starts[v + 1]` are the targets of value v, with their weights."""

    starts: UInt64s
    targets: UInt16s
    weights: UInt64s

    def to_core(self) -> _core.veil.Kernel:
        """Return the kernel of the core."""
        return _core.veil.Kernel.from_matrix(self.starts, self.targets, self.weights)

    def stay_probabilities(self, segments: UInt64s) -> Floats:
        """Return the probability that a value stays, strata x values."""
        own = np.repeat(np.arange(len(self.starts) - 1), (self.starts[1:] - self.starts[:-1]).astype(np.int64))
        weights = self.weights.astype(np.float64)
        totals = np.bincount(own, weights, minlength=segments.shape[1])
        stays = np.bincount(own, weights * (own == self.targets), minlength=segments.shape[1])
        return np.tile(stays / totals, (len(segments), 1))

    def to_metadata(self) -> dict[str, Any]:
        """Return the entry of `veil.json`."""
        return {"starts": self.starts.tolist(), "targets": self.targets.tolist(), "weights": self.weights.tolist()}


@dataclass(frozen=True, repr=False)
class StayKernel:
    """In units of `SLOT_LENGTH`: how often each value stays, and the share within the parent; and the parent of each value."""

    stay: UInt64s
    within: int
    parents: UInt32s

    def to_core(self) -> _core.veil.Kernel:
        """Return the kernel of the core."""
        return _core.veil.Kernel.from_stays(self.stay, within=self.within, parents=self.parents)

    def stay_probabilities(self, segments: UInt64s) -> Floats:
        """Return the probability that a value stays, strata x values; 1 where the stratum has no other value."""
        alone = (segments > 0).sum(axis=1) <= 1
        return np.where(alone[:, None], 1.0, self.stay / _core.veil.SLOT_LENGTH)

    def to_metadata(self) -> dict[str, Any]:
        """Return the entry of `veil.json`."""
        return {"stay": self.stay.tolist(), "within": self.within, "parents": self.parents.tolist()}


TransitionKernel = MatrixKernel | StayKernel


def read_kernel(policy: Policy, sensitive: str, domain: Domain) -> TransitionKernel | None:
    """Read the kernel that `prior` in the policy names, or the update file of the column; None without either."""
    updates = policy.columns[sensitive].updates
    named = policy.prior.kernel.file if policy.prior is not None and policy.prior.kernel is not None else None
    file = named or (updates.file if updates is not None else None)
    if file is None:
        return None
    path = policy.path(file)
    lines = read_csv_rows(path, "prior.kernel", "Write value,next,probability or value,stay,within.")
    if lines and [cell.strip().lower() for cell in lines[0]] == _STAY_HEADER:
        return _parse_stays(lines[1:], path.name, domain)
    return _build_matrix(read_updates(path, column=sensitive), domain)


def _build_matrix(updates: dict[Any, dict[Any, float]], domain: Domain) -> MatrixKernel:
    values = list(dict.fromkeys([*updates, *(after for row in updates.values() for after in row)]))
    codes = dict(zip(values, domain.encode(pa.array(values, pa.string())).tolist(), strict=True))
    matrix: list[dict[int, int]] = [{} for _ in domain.labels]
    for value, changes in updates.items():
        at = codes[value]
        for after, probability in changes.items():
            to, weight = codes[after], round(probability * _PROBABILITY_ONE)
            if OUTSIDE not in (at, to) and weight:
                matrix[at][to] = matrix[at].get(to, 0) + weight
    rows = [sorted((changes or {at: 1}).items()) for at, changes in enumerate(matrix)]
    return MatrixKernel(
        np.cumsum([0, *map(len, rows)]).astype(np.uint64),
        np.array([to for row in rows for to, _ in row], dtype=np.uint16),
        np.array([weight for row in rows for _, weight in row], dtype=np.uint64),
    )


def _parse_stays(lines: list[list[str]], file: str, domain: Domain) -> StayKernel:
    """Parse the stay form; a value that the file lacks gets the mean stay probability."""
    known: dict[int, float] = {}
    shares = set()
    for number, line in enumerate(lines, 2):
        own, within = _parse_shares(line, f"prior.kernel: {file}, line {number}")
        shares.add(within)
        known[domain.code(line[0] or None)] = own
    if len(shares) != 1:
        raise PolicyError(
            f"prior.kernel: {file} has {len(shares)} different values in the column 'within'.",
            hint="Write the same share on every line.",
        )
    mean = sum(known.values()) / len(known)
    stay = [round(known.get(code, mean) * _core.veil.SLOT_LENGTH) for code in range(len(domain))]
    return StayKernel(np.array(stay, dtype=np.uint64), round(shares.pop() * _core.veil.SLOT_LENGTH), domain.parents())


def _parse_shares(line: list[str], place: str) -> tuple[float, float]:
    try:
        own, within = (float(cell) for cell in line[1:])
    except ValueError:
        own = within = -1.0
    if not (0 <= own <= 1 and 0 <= within <= 1):
        raise PolicyError(f"{place}: stay and within must be between 0 and 1.", hint="Write value,stay,within.")
    return own, within
