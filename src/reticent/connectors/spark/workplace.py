"""A policy on its way to the workers, whatever files they have themselves."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from reticent.policy import Policy
from reticent.policy.bundle import Bundle


@dataclass(frozen=True, repr=False)
class Carried:
    """The bytes of a policy's bundle: small, and the same for all workers."""

    bundle: bytes

    @classmethod
    def pack(cls, policy: Policy) -> Carried:
        """Packs a policy; refuses files outside its folder."""
        return cls(Bundle.pack(policy).to_bytes())

    def open(self) -> Policy:
        """The policy, built once per process."""
        return _opened(self.bundle)


@functools.lru_cache(maxsize=8)
def _opened(bundle: bytes) -> Policy:
    folder = Path(tempfile.mkdtemp(prefix="reticent-"))  # readable by this user alone
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Bundle.from_bytes(bundle).unpack(folder)
