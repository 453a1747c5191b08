"""Veiled records as a release: published columns, row, event and candidates; and `veil.json` beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.release import Guarantee

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.engine.rng import Rng
    from reticent.engine.veil.house import House
    from reticent.engine.veil.people import Seen

AGAINST = (
    "a reader who knows the published prior, the method, who is in the data, all their published fields, and any number of "
    "other persons' records: each candidate keeps exactly its stated weight, its copies among l"
)
NOT_COVERED = (
    "a reader better informed than the prior by a factor kappa: a weight a becomes at most kappa a / (kappa a + 1 - a)",
    "a reader who can exclude candidates of weight x: a becomes a / (1 - x)",
    "persons whose values depend on one another beyond the published fields, unless a unit is declared",
    "what presence, return, absence or a correction says of a value, and whether a person is in the data",
    "the same person published elsewhere under another key, and the loss of the key",
    "singling out by published quasi-identifiers",
)


def guarantee(house: House) -> Guarantee:
    """What a veil claims, and against whom."""
    return Guarantee({"veil": house.l}, AGAINST, NOT_COVERED)


class Sights(Protocol):
    """What of some records is published."""

    @property
    def rows(self) -> npt.NDArray[np.uint32]:
        """Of the prior."""

    @property
    def events(self) -> npt.NDArray[np.uint32]:
        """The number of each among the events of its person."""

    @property
    def candidates(self) -> npt.NDArray[np.uint16]:
        """Codes of the domain, in canonical order."""


def data_table(house: House, published: pa.Table, seen: Sights, order: npt.NDArray[np.int64]) -> pa.Table:
    """The published table, its records in the given order."""
    labels = pa.array(house.domain.labels, pa.string())
    take = pa.array(order)
    columns: dict[str, Any] = {name: published.column(name).take(take) for name in published.column_names}
    columns |= {"row": pa.array(seen.rows[order], pa.int64()), "event": pa.array(seen.events[order], pa.int64())}
    for slot in range(house.l):
        codes = pa.array(seen.candidates[order, slot].astype(np.int32))
        columns[f"{house.sensitive}_{slot + 1}"] = labels.take(codes)
    return pa.table(columns)


def shuffled(size: int, rng: Rng, purpose: str) -> npt.NDArray[np.int64]:
    """An order that tells nothing."""
    return _core.random.permutation(size, key=rng.key(purpose))


def eta(house: House, seen: Seen, key: bytes, epsilon: float) -> list[float]:
    """Per row of the prior the share of records whose truth is not offered, with two-sided geometric noise.

    One record's change moves two counts by one, so noise of scale 2 / epsilon costs epsilon.
    """
    rows = len(house.strata)
    lost = np.bincount(seen.rows[~seen.offered], minlength=rows)
    size = np.bincount(seen.rows, minlength=rows)
    noise = np.random.default_rng(list(key))
    p = 1 - np.exp(-epsilon / 2)
    noisy = lost + noise.geometric(p, rows) - noise.geometric(p, rows)
    shares = np.where(size > 0, noisy / np.maximum(size, 1), 0)
    return [round(float(share), 6) for share in np.clip(shares, 0, 1)]
