"""The veil over one table: each sensitive value among l candidates, quasi-identifiers at their published level.

Guarantee: a reader who knows the published prior and any number of other persons' records gives each candidate exactly its
    stated weight, copies / l (docs/veil.md, with the tests that show it).
Not covered: readers better informed than the prior, by the factor they are; see `reticent.engine.veil.release`.
Cost: linear; a few tens of nanoseconds per candidate in the native core.
Reference: docs/veil.md.
Differences from the paper: ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from reticent.engine.table.base import TablePublisher
from reticent.engine.veil.house import House
from reticent.engine.veil.veiling import Veiling
from reticent.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent.engine.rng import Rng
    from reticent.policy import Policy
    from reticent.release import Release


class Veil(TablePublisher):
    """The veil of one table."""

    method = "veil"

    @classmethod
    def pinned(cls, policy: Policy) -> str:
        """The digest of the house."""
        return House.of(policy, cls.kind).digest

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        self._veiling = Veiling(policy, rng, self.kind)

    def release(self, table: pa.Table) -> Release:
        """Veils every record."""
        if self.policy.person is not None:
            further = table.num_rows - int(pc.count_distinct(table.column(self.policy.person), mode="all").as_py())
            if further:
                raise DataError(
                    f"{further:,} records are a further one of a person, in no order that the policy names.",
                    hint="Keep one record per person, or publish them as a series or a stream.",
                )
        return self._veiling.release(self._veiling.veil(table), number=1)
