"""Evidence: what the attacker has, and what the auditor adds to count right guesses."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from reticent.policy import Policy
from reticent.policy.prior import Counts, read_prior
from reticent.release import Ledger
from reticent.verify.published import Published


@dataclass(frozen=True, repr=False)
class Evidence:
    """The releases in order of publication, the public policy, and private data for scoring only.

    Attributes:
        releases: the published releases.
        policy: roles, hierarchies and the published rules.
        original: the private table as text, in the order it was released; attacks use its quasi-identifiers as the
            attacker's knowledge and its sensitive values only to count right guesses.
        external: a table that the attacker has, with quasi-identifiers in common.
        ledger: which person was in which group of each publication.
        key: the key of the report's pseudonyms.
        rng: the auditor's random number generator.
        sample: the largest number of persons for attacks that are expensive per person.
    """

    releases: tuple[Published, ...]
    policy: Policy
    original: pa.Table | None = None
    external: pa.Table | None = None
    ledger: Ledger | None = None
    key: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(secrets.randbits(128)))
    sample: int = 2000

    def of_shape(self, *shapes: str) -> list[Published]:
        """Return the releases of these shapes."""
        return [release for release in self.releases if release.shape in shapes]


def prior_counts(policy: Policy) -> Counts | None:
    """Read the counts per value from the policy's prior; None if the policy names no file."""
    file = policy.prior.file if policy.prior is not None else None
    return None if file is None else read_prior(policy.path(file))
