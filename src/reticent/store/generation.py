"""Which store this is, which of its lives it is in, and how far it has come.

A store has an id for life, a generation that a restore raises, and a count of commits. What it published forms a chain: each
release names the digest of the one before it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Self

import sqlalchemy as sa

from reticent.errors import StateError
from reticent.store import schema
from reticent.store.integrity import Seal, damaged
from reticent.store.keys import FILE, PASSPHRASE, Cipher

if TYPE_CHECKING:
    from reticent.store.keys import Key

HEAD, SECRET = "head", "secret"
_SIZE = 32
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
    generation: int
    commits: int

    @classmethod
    def fresh(cls) -> Self:
        """Of a store that is just being made."""
        return cls(secrets.token_hex(8), 1, 0)

    @property
    def name(self) -> str:
        """The generation as releases and answers show it."""
        return f"{self.store}-{self.generation}"

    def next(self) -> Self:
        """After one more commit."""
        return replace(self, commits=self.commits + 1)

    def reborn(self, above: int) -> Self:
        """After a restore: a generation that nobody has seen yet."""
        return replace(self, generation=max(self.generation, above) + 1)


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
        return _encrypted(key.unwrap(text))
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        raise damaged("The store") from None
    if len(secret) != _SIZE:
        raise damaged("The store")
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
    secret = secret or secrets.token_bytes(_SIZE)
    if key is None:
        return Seal(secret), secret.hex()
    both = secret + secrets.token_bytes(_SIZE)
    return _encrypted(both), key.wrap(both)


def _encrypted(both: bytes) -> Seal:
    secret, data = both[:_SIZE], both[_SIZE:]
    # The digests hang on the data key, too: a process that still holds the one before can write nothing.
    return Seal(secret, Cipher(data), hashlib.blake2b(secret, digest_size=_SIZE, key=data).digest())


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
        raise damaged("The store")
    return head


def head_text(head: Head, seal: Seal) -> str:
    """As the store keeps it."""
    plain = json.dumps(asdict(head))
    return f"{plain} {seal.digest(HEAD, [plain, schema.VERSION]).hex()}"


def write_head(connection: sa.Connection, head: Head, seal: Seal) -> None:
    """Notes where the store stands now."""
    connection.execute(_WRITE, {"of": HEAD, "now": head_text(head, seal)})
