"""A policy on its way to the workers: its settings with the contents of the files they name."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from reticent.errors import PolicyError
from reticent.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, repr=False)
class Parcel:
    """Everything a worker needs to build the policy, whatever files it has itself."""

    settings: bytes
    files: tuple[tuple[str, bytes], ...]

    @classmethod
    def pack(cls, policy: Policy) -> Parcel:
        """Packs a policy; refuses files outside its folder."""
        files = []
        for place in _named(policy.to_dict()):
            if Path(place).is_absolute() or ".." in Path(place).parts:
                raise PolicyError(
                    "The policy names a file outside its folder, which workers cannot be given.",
                    hint="Put the file beside the policy.",
                )
            files.append((place, policy.path(place).read_bytes()))
        return cls(orjson.dumps(policy.to_dict()), tuple(sorted(set(files))))

    def open(self) -> Policy:
        """The policy, built once per process."""
        return _opened(self)


@functools.lru_cache(maxsize=8)
def _opened(parcel: Parcel) -> Policy:
    folder = Path(tempfile.mkdtemp(prefix="reticent-"))  # readable by this user alone
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for place, content in parcel.files:
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)
    return Policy.from_dict(orjson.loads(parcel.settings), base=folder)


def _named(settings: Any) -> Iterator[str]:
    """Every `file` of the settings."""
    if isinstance(settings, dict):
        for key, value in settings.items():
            if key == "file" and isinstance(value, str):
                yield value
            else:
                yield from _named(value)
