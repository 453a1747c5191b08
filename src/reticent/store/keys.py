"""Encryption at rest: the key of a store, from a file or a passphrase, and the cipher of its cells.

The store's data key is random. The store keeps it wrapped with the key that its owner keeps.

Guarantee: against an attacker who has the store's file, its log or a backup, but not the key: binary cells (states, releases, ledgers,
    person hashes, dead letters, values) and names of persons, records and values are encrypted; a changed cell is refused.
Not covered: names of publications, numbers, times, methods, policy hashes, counts, input positions, reasons of dead letters and sizes
    are readable, and so is which rows of an evolving table belong to one person. A running process has the key in memory.
Cost: 44 bytes per cell and 24 per name; one pass of AES-256-GCM (1 GB/s); 3 microseconds per name.
Reference: NIST SP 800-38D (GCM); RFC 5297 (AES-SIV) for names, whose ciphertext is deterministic so that they can be looked up.
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
"""Additional bytes of an encrypted cell."""


class Cipher:
    """Encrypts and decrypts the cells of one store with its data key of 32 bytes."""

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV
        except ModuleNotFoundError:
            raise StateError(
                "An encrypted store needs the package cryptography.", hint="Run pip install 'reticent[encryption]'."
            ) from None
        self._key = key
        self._names = AESSIV(self._derive_key(b"names", 64))
        # Each time a store is opened it derives a new cell key, so that random nonces do not repeat.
        self._salt = os.urandom(_SALT)
        self._under = functools.lru_cache(maxsize=1024)(self._cell_cipher)

    def encrypt(self, data: bytes, about: str) -> bytes:
        """Encrypt a cell. `about` names its column; the cell can be decrypted only there."""
        nonce = os.urandom(_NONCE)
        return self._salt + nonce + self._under(self._salt).encrypt(nonce, data, about.encode())

    def decrypt(self, data: bytes, about: str) -> bytes:
        """Decrypt a cell.

        Raises:
            ValueError: the cell was changed, or belongs to another column.
        """
        from cryptography.exceptions import InvalidTag

        salt, nonce = data[:_SALT], data[_SALT : _SALT + _NONCE]
        try:
            return self._under(salt).decrypt(nonce, data[_SALT + _NONCE :], about.encode())
        except (InvalidTag, ValueError):
            raise ValueError(about) from None

    def encrypt_name(self, name: str, about: str) -> str:
        """Encrypt a name deterministically."""
        return self._names.encrypt(b"." + name.encode(), [about.encode()]).hex()  # AES-SIV accepts no empty text

    def decrypt_name(self, name: str, about: str) -> str:
        """Decrypt a name.

        Raises:
            ValueError: the name was changed, or belongs to another column.
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
# RFC 7914; each guess of an attacker costs 64 MB and 0.1 s.
_SCRYPT = {"n": 1 << 16, "r": 8, "p": 1, "maxmem": 128 << 20, "dklen": _SIZE}


@dataclass(frozen=True, repr=False)
class Key:
    """The key of a store's owner: 32 bytes from a file, or a passphrase."""

    secret: bytes
    passphrase: bool = False

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a key file written by `reticent store key`.

        Raises:
            PolicyError: the file cannot be read, is not a key, or other users may read it.
        """
        try:
            text = path.read_text("ascii").strip()
            if is_readable_by_others(path):
                raise PolicyError(f"Other users may read {path}.", hint=f"Run chmod 600 {path}")
            secret = bytes.fromhex(text)
        except OSError as error:
            raise PolicyError(f"{path}: {os.strerror(error.errno or 0)}.", hint="Check the path of the key.") from None
        except ValueError:
            secret = b""
        if len(secret) != _SIZE:
            raise PolicyError(f"{path} is not a store key.", hint="Create one: reticent store key FILE")
        return cls(secret)

    @classmethod
    def from_passphrase(cls, words: str) -> Self:
        """Return the key of a passphrase.

        Raises:
            PolicyError: the passphrase is too short.
        """
        if len(words) < _MIN_PASSPHRASE:
            raise PolicyError(
                f"The passphrase has fewer than {_MIN_PASSPHRASE} characters.",
                hint="Use five random words, for example.",
            )
        return cls(words.encode(), passphrase=True)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self | None:
        """Return the key that the environment variables name, or None."""
        file, words = environment.get(FILE), environment.get(PASSPHRASE)
        if file and words:
            raise PolicyError(f"Both {FILE} and {PASSPHRASE} are set.", hint="Set one of them.")
        if file:
            return cls.from_file(Path(file))
        return cls.from_passphrase(words) if words else None

    def wrap(self, data: bytes) -> str:
        """Encrypt secrets, so that the store can keep them."""
        salt = secrets.token_bytes(16)
        hidden = self._cipher(salt).encrypt(data, _WRAPPED)
        return json.dumps({"passphrase": self.passphrase, "salt": salt.hex(), "wrapped": hidden.hex()})

    def unwrap(self, text: str) -> bytes:
        """Decrypt secrets that were wrapped with this key.

        Raises:
            StateError: they were wrapped with another key.
        """
        try:
            cells = json.loads(text)
            return self._cipher(bytes.fromhex(cells["salt"])).decrypt(bytes.fromhex(cells["wrapped"]), _WRAPPED)
        except (KeyError, TypeError, ValueError):
            raise StateError(
                "The key of the store is wrong. Nothing was changed.", hint=f"Check {FILE} or {PASSPHRASE}."
            ) from None

    def _cipher(self, salt: bytes) -> Cipher:
        return Cipher(hashlib.scrypt(self.secret, salt=salt, **_SCRYPT) if self.passphrase else self.secret)


def new_key(path: Path) -> None:
    """Write a fresh key to a new file that only its owner may read.

    Raises:
        PolicyError: the file exists, or cannot be created.
    """
    try:
        with os.fdopen(open_new(path), "w", encoding="ascii") as file:
            file.write(secrets.token_hex(_SIZE) + "\n")
    except FileExistsError:
        raise PolicyError(
            f"{path} already exists.", hint="Choose a new file: overwriting a key makes its store unreadable."
        ) from None
    except OSError as error:
        raise PolicyError(f"{path}: {os.strerror(error.errno or 0)}.", hint="Choose another path.") from None
