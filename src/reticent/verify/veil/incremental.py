"""Verify a running stream under the veil: each batch before delivery, together with everything delivered before.

Guarantee: in every batch that passes, positions rise, and an attacker sees l candidates of the domain for every record, in
    canonical order, with a stratum of the prior. The set of a first event is possible in its stratum. The events of a person
    count 0, 1, 2, ... in one stratum, and each set can follow the one before by the published transition kernel. The
    cumulative line is that of the policy's prior.
Not covered: whether a record's stratum is that of its published fields, and whether sets were drawn with the right
    probability; the attacks of the audit test that.
Cost: one lookup per record in a table of persons; 14 + 2 l bytes and a hash per person.
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
    """Verify veiled records; remember the last set of every person.

    Args:
        policy: the policy to verify against.
        metadata: the published parameters of the veil.
        make_memory: makes the memory of persons in the core; passed in, since this module does not load the core.
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
        """Describe what is wrong with a batch, without any value. After a violation, this verifier is unusable."""
        problems = self._line_violations or self._check_batch(seqs, veiled)
        if problems or not len(seqs):
            return problems
        self._last = int(seqs[-1])
        for stratum in self._memory.unknown_strata(veiled.strata):
            self._memory.learn_stratum(stratum, self._possible.set_hashes(stratum))
        problem = self._memory.find_violation(veiled.persons, veiled.strata, veiled.events, veiled.candidates)
        if problem is None and veiled.pseudonyms is not None and _names_differ(veiled.persons, veiled.pseudonyms):
            problem = "a pseudonym belongs to several persons, or a person has several"
        return [] if problem is None else [problem]

    def _check_batch(self, seqs: UInt64s, veiled: Any) -> list[str]:
        """Check the batch itself: its length, its columns and its positions."""
        if len(seqs) != len(veiled.persons):
            return ["the batch is incomplete"]
        if (veiled.pseudonyms is not None) != self._has_pseudonyms or not veiled.published.keys() <= self._quasi:
            return ["the batch publishes columns or pseudonyms that the policy does not release"]
        if len(seqs) and (int(seqs[0]) <= self._last or (seqs[1:] <= seqs[:-1]).any()):
            return ["a position occurs twice"]
        return []

    def snapshot(self) -> bytes:
        """Return the state of the verifier."""
        return self._last.to_bytes(8, "little", signed=True) + self._memory.to_bytes()

    def restore(self, state: bytes) -> None:
        """Continue from a snapshot.

        Raises:
            StateError: the snapshot is corrupt.
        """
        self._last = int.from_bytes(state[:8], "little", signed=True)
        try:
            self._memory.load(state[8:])
        except ValueError:
            raise StateError("The state of the stream's verifier is corrupt.", hint=CORRUPT_HINT) from None


def _names_differ(persons: UInt64s, names: UInt64s) -> bool:
    """Return whether persons and pseudonyms do not correspond one to one."""
    pairs = len({*zip(persons.tolist(), names.tolist(), strict=True)})
    return not pairs == len(np.unique(persons)) == len(np.unique(names))
