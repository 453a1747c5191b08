"""l-diversity anew for each release, independent of other releases: the baseline for m-Distinct.

Guarantee: every equivalence class of a release shows l different sensitive values, and meets k and t where the policy asks for
    them, against an attacker who sees this release alone, and knows who is in it and all their quasi-identifiers.
Not covered: an attacker who compares several releases, which exclude one value of a person after the other: of a census that
    changed, two thirds were disclosed after 20 releases at l = 2 (`docs/reproduce/m-distinct.md`).
Cost: that of Mondrian, for each release.
Reference: A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", ICDE 2006; F. Li, S. Zhou, "Challenging more updates:
    towards anonymous re-publication of fully dynamic datasets", 2008, section V, where it is the baseline.
Differences from the paper: Mondrian forms the classes, where the paper searches full-domain levels; l counts distinct values, as there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.base import Members, Original, claims
from reticent.engine.identifiers import policy_exclusions
from reticent.engine.rng import Rng
from reticent.engine.series.base import SeriesPublisher
from reticent.engine.snapshot import pack
from reticent.engine.table.encoded_table import EncodedTable, apply_limits
from reticent.engine.table.generalized import publish
from reticent.engine.table.mondrian import find_classes
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.privacy import LSpec
from reticent.release import Guarantee, Release, person_hashes
from reticent.release.wording import AGAINST, L_DIVERSITY, exclusions


class LDiversity(SeriesPublisher):
    """Publishes the same persons again, independent of what was published before."""

    method = "l-diversity"

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        if "max_risk" in policy.series.model_fields_set:
            raise PolicyError(
                "series.max_risk: l-diversity does not bound the risk over several releases.",
                hint="Remove max_risk, or use series: {method: m-distinct}.",
            )
        self._policy_with_l = _policy_with_l(policy)
        self.releases = 0

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of every release by itself."""
        not_covered = exclusions(*L_DIVERSITY) + policy_exclusions(self._policy_with_l)
        return Guarantee(claims(self._policy_with_l), AGAINST["generalized"], not_covered)

    def _publish(self, table: pa.Table) -> Release:
        self.releases += 1
        # A key per release: the same order in every release would link the records of a person.
        rng = Rng(self.rng.key(f"series order {self.releases}"), seeded=self.rng.seeded)
        encoded = EncodedTable.from_table(self._policy_with_l, table)
        encoded = replace(encoded, cancellation=apply_limits(encoded.cancellation, self._policy_with_l))
        release, places = publish(encoded, table, find_classes(encoded), rng)
        self._original, self._figures = Original(table, places), dict(release.metrics)
        names = table.column(str(self.policy.person)).cast(pa.string()).to_pylist()
        hashes = person_hashes(names, self.rng.key("series persons"))
        self._members = Members(hashes[places], np.arange(len(places), dtype=np.int64))
        return replace(
            release, kind=self.kind, method=self.method, guarantee=self.guarantee, policy_hash=self.policy.hash
        )

    def snapshot(self) -> bytes:
        """Return the number of releases, the pending records, and the key."""
        state, tables = self._state()
        return pack(self.policy, self.rng, state | {"releases": self.releases, "metrics": self._figures}, tables)

    def _resume(self, saved: dict[str, Any], _: dict[str, pa.Table], __: dict[str, bytes]) -> None:
        self.releases, self._figures = saved["releases"], saved["metrics"]


def _policy_with_l(policy: Policy) -> Policy:
    """Return the policy with l of the section `series`, which is never less strict than that of `privacy`."""
    l = (
        LSpec.model_validate(policy.m)
        if policy.privacy.l is None
        else policy.privacy.l.model_copy(update={"l": policy.m})
    )
    return policy.model_copy(update={"privacy": policy.privacy.model_copy(update={"l": l})})
