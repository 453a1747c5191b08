"""The key of an encrypted store: from a key file or a passphrase, and what it opens.

The store's data key is drawn at random and stands in the store, wrapped under this one.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from reticent.disk import open_new, others_may_read
from reticent.errors import PolicyError, StateError
from reticent.store.cipher import Cipher

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE, PASSPHRASE = "RETICENT_STORE_KEY", "RETICENT_STORE_PASSPHRASE"
_SIZE = 32
_SHORTEST = 12
_WRAPPED = "data key"
# RFC 7914; a guess costs 64 MB and a tenth of a second.
_SCRYPT = {"n": 1 << 16, "r": 8, "p": 1, "maxmem": 128 << 20, "dklen": _SIZE}


@dataclass(frozen=True, repr=False)
class Key:
    """What its owner keeps: 32 bytes of a file, or a passphrase."""

    secret: bytes
    passphrase: bool = False

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """The key that `reticent store key` wrote.

        Raises:
            PolicyError: it cannot be read, is no key, or others may read it.
        """
        try:
            text = path.read_text("ascii").strip()
            if others_may_read(path):
                raise PolicyError(f"Others may read {path}.", hint=f"chmod 600 {path}")
            secret = bytes.fromhex(text)
        except OSError as error:
            raise PolicyError(f"{path}: {os.strerror(error.errno or 0)}.", hint="Check the path of the key.") from None
        except ValueError:
            secret = b""
        if len(secret) != _SIZE:
            raise PolicyError(f"{path} is no key of a store.", hint="`reticent store key FILE` makes one.")
        return cls(secret)

    @classmethod
    def from_passphrase(cls, words: str) -> Self:
        """The key that follows from a passphrase.

        Raises:
            PolicyError: it is too short to be one.
        """
        if len(words) < _SHORTEST:
            raise PolicyError(f"A passphrase has at least {_SHORTEST} characters.", hint="Five random words do.")
        return cls(words.encode(), passphrase=True)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self | None:
        """The key that the environment names; None where it names none."""
        file, words = environment.get(FILE), environment.get(PASSPHRASE)
        if file and words:
            raise PolicyError(f"Both {FILE} and {PASSPHRASE} are set.", hint="Set one of them.")
        if file:
            return cls.from_file(Path(file))
        return cls.from_passphrase(words) if words else None

    def wrap(self, data: bytes) -> str:
        """Secrets as the store may keep them."""
        salt = secrets.token_bytes(16)
        hidden = self._cipher(salt).hide(data, _WRAPPED)
        return json.dumps({"passphrase": self.passphrase, "salt": salt.hex(), "wrapped": hidden.hex()})

    def unwrap(self, text: str) -> bytes:
        """Secrets that were wrapped under this key.

        Raises:
            StateError: they were wrapped under another one.
        """
        try:
            cells = json.loads(text)
            return self._cipher(bytes.fromhex(cells["salt"])).show(bytes.fromhex(cells["wrapped"]), _WRAPPED)
        except (KeyError, TypeError, ValueError):
            raise StateError(
                "The store does not open with this key.", hint=f"Check {FILE} or {PASSPHRASE}; nothing was changed."
            ) from None

    def _cipher(self, salt: bytes) -> Cipher:
        return Cipher(hashlib.scrypt(self.secret, salt=salt, **_SCRYPT) if self.passphrase else self.secret)


def new_key(path: Path) -> None:
    """Writes a fresh key to a new file that belongs to its owner alone.

    Raises:
        PolicyError: the file is there already, or cannot be made.
    """
    try:
        with os.fdopen(open_new(path), "w", encoding="ascii") as file:
            file.write(secrets.token_hex(_SIZE) + "\n")
    except FileExistsError:
        raise PolicyError(
            f"{path} is there already.", hint="A key that is overwritten is lost, and its store with it."
        ) from None
    except OSError as error:
        raise PolicyError(f"{path}: {os.strerror(error.errno or 0)}.", hint="Choose another place.") from None
