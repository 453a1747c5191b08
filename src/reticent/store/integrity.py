"""Protects every row with a keyed digest that is checked on every read, and keeps the store's head.

A store has a permanent id, an epoch that each restore raises, and a number of commits. Its releases form a chain: each release has the
digest of its predecessor.

Guarantee: against disk errors, exchanged rows, and an attacker who writes without the store's key: a row is as it was written, or
    the store is refused.
Not covered: missing rows, which the counts in a publisher's row and the structure check detect; a store that was replaced as a whole
    by an older copy, which `rollback_marker` detects.
Cost: one pass of BLAKE2b over all bytes written and read: about 1 ns per byte and 1 microsecond per row.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import sqlalchemy as sa

from reticent.errors import CORRUPT_HINT, StateError
from reticent.store import schema
from reticent.store.keys import FILE, OVERHEAD, PASSPHRASE, Cipher, Key

SIZE = 16
DIGEST = "digest"
_RAW = (bytes, bytearray, memoryview)
_UNDIGESTED_COLUMNS = (DIGEST, "id", "owner")
"""Not covered by the digest: the digest itself, ids that the database assigns, and the id of the current writer."""
_NAME_COLUMNS = {"reticent_evolving_records": ("person", "name"), "reticent_kv": ("key",)}
"""Text columns that an encrypted store encrypts deterministically, so that it can look them up."""
_ORDERED_SPACES = ("state.a", "state.b", "audit-log")
"""Spaces whose keys are numbers that are read in order; these keys are not encrypted."""


def corrupt_error(what: str) -> StateError:
    """Return the error for a corrupt part of a store."""
    return StateError(f"{what} is corrupt.", hint=CORRUPT_HINT)


class Seal:
    """Makes and checks the digests of one store, and encrypts and decrypts its cells if it is encrypted."""

    def __init__(self, secret: bytes, cipher: Cipher | None = None, key: bytes | None = None) -> None:
        self.secret, self._key = secret, key or secret
        self._keyed = hashlib.blake2b(digest_size=SIZE, key=self._key)
        self._cipher = cipher
        self._columns: dict[str, tuple[str, ...]] = {}
        self._bytes: dict[str, tuple[str, ...]] = {}
        self.overhead = OVERHEAD if cipher else 0
        """Additional bytes of an encrypted cell."""

    @property
    def permanent(self) -> Seal:
        """The seal for what outlives every change of the store's key: the hashes of persons and the rollback marker."""
        return Seal(self.secret)

    def digest(self, name: str, cells: Sequence[Any]) -> bytes:
        """Return the digest of cells under a name, usually that of a table."""
        return self._digest_bytes(name.encode() + b"".join(_digest_parts(cells)))

    def _digest_bytes(self, content: bytes) -> bytes:
        digest = self._keyed.copy()
        digest.update(content)
        return digest.digest()

    def seal_row(self, table: sa.Table, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row as the store keeps it, with its digest."""
        return self.seal_rows(table, [row])[0]

    def seal_rows(self, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return many rows as the store keeps them. Working column by column is faster."""
        stored = [dict(row) if self._cipher is None else self._encrypt_row(self._cipher, table, row) for row in rows]
        columns = [_digest_parts([row[name] for row in stored]) for name in self.columns(table)]
        head = table.name.encode()
        for row, parts in zip(stored, zip(*columns, strict=True), strict=True):
            row[DIGEST] = self._digest_bytes(head + b"".join(parts))
        return stored

    def open_row(self, table: sa.Table, row: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Check the digest of a stored row and return the row decrypted. Refuse a corrupt row."""
        if self.digest(table.name, [row[name] for name in self.columns(table)]) != row[DIGEST]:
            raise corrupt_error(f"A row of {table.name}")
        return row if self._cipher is None else self._decrypt_row(self._cipher, table, row)

    def name_in_store(self, table: sa.Table, column: str, name: str, space: str = "") -> str:
        """Return the name of a person, record or value as the store keeps it, for lookups."""
        return (
            name
            if self._cipher is None or space in _ORDERED_SPACES
            else self._cipher.encrypt_name(name, f"{table.name}.{column}")
        )

    def _encrypt_row(self, cipher: Cipher, table: sa.Table, row: Mapping[str, Any]) -> dict[str, Any]:
        cells = dict(row)
        for column in self._blobs(table):
            cells[column] = cipher.encrypt(bytes(row[column]), f"{table.name}.{column}")
        for column in _NAME_COLUMNS.get(table.name, ()):
            if row[column] is not None:
                cells[column] = self.name_in_store(table, column, row[column], row.get("space", ""))
        return cells

    def _decrypt_row(self, cipher: Cipher, table: sa.Table, row: Mapping[Any, Any]) -> dict[Any, Any]:
        cells = dict(row)
        try:
            for column in self._blobs(table):
                cells[column] = cipher.decrypt(bytes(row[column]), f"{table.name}.{column}")
            for column in _NAME_COLUMNS.get(table.name, ()):
                if row[column] is not None and row.get("space", "") not in _ORDERED_SPACES:
                    cells[column] = cipher.decrypt_name(row[column], f"{table.name}.{column}")
        except ValueError:
            raise corrupt_error(f"A row of {table.name}") from None
        return cells

    def _blobs(self, table: sa.Table) -> tuple[str, ...]:
        if table.name not in self._bytes:
            binary = (column.name for column in table.c if isinstance(column.type, sa.LargeBinary))
            self._bytes[table.name] = tuple(name for name in binary if name != DIGEST)
        return self._bytes[table.name]

    def columns(self, table: sa.Table) -> tuple[str, ...]:
        """Return the columns that the digest covers, in order."""
        if table.name not in self._columns:
            self._columns[table.name] = tuple(
                column.name for column in table.c if column.name not in _UNDIGESTED_COLUMNS
            )
        return self._columns[table.name]


def _digest_parts(cells: Sequence[Any]) -> list[bytes]:
    """Return cells as the digest takes them, each after its type and length."""
    parts = []
    for cell in cells:
        if isinstance(cell, _RAW):
            parts.append(b"b%d:" % len(cell) + cell)
        else:
            data = repr(cell).encode()
            parts.append(b"r%d:%b" % (len(data), data))
    return parts


HEAD, SECRET = "head", "secret"
_SECRET_SIZE = 32
_READ = sa.select(schema.meta.c.value).where(schema.meta.c.name == sa.bindparam("of"))
_WRITE = sa.update(schema.meta).where(schema.meta.c.name == sa.bindparam("of")).values(value=sa.bindparam("now"))


@dataclass(frozen=True)
class Head:
    """The state of a store as a whole.

    Attributes:
        store: its permanent id.
        generation: its epoch: 1 for a new store, raised by each restore.
        commits: its number of transactions.
    """

    store: str
    epoch: int
    commits: int

    @classmethod
    def fresh(cls) -> Self:
        """Return the head of a new store."""
        return cls(secrets.token_hex(8), 1, 0)

    @property
    def epoch_name(self) -> str:
        """The store's id and epoch, as in releases and answers."""
        return f"{self.store}-{self.epoch}"

    def next(self) -> Self:
        """Return the head after one more commit."""
        return replace(self, commits=self.commits + 1)

    def start_epoch(self, above: int) -> Self:
        """Return the head after a restore, with a new epoch."""
        return replace(self, epoch=max(self.epoch, above) + 1)


def read_seal(connection: sa.Connection, key: Key | None) -> Seal:
    """Read the store's secret, and its data key if the store is encrypted. Neither is ever published.

    Raises:
        StateError: the store is encrypted and the key is missing or wrong, or the store is not encrypted and there is a key.
    """
    text = str(connection.execute(_READ, {"of": SECRET}).scalar())
    if is_encrypted(connection):
        if key is None:
            raise StateError(
                "The store is encrypted.", hint=f"Set {FILE} to the path of its key file, or set {PASSPHRASE}."
            )
        return _encrypted_seal(key.unwrap(text))
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        raise corrupt_error("The store") from None
    if len(secret) != _SECRET_SIZE:
        raise corrupt_error("The store")
    if key is not None:
        raise StateError(
            "A store key is set, but the store is not encrypted.",
            hint=f"Run `reticent store rekey` to encrypt the store, or unset {FILE} and {PASSPHRASE}.",
        )
    return Seal(secret)


def is_encrypted(connection: sa.Connection) -> bool:
    """Whether the store's secrets are wrapped under a key."""
    return str(connection.execute(_READ, {"of": SECRET}).scalar()).startswith("{")


def new_seal(key: Key | None, secret: bytes | None = None) -> tuple[Seal, str]:
    """Return a seal, with a fresh data key if there is a key, and its stored form. `secret` is the store's earlier secret."""
    secret = secret or secrets.token_bytes(_SECRET_SIZE)
    if key is None:
        return Seal(secret), secret.hex()
    both = secret + secrets.token_bytes(_SECRET_SIZE)
    return _encrypted_seal(both), key.wrap(both)


def _encrypted_seal(both: bytes) -> Seal:
    secret, data = both[:_SECRET_SIZE], both[_SECRET_SIZE:]
    # The digests depend on the data key: a process that still has the old one can write nothing.
    return Seal(secret, Cipher(data), hashlib.blake2b(secret, digest_size=_SECRET_SIZE, key=data).digest())


def read_head(connection: sa.Connection, seal: Seal) -> Head:
    """Read and check the store's head."""
    text = str(connection.execute(_READ, {"of": HEAD}).scalar())
    try:
        plain, _, digest = text.rpartition(" ")
        intact = seal.digest(HEAD, [plain, schema.VERSION]).hex() == digest
        head = Head(**json.loads(plain)) if intact else None
    except (TypeError, ValueError):
        head = None
    if head is None:
        raise corrupt_error("The store")
    return head


def head_text(head: Head, seal: Seal) -> str:
    """Return a head as the store keeps it."""
    plain = json.dumps(asdict(head))
    return f"{plain} {seal.digest(HEAD, [plain, schema.VERSION]).hex()}"


def write_head(connection: sa.Connection, head: Head, seal: Seal) -> None:
    """Write the store's head."""
    connection.execute(_WRITE, {"of": HEAD, "now": head_text(head, seal)})
