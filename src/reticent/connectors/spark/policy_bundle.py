"""A policy on its way to the workers, whatever files they have themselves: the bytes of its bundle, small and the same for all."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from reticent.policy import Policy
from reticent.policy.bundle import Bundle


def pack_policy(policy: Policy) -> bytes:
    """Packs a policy; refuses files outside its folder."""
    return Bundle.pack(policy).to_bytes()


@functools.lru_cache(maxsize=8)
def unpack_policy(bundle: bytes) -> Policy:
    """The policy, built once per process."""
    folder = Path(tempfile.mkdtemp(prefix="reticent-"))  # readable by this user alone
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Bundle.from_bytes(bundle).unpack(folder)
