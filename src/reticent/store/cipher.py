"""Encryption at rest: what a store holds is unreadable without its key, in the file, its log and its backups.

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
import os
from typing import TYPE_CHECKING

from reticent.errors import StateError

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
        self._names = AESSIV(self._derived(b"names", 64))
        # Each opening of a store draws a key of its own, so that random nonces never run short.
        self._salt = os.urandom(_SALT)
        self._under = functools.lru_cache(maxsize=1024)(self._cells)

    def hide(self, data: bytes, about: str) -> bytes:
        """The ciphertext of a cell; `about` says where it belongs, and it opens nowhere else."""
        nonce = os.urandom(_NONCE)
        return self._salt + nonce + self._under(self._salt).encrypt(nonce, data, about.encode())

    def show(self, data: bytes, about: str) -> bytes:
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

    def hide_name(self, name: str, about: str) -> str:
        """The ciphertext of a name, the same each time."""
        return self._names.encrypt(b"." + name.encode(), [about.encode()]).hex()  # it takes no empty ones

    def show_name(self, name: str, about: str) -> str:
        """A name as it was.

        Raises:
            ValueError: it was changed, or belongs elsewhere.
        """
        from cryptography.exceptions import InvalidTag

        try:
            return self._names.decrypt(bytes.fromhex(name), [about.encode()])[1:].decode()
        except (InvalidTag, ValueError):
            raise ValueError(about) from None

    def _cells(self, salt: bytes) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._derived(b"cells" + salt, 32))

    def _derived(self, word: bytes, size: int) -> bytes:
        return hashlib.blake2b(word, digest_size=size, key=self._key).digest()
