"""Key files: named secret keys; the newest is in use, older ones let the custodian still find a person.

A key file is JSON, readable by its owner only: {"current": "k2", "keys": {"k1": "...", "k2": "..."}}.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from reticent.disk import is_readable_by_others, open_new, staged_path
from reticent.errors import ConnectorError, PolicyError


@dataclass(frozen=True, repr=False)
class Keys:
    """The keys of a file; `current` names the key in use."""

    current: str
    keys: dict[str, bytes]

    @property
    def secret(self) -> bytes:
        """The key in use."""
        return self.keys[self.current]

    @property
    def first(self) -> bytes:
        """The first key of the file, for what must not change when the key is rotated."""
        return next(iter(self.keys.values()))

    def __repr__(self) -> str:
        return f"Keys(current={self.current!r}, {len(self.keys)} in all)"

    @classmethod
    def load(cls, path: Path) -> Keys:
        """Read a key file; refuses a file that other users can read."""
        hint = f"Make a key file: reticent keys new {path.name}"
        try:
            exposed = is_readable_by_others(path)
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise PolicyError(f"{path.name}: the key file cannot be read.", hint=hint) from None
        if exposed:
            raise PolicyError(f"{path.name}: other users can read the key file.", hint=f"Run: chmod 600 {path.name}")
        try:
            document = json.loads(text)
            keys = {str(name): bytes.fromhex(value) for name, value in document["keys"].items()}
            current = str(document["current"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise PolicyError(f"{path.name}: not a key file.", hint=hint) from None
        if current not in keys or any(len(key) != 32 for key in keys.values()):
            raise PolicyError(f"{path.name}: the key in use is missing or too short.", hint=hint)
        return cls(current, keys)


def new(path: Path) -> Keys:
    """Write a key file with one new key; never overwrites a file."""
    keys = Keys("k1", {"k1": secrets.token_bytes(32)})
    _write(path, keys, fresh=True)
    return keys


def rotate(path: Path) -> Keys:
    """Add a new key and use it; later pseudonyms cannot be linked with earlier ones."""
    old = Keys.load(path)
    name = f"k{len(old.keys) + 1}"
    keys = Keys(name, {**old.keys, name: secrets.token_bytes(32)})
    _write(path, keys, fresh=False)
    return keys


def _write(path: Path, keys: Keys, *, fresh: bool) -> None:
    text = json.dumps({"current": keys.current, "keys": {name: key.hex() for name, key in keys.keys.items()}}, indent=2)
    place = contextlib.nullcontext(path) if fresh else staged_path(path)
    try:
        with place as target, os.fdopen(open_new(target), "w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise ConnectorError(f"{path} exists already.", hint="Name a new file, or rotate this one.") from None
    except OSError as error:
        raise ConnectorError(f"{path} cannot be written: {os.strerror(error.errno or 0)}.") from None
