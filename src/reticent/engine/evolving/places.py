"""Places: the row of the prior of every record, quickly for the few records of a usual change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent.arrays import UInt32s
from reticent.policy import Policy

if TYPE_CHECKING:
    from reticent.engine.veil.levels import Levels

_FEW = 8


class Places:
    """Climbs the hierarchies as `Levels` does, and remembers which values fit them and where small batches led."""

    def __init__(self, levels: Levels, policy: Policy, by: Sequence[str]) -> None:
        self._levels, self._by = levels, tuple(by)
        self._fits: dict[str, set[Any]] = {
            name: set() for name in policy.quasi if policy.columns[name].hierarchy is not None
        }
        self._rows: dict[tuple[Any, ...], int] = {}

    def of(self, batch: pa.Table) -> UInt32s:
        """The rows of a batch; a value outside its hierarchy is refused, whether or not the prior asks for it."""
        if batch.num_rows > _FEW:
            return self._levels.publish(batch)[1]
        keys = self._keys(batch)
        cells = {name: set(batch.column(name).to_pylist()) for name in self._fits}
        if not all(key in self._rows for key in keys) or any(cells[name] - fits for name, fits in self._fits.items()):
            rows = self._levels.publish(batch)[1]
            self._rows.update(zip(keys, rows.tolist(), strict=True))
            for name, fits in self._fits.items():
                fits.update(cells[name])
        return np.array([self._rows[key] for key in keys], dtype=np.uint32)

    def _keys(self, batch: pa.Table) -> list[tuple[Any, ...]]:
        if not self._by:
            return [()] * batch.num_rows
        return list(zip(*(batch.column(name).to_pylist() for name in self._by), strict=True))
