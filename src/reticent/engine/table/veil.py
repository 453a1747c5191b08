"""The veil over one table: each sensitive value among l candidates, quasi-identifiers at their published level.

Guarantee: a reader who knows the published prior and any number of other persons' records gives each candidate exactly its
    stated weight, copies / l (docs/veil.md, with the tests that show it).
Not covered: readers better informed than the prior, by the factor they are; see `reticent.engine.veil.release`.
Cost: linear; a few tens of nanoseconds per candidate in the native core.
Reference: docs/veil.md.
Differences from the paper: ours.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.engine.table.base import TablePublisher
from reticent.engine.veil.house import House
from reticent.engine.veil.people import People, hashes_of
from reticent.engine.veil.release import data_table, eta, guarantee, shuffled
from reticent.errors import DataError, GuaranteeError
from reticent.release import Counts, Release

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.engine.rng import Rng
    from reticent.policy import Policy

MOST_UNSEEN = 0.1
"""Beyond this share of truths that are not offered the prior is of another world."""


class Veil(TablePublisher):
    """The veil of one table."""

    method = "veil"

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        self.house  # noqa: B018 - refuses a policy without a prior at once

    @cached_property
    def house(self) -> House:
        """What the key pins."""
        return House.of(self.policy, self.kind)

    def release(self, table: pa.Table) -> Release:
        """Veils every record."""
        house = self.house
        persons, units = self._persons(table)
        published, rows = house.levels.publish(table)
        people = People(house.veil(self.rng.house_key("veil")), house.l)
        seen = people.take(persons, units, rows, house.domain.encode(table.column(house.sensitive)))
        unseen = float(np.mean(~seen.offered))
        if unseen > MOST_UNSEEN:
            raise GuaranteeError(
                f"{unseen:.0%} of the sensitive values are not in the prior; nothing was published.",
                hint="Make the prior again from data like these, or with a coarser domain.",
            )
        epsilon = (self.policy.prior and self.policy.prior.epsilon) or 1.0
        size = table.num_rows
        noise = eta(house, seen, self.rng.key(f"veil eta {size}"), epsilon)
        return Release(
            kind=self.kind,
            shape="veil",
            method=self.method,
            tables={"data": data_table(house, published, seen, shuffled(size, self.rng, "veil rows"))},
            guarantee=guarantee(house),
            counts=Counts(size, size, 0, 0),
            policy_hash=self.policy.hash,
            metrics={},
            explain={"rows_of_the_prior": len(house.strata), "values": len(house.domain)},
            documents={"veil": house.document() | {"eta": noise, "eta_epsilon": epsilon, "house": house.digest}},
            seeded=self.rng.seeded,
        )

    def _persons(self, table: pa.Table) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Persons, and the units that the veil is keyed by; without a person every record is somebody else."""
        name = self.policy.person
        if name is None:
            order = shuffled(table.num_rows, self.rng, "veil nobody")
            persons = order.astype(np.uint64) ^ np.frombuffer(self.rng.key("veil nobody")[:8], dtype="<u8")[0]
        else:
            persons = hashes_of(table.column(name), self.rng, name)
            repeated = table.num_rows - len(np.unique(persons))
            if repeated:
                raise DataError(
                    f"{repeated:,} records are a further one of a person, in no order that the policy names.",
                    hint="Keep one record per person.",
                )
        unit = self.policy.prior.unit if self.policy.prior else None
        return persons, persons if unit is None else hashes_of(table.column(unit), self.rng, unit)
