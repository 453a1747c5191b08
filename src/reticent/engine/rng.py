"""Randomness by argument: a secret key, from which each purpose derives its own key."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Rng:
    """A secret key of 32 bytes; cryptographic unless a seed is given.

    Example:
        >>> Rng.from_seed(1).key("anatomy") == Rng.from_seed(1).key("anatomy")
        True
        >>> Rng.fresh().seeded
        False
    """

    secret: bytes
    seeded: bool = False
    veil_secret: bytes = b""
    """The veil key, which all publications of a store share; empty: the secret itself."""

    @classmethod
    def fresh(cls) -> Rng:
        """Return a key from the operating system."""
        return cls(secrets.token_bytes(32))

    @classmethod
    def from_seed(cls, seed: int) -> Rng:
        """Return a key that anyone can compute, for tests and reproductions only; releases made with it say so."""
        return cls(hashlib.blake2b(f"reticent seed {seed}".encode(), digest_size=32).digest(), seeded=True)

    def key(self, purpose: str) -> bytes:
        """Return the key of one purpose; it discloses nothing about the keys of other purposes."""
        return hashlib.blake2b(purpose.encode(), digest_size=32, key=self.secret).digest()

    def veil_key(self, purpose: str) -> bytes:
        """Return the key of one purpose, the same in every publication under one veil key."""
        return hashlib.blake2b(purpose.encode(), digest_size=32, key=self.veil_secret or self.secret).digest()

    def __repr__(self) -> str:
        return f"Rng(seeded={self.seeded})"
