"""Send a policy to Spark workers as the bytes of its bundle, independent of the workers' files."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from reticent.policy import Policy
from reticent.policy.bundle import Bundle


def pack_policy(policy: Policy) -> bytes:
    """Pack a policy; refuse files outside its folder."""
    return Bundle.pack(policy).to_bytes()


@functools.lru_cache(maxsize=8)
def unpack_policy(bundle: bytes) -> Policy:
    """Return the policy, built once per process."""
    folder = Path(tempfile.mkdtemp(prefix="reticent-"))  # readable by this user only
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Bundle.from_bytes(bundle).unpack(folder)
