"""The judge of a running stream under the veil: what is about to be delivered, beside all that was delivered before.

Guarantee: of every batch that holds: positions rise; every record has l candidates of the domain in canonical order and a row of
    the prior; a first sight is a set that its row can give; the events of a person count 0, 1, 2, ... under one row, and each
    set can follow the one before it along the published kernel. The line itself is that of the policy's prior.
Not covered: whether a record's row is that of its published fields, and whether the sets were drawn with the right probability:
    the attacks of the audit look at that.
Cost: one look-up per record in a table of persons; 14 + 2 l bytes and a hash per person.
Reference: docs/veil.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.arrays import UInt64s
from reticent.errors import CORRUPT_HINT, StateError
from reticent.policy import Policy
from reticent.verify.published import Published
from reticent.verify.veil.possible_sets import PossibleSets
from reticent.verify.veil.verifier import has_pseudonyms, line_findings, prior_findings

if TYPE_CHECKING:
    from reticent import _core


class VeilVerifier:
    """Judges veiled records; remembers the last set of every person.

    Args:
        policy: what is asked for.
        document: the published side of the veil.
        followed: makes the memory of persons, in the core: code of the judge's own, handed in because nothing of the core is loaded here.
    """

    def __init__(
        self, policy: Policy, metadata: Mapping[str, Any], make_memory: Callable[..., _core.verify.TrajectoryVerifier]
    ) -> None:
        self._possible = PossibleSets(metadata)
        line = self._possible.line
        release = Published("", "veil", kind="stream", claims={"veil": line.l})
        findings = [*line_findings(line, policy, release), *prior_findings(line, metadata, policy)]
        self._line_violations = [finding.claim for finding in findings if not finding.holds]
        self._has_pseudonyms, self._quasi = has_pseudonyms(policy), frozenset(policy.quasi)
        self._last = -1
        self._memory = self._possible.person_memory(make_memory)

    def violations(self, seqs: UInt64s, veiled: Any) -> list[str]:
        """What is wrong with a batch, in words without any value; then the judge is of no use any more."""
        offences = self._line_violations or self._check_batch(seqs, veiled)
        if offences or not len(seqs):
            return offences
        self._last = int(seqs[-1])
        for row in self._memory.unknown_strata(veiled.strata):
            self._memory.learn_stratum(row, self._possible.set_hashes(row))
        offence = self._memory.find_violation(veiled.persons, veiled.strata, veiled.events, veiled.candidates)
        if offence is None and veiled.pseudonyms is not None and _names_differ(veiled.persons, veiled.pseudonyms):
            offence = "a pseudonym is not that of one person"
        return [] if offence is None else [offence]

    def _check_batch(self, seqs: UInt64s, veiled: Any) -> list[str]:
        """What is wrong with the batch as it stands."""
        if len(seqs) != len(veiled.persons):
            return ["the batch is not whole"]
        if (veiled.pseudonyms is not None) != self._has_pseudonyms or not veiled.published.keys() <= self._quasi:
            return ["more is published than the policy releases"]
        if len(seqs) and (int(seqs[0]) <= self._last or (seqs[1:] <= seqs[:-1]).any()):
            return ["a position occurs twice"]
        return []

    def snapshot(self) -> bytes:
        """What is remembered."""
        return self._last.to_bytes(8, "little", signed=True) + self._memory.to_bytes()

    def restore(self, state: bytes) -> None:
        """Goes on from a snapshot.

        Raises:
            StateError: it is damaged.
        """
        self._last = int.from_bytes(state[:8], "little", signed=True)
        try:
            self._memory.load(state[8:])
        except ValueError:
            raise StateError("The memory of the judge is damaged.", hint=CORRUPT_HINT) from None


def _names_differ(persons: UInt64s, names: UInt64s) -> bool:
    """Whether persons and pseudonyms do not stand one for one."""
    pairs = len({*zip(persons.tolist(), names.tolist(), strict=True)})
    return not pairs == len(np.unique(persons)) == len(np.unique(names))
