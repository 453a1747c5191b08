"""What the veil does for a batch, whatever the kind of release: persons, rows of the prior, candidates, the release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reticent.engine.veil.house import House
from reticent.engine.veil.people import People, Seen, hashes_of
from reticent.engine.veil.release import data_table, eta, guarantee, shuffled
from reticent.errors import GuaranteeError
from reticent.release import Counts, Release

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from reticent.engine.rng import Rng
    from reticent.policy import Policy
    from reticent.release.release import Kind

MOST_UNSEEN = 0.1
"""Beyond this share of truths that are not offered the prior is of another world."""
USUAL_EPSILON = 1.0


@dataclass(frozen=True, repr=False)
class Veiled:
    """A batch under the veil: its published columns, and what is offered for each record. Private: it tells who is who."""

    published: pa.Table
    seen: Seen
    persons: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.persons)


class Veiling:
    """A house with its key and what it remembers of persons."""

    def __init__(self, policy: Policy, rng: Rng, kind: Kind) -> None:
        self._policy, self._rng, self._kind = policy, rng, kind
        self.house = House.of(policy, kind)
        self.people = People(self.house.veil(rng.house_key("veil")))

    def veil(self, table: pa.Table, *, now: int | None = None) -> Veiled:
        """The next event of the person of every record."""
        persons, units = self._persons(table)
        published, rows = self.house.levels.publish(table)
        values = self.house.domain.encode(table.column(self.house.sensitive))
        return Veiled(published, self.people.take(persons, units, rows, values, now=now), persons)

    def release(self, veiled: Veiled, *, number: int, held: int = 0) -> Release:
        """A veiled batch as a release; refuses one whose values the prior does not know."""
        house, seen, size = self.house, veiled.seen, len(veiled)
        unseen = float(np.mean(~seen.offered)) if size else 0.0
        if unseen > MOST_UNSEEN:
            raise GuaranteeError(
                f"{unseen:.0%} of the sensitive values are not offered by the prior; nothing was published.",
                hint="Make the prior again from data like these, or with a coarser domain.",
            )
        epsilon = (self._policy.prior and self._policy.prior.epsilon) or USUAL_EPSILON
        shares = eta(house, seen, self._rng.key(f"veil eta {number}"), epsilon)
        return Release(
            kind=self._kind,
            shape="veil",
            method="veil",
            tables={
                "data": data_table(house, veiled.published, seen, shuffled(size, self._rng, f"veil rows {number}"))
            },
            guarantee=guarantee(house),
            counts=Counts(size + held, size, held, 0),
            policy_hash=self._policy.hash,
            explain={"rows_of_the_prior": len(house.strata), "values": len(house.domain), "publication": number},
            documents={"veil": house.document() | {"eta": shares, "eta_epsilon": epsilon, "house": house.digest}},
            seeded=self._rng.seeded,
        )

    def _persons(self, table: pa.Table) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Persons, and the units that the veil is keyed by; without a person every record is somebody else."""
        name = self._policy.person
        if name is None:
            order = shuffled(table.num_rows, self._rng, "veil nobody").astype(np.uint64)
            persons = order ^ np.frombuffer(self._rng.key("veil nobody")[:8], dtype="<u8")[0]
        else:
            persons = hashes_of(table.column(name), self._rng, name)
        unit = self._policy.prior.unit if self._policy.prior else None
        return persons, persons if unit is None else hashes_of(table.column(unit), self._rng, unit)
