"""The kernel of a house: how values follow one another from event to event, as whole numbers on the domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent import _core
from reticent.engine.veil.domain import UNSEEN
from reticent.policy.updates import read_updates

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.engine.veil.domain import Domain
    from reticent.policy import Policy

_WHOLE = 1 << 32
"""A probability of one; what rounds to nothing never happens."""


@dataclass(frozen=True, repr=False)
class Steps:
    """A sparse matrix: the targets of value v stand at `starts[v] : starts[v + 1]`, with their weights."""

    starts: npt.NDArray[np.uint64]
    targets: npt.NDArray[np.uint16]
    weights: npt.NDArray[np.uint64]

    def __repr__(self) -> str:
        return f"Steps({len(self.starts) - 1} values, {len(self.targets)} steps)"

    @classmethod
    def of(cls, policy: Policy, sensitive: str, domain: Domain) -> Steps | None:
        """The kernel that the policy names under `prior`, or the update file of the column; None without either."""
        updates = policy.columns[sensitive].updates
        named = policy.prior.kernel.file if policy.prior is not None and policy.prior.kernel is not None else None
        file = named or (updates.file if updates is not None else None)
        if file is None:
            return None
        matrix: list[dict[int, int]] = [{} for _ in domain.labels]
        for value, following in read_updates(policy.path(file), column=sensitive).items():
            at = domain.code(value)
            for after, probability in following.items():
                to = domain.code(after)
                weight = round(probability * _WHOLE)
                if UNSEEN not in (at, to) and weight:
                    matrix[at][to] = matrix[at].get(to, 0) + weight
        rows = [sorted((following or {at: 1}).items()) for at, following in enumerate(matrix)]
        return cls(
            np.cumsum([0, *map(len, rows)]).astype(np.uint64),
            np.array([to for row in rows for to, _ in row], dtype=np.uint16),
            np.array([weight for row in rows for _, weight in row], dtype=np.uint64),
        )

    def kernel(self) -> _core.veil.Kernel:
        """As the core takes it."""
        return _core.veil.Kernel.matrix(self.starts, self.targets, self.weights)

    def document(self) -> dict[str, Any]:
        """As `veil.json` says it."""
        return {"starts": self.starts.tolist(), "targets": self.targets.tolist(), "weights": self.weights.tolist()}
