"""Encryption at rest: the key of a store, from a file or a passphrase, and the cipher of its cells.

The store's data key is drawn at random and stands in the store, wrapped under the key that its owner keeps.

Guarantee: against whoever has the store's file, its companions or a backup, and not the key: cells of bytes (states, releases,
    ledgers, person hashes, dead letters, values) and names of persons, records and values are ciphertext; a changed cell is refused.
Not covered: names of publications, numbers, times, methods, policy hashes, counts, places in the input, reasons of dead letters and
    sizes stay readable, and so does which rows of an evolving table are one person's. A running process holds the key in memory.
Cost: 44 bytes per cell and 24 per name; one pass of AES-256-GCM (a gigabyte a second), three microseconds per name.
Reference: NIST SP 800-38D (GCM); RFC 5297 (AES-SIV) for names, which must be found again and are therefore always the same.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from reticent.disk import is_readable_by_others, open_new
from reticent.errors import PolicyError, StateError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_SALT, _NONCE, _TAG = 16, 12, 16
OVERHEAD = _SALT + _NONCE + _TAG
"""Bytes that a hidden cell is longer."""


class Cipher:
    """Hides and shows the cells of one store under its data key of 32 bytes."""

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV
        except ModuleNotFoundError:
            raise StateError(
                "An encrypted store needs cryptography.", hint="pip install 'reticent[encryption]'"
            ) from None
        self._key = key
        self._names = AESSIV(self._derive_key(b"names", 64))
        # Each opening of a store draws a key of its own, so that random nonces never run short.
        self._salt = os.urandom(_SALT)
        self._under = functools.lru_cache(maxsize=1024)(self._cell_cipher)

    def encrypt(self, data: bytes, about: str) -> bytes:
        """The ciphertext of a cell; `about` says where it belongs, and it opens nowhere else."""
        nonce = os.urandom(_NONCE)
        return self._salt + nonce + self._under(self._salt).encrypt(nonce, data, about.encode())

    def decrypt(self, data: bytes, about: str) -> bytes:
        """A cell as it was.

        Raises:
            ValueError: it was changed, or belongs elsewhere.
        """
        from cryptography.exceptions import InvalidTag

        salt, nonce = data[:_SALT], data[_SALT : _SALT + _NONCE]
        try:
            return self._under(salt).decrypt(nonce, data[_SALT + _NONCE :], about.encode())
        except (InvalidTag, ValueError):
            raise ValueError(about) from None

    def encrypt_name(self, name: str, about: str) -> str:
        """The ciphertext of a name, the same each time."""
        return self._names.encrypt(b"." + name.encode(), [about.encode()]).hex()  # it takes no empty ones

    def decrypt_name(self, name: str, about: str) -> str:
        """A name as it was.

        Raises:
            ValueError: it was changed, or belongs elsewhere.
        """
        from cryptography.exceptions import InvalidTag

        try:
            return self._names.decrypt(bytes.fromhex(name), [about.encode()])[1:].decode()
        except (InvalidTag, ValueError):
            raise ValueError(about) from None

    def _cell_cipher(self, salt: bytes) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._derive_key(b"cells" + salt, 32))

    def _derive_key(self, word: bytes, size: int) -> bytes:
        return hashlib.blake2b(word, digest_size=size, key=self._key).digest()


FILE, PASSPHRASE = "RETICENT_STORE_KEY", "RETICENT_STORE_PASSPHRASE"
_SIZE = 32
_MIN_PASSPHRASE = 12
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
            if is_readable_by_others(path):
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
        if len(words) < _MIN_PASSPHRASE:
            raise PolicyError(f"A passphrase has at least {_MIN_PASSPHRASE} characters.", hint="Five random words do.")
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
        hidden = self._cipher(salt).encrypt(data, _WRAPPED)
        return json.dumps({"passphrase": self.passphrase, "salt": salt.hex(), "wrapped": hidden.hex()})

    def unwrap(self, text: str) -> bytes:
        """Secrets that were wrapped under this key.

        Raises:
            StateError: they were wrapped under another one.
        """
        try:
            cells = json.loads(text)
            return self._cipher(bytes.fromhex(cells["salt"])).decrypt(bytes.fromhex(cells["wrapped"]), _WRAPPED)
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
