"""Rows that prove themselves: a keyed digest over every row, its keys included, checked whenever the row is read; and the store's head.

A store has an id for life, a generation that a restore raises, and a count of commits. What it published forms a chain: each
release names the digest of the one before it.

Guarantee: against bits that turn on disk, rows that change places, and anyone who writes without the store's key: a row is as
    it was written, or the store is refused.
Not covered: rows that are missing altogether, which the counts in a publisher's row and the structure check find; a store that was
    replaced as a whole by an older copy of itself, which `witness` finds.
Cost: one pass of BLAKE2b over what is written and what is read, about a nanosecond per byte and a microsecond per row.
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
"""Not covered by the digest: itself, numbers that the database gives, and the mark of the present writer."""
_NAME_COLUMNS = {"reticent_evolving_records": ("person", "name"), "reticent_kv": ("key",)}
"""Cells of text that an encrypted store hides, and finds again."""
_ORDERED_SPACES = ("state.a", "state.b", "audit-log")
"""Spaces whose keys are numbers that are asked for in order; they stay as they are."""


def corrupt_error(what: str) -> StateError:
    """The error for anything in a store that is not as it was written."""
    return StateError(f"{what} is damaged.", hint=CORRUPT_HINT)


class Seal:
    """Makes and checks the digests of one store, under its secret; hides and shows its cells where it is encrypted."""

    def __init__(self, secret: bytes, cipher: Cipher | None = None, key: bytes | None = None) -> None:
        self.secret, self._key = secret, key or secret
        self._keyed = hashlib.blake2b(digest_size=SIZE, key=self._key)
        self._cipher = cipher
        self._columns: dict[str, tuple[str, ...]] = {}
        self._bytes: dict[str, tuple[str, ...]] = {}
        self.overhead = OVERHEAD if cipher else 0
        """Bytes that a stored cell is longer than what it holds."""

    @property
    def permanent(self) -> Seal:
        """For what outlives every change of the store's key: the ledger's hashes of persons, and the witness."""
        return Seal(self.secret)

    def digest(self, name: str, cells: Sequence[Any]) -> bytes:
        """The digest of some cells of a table, or of anything else that has a name."""
        return self._digest_bytes(name.encode() + b"".join(_digest_parts(cells)))

    def _digest_bytes(self, content: bytes) -> bytes:
        digest = self._keyed.copy()
        digest.update(content)
        return digest.digest()

    def seal_row(self, table: sa.Table, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row as the store keeps it, with its digest."""
        return self.seal_rows(table, [row])[0]

    def seal_rows(self, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The same of many rows, column by column, which is quicker."""
        stored = [dict(row) if self._cipher is None else self._encrypt_row(self._cipher, table, row) for row in rows]
        columns = [_digest_parts([row[name] for row in stored]) for name in self.columns(table)]
        head = table.name.encode()
        for row, parts in zip(stored, zip(*columns, strict=True), strict=True):
            row[DIGEST] = self._digest_bytes(head + b"".join(parts))
        return stored

    def open_row(self, table: sa.Table, row: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """A stored row as it was written, or a refusal; what the database made of its cells does not matter."""
        if self.digest(table.name, [row[name] for name in self.columns(table)]) != row[DIGEST]:
            raise corrupt_error(f"A row of {table.name}")
        return row if self._cipher is None else self._decrypt_row(self._cipher, table, row)

    def name_in_store(self, table: sa.Table, column: str, name: str, space: str = "") -> str:
        """How the store writes the name of a person, a record or a value, to find it by."""
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
        """The columns that the digest covers, in order."""
        if table.name not in self._columns:
            self._columns[table.name] = tuple(
                column.name for column in table.c if column.name not in _UNDIGESTED_COLUMNS
            )
        return self._columns[table.name]


def _digest_parts(cells: Sequence[Any]) -> list[bytes]:
    """Cells as the digest has them, their kind and length before each."""
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
        store: its id, for life.
        generation: 1 as it was made; each restore adds one.
        commits: how many transactions it has had.
    """

    store: str
    epoch: int
    commits: int

    @classmethod
    def fresh(cls) -> Self:
        """Of a store that is just being made."""
        return cls(secrets.token_hex(8), 1, 0)

    @property
    def epoch_name(self) -> str:
        """The generation as releases and answers show it."""
        return f"{self.store}-{self.epoch}"

    def next(self) -> Self:
        """After one more commit."""
        return replace(self, commits=self.commits + 1)

    def start_epoch(self, above: int) -> Self:
        """After a restore: a generation that nobody has seen yet."""
        return replace(self, epoch=max(self.epoch, above) + 1)


def read_seal(connection: sa.Connection, key: Key | None) -> Seal:
    """The store's own secret, and its data key where it is encrypted; they never leave the private side.

    Raises:
        StateError: the store is encrypted and there is no key, or another; or there is a key and it is not encrypted.
    """
    text = str(connection.execute(_READ, {"of": SECRET}).scalar())
    if is_encrypted(connection):
        if key is None:
            raise StateError(
                "The store is encrypted.", hint=f"Name the file of its key in {FILE}, or set {PASSPHRASE}."
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
            "There is a key, and the store is not encrypted.",
            hint=f"`reticent store rekey` encrypts it; or go on without {FILE} and {PASSPHRASE}.",
        )
    return Seal(secret)


def is_encrypted(connection: sa.Connection) -> bool:
    """Whether the store's secrets are wrapped under a key."""
    return str(connection.execute(_READ, {"of": SECRET}).scalar()).startswith("{")


def new_seal(key: Key | None, secret: bytes | None = None) -> tuple[Seal, str]:
    """A seal under a fresh data key where there is a key, and how the store keeps it; `secret` is that of the store before."""
    secret = secret or secrets.token_bytes(_SECRET_SIZE)
    if key is None:
        return Seal(secret), secret.hex()
    both = secret + secrets.token_bytes(_SECRET_SIZE)
    return _encrypted_seal(both), key.wrap(both)


def _encrypted_seal(both: bytes) -> Seal:
    secret, data = both[:_SECRET_SIZE], both[_SECRET_SIZE:]
    # The digests hang on the data key, too: a process that still holds the one before can write nothing.
    return Seal(secret, Cipher(data), hashlib.blake2b(secret, digest_size=_SECRET_SIZE, key=data).digest())


def read_head(connection: sa.Connection, seal: Seal) -> Head:
    """Where the store stands."""
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
    """As the store keeps it."""
    plain = json.dumps(asdict(head))
    return f"{plain} {seal.digest(HEAD, [plain, schema.VERSION]).hex()}"


def write_head(connection: sa.Connection, head: Head, seal: Seal) -> None:
    """Notes where the store stands now."""
    connection.execute(_WRITE, {"of": HEAD, "now": head_text(head, seal)})
