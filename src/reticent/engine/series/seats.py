"""Seats: the groups for life of a sealed series, one place per component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, repr=False)
class Seats:
    """One row per group, one column per place.

    Attributes:
        members: keyed hash of the person in each place.
        real: whether a person is still there; otherwise a counterfeit goes on.
        values: sensitive code shown last.
    """

    members: npt.NDArray[np.uint64]
    real: npt.NDArray[np.bool_]
    values: npt.NDArray[np.int32]

    @classmethod
    def empty(cls, size: int) -> Seats:
        """No groups yet."""
        return cls(
            np.zeros((0, size), dtype=np.uint64), np.zeros((0, size), dtype=bool), np.zeros((0, size), dtype=np.int32)
        )

    def alive(self) -> Seats:
        """Without the groups that have no person left."""
        some = self.real.any(axis=1)
        return Seats(self.members[some], self.real[some], self.values[some])

    def join(self, other: Seats) -> Seats:
        """These groups and those."""
        return Seats(
            np.concatenate([self.members, other.members]),
            np.concatenate([self.real, other.real]),
            np.concatenate([self.values, other.values]),
        )

    def to_tables(self) -> dict[str, pa.Table]:
        """The places, row by row."""
        columns = {"members": self.members.ravel(), "real": self.real.ravel(), "seated": self.values.ravel()}
        return {"seats": pa.table(columns)}

    @classmethod
    def from_tables(cls, tables: dict[str, pa.Table], size: int) -> Seats:
        """Reads what `to_tables` gave."""
        table = tables["seats"]
        parts = (table.column(name).to_numpy().reshape(-1, size) for name in ("members", "real", "seated"))
        return cls(*(np.ascontiguousarray(part) for part in parts))


def seat(component: npt.NDArray[np.int32], slots: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Seats newcomers of one class: as many groups as the largest component has persons; -1 where a counterfeit sits.

    Args:
        component: component of each newcomer, neighbours in the order of the quasi-identifiers.
        slots: the components of the class.

    Only equality of components is used, so that renaming the components of a class changes nothing else.
    """
    lists = [np.flatnonzero(component == slot) for slot in slots]
    groups = max(len(rows) for rows in lists)
    table = np.full((groups, len(slots)), -1, dtype=np.int64)
    for at, rows in enumerate(lists):
        if len(rows):
            places = ((2 * np.arange(len(rows)) + 1) * groups) // (2 * len(rows))
            table[places, at] = rows
    return table


def spread(points: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """An order of the points in which neighbours are near (Morton codes)."""
    axes = min(points.shape[1], 6)
    bits = 60 // max(1, axes)
    grid = np.minimum(points[:, :axes] * (1 << bits), (1 << bits) - 1).astype(np.uint64)
    code = np.zeros(len(points), dtype=np.uint64)
    for bit in range(bits - 1, -1, -1):
        for axis in range(axes):
            code = (code << np.uint64(1)) | ((grid[:, axis] >> np.uint64(bit)) & np.uint64(1))
    order: npt.NDArray[np.int64] = np.argsort(code, kind="stable")
    return order
