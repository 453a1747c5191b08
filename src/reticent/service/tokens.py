"""Tokens: who may do what, and with which sources. Only a hash of each is kept; it is compared in constant time.

A token is `rt_<id>_<secret>`: the id finds the entry, the secret has 256 random bits, so one round of a hash suffices.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Self

from reticent.errors import PolicyError
from reticent.service.audit_log import AuditLog
from reticent.service.documents import OWNER, Documents
from reticent.store import Store

SPACE = "token"
# How long a revoked token may still be taken from memory.
_CACHE_SECONDS = 2.0
_DUMMY_DIGEST = hashlib.sha256(b"nobody").hexdigest()


class Role(StrEnum):
    """What a token is for."""

    FEED = "feed"
    ANALYST = "analyst"
    CUSTODIAN = "custodian"
    MONITOR = "monitor"


_KINDS = {
    Role.FEED: ("stream", "evolving"),
    Role.ANALYST: ("stream", "evolving", "series", "table", "release"),
}
"""What a token of a role can be narrowed to; the other roles have no scope."""
_SCOPE = re.compile(r"([a-z]+):([^:*]{0,100}\*?)")


@dataclass(frozen=True)
class Token:
    """What the store keeps of a token."""

    id: str
    name: str
    role: Role
    digest: str
    created: float
    expires: float | None = None
    scope: tuple[str, ...] = ()
    """Sources as `kind:name`, where `*` ends a name that merely begins so; empty for all."""

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """From plain values, as documents keep it."""
        return cls(**(fields | {"role": Role(fields["role"]), "scope": tuple(fields["scope"])}))

    def can_access(self, kind: str, name: str) -> bool:
        """Whether the scope holds a source."""
        source = f"{kind}:{name}"
        return not self.scope or any(
            source.startswith(part[:-1]) if part.endswith("*") else source == part for part in self.scope
        )

    def __repr__(self) -> str:
        return f"Token({self.id}, {self.role})"


OPERATOR = Token("operator", "the command line", Role.CUSTODIAN, "", 0.0)
"""Who acts at the command line, as the audit trail says it."""


class Tokens:
    """Creates, finds and revokes tokens; several processes may share the store."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._documents = Documents(store, SPACE)
        self._audit_log = AuditLog(store)
        self._clock = clock
        self._cache: dict[str, tuple[float, Token | None]] = {}

    def create(
        self, name: str, role: Role, *, days: float | None = 365.0, scope: Sequence[str] = ()
    ) -> tuple[str, Token]:
        """A new token: its text, to be shown once, and its entry."""
        check_scope(role, scope)
        if not 0 < len(name) <= 100 or not name.isprintable():
            raise PolicyError("A token needs a name of 1 to 100 characters.", hint="Name the feed or the person.")
        if days is not None and not days > 0:
            raise PolicyError("A token must be valid for some time.", hint="Give --days above 0.")
        now = self._clock()
        ident, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        until = None if days is None else now + days * 86_400
        entry = Token(ident, name, role, _digest(secret), now, until, tuple(scope))
        with self._store.transaction() as tx:
            self._audit_log.append(tx, "grant", f"token:{ident}")
            self._documents.put(tx, ident, asdict(entry))
        return f"rt_{ident}_{secret}", entry

    def all(self) -> list[Token]:
        """All tokens, the oldest first."""
        return [Token.of(fields) for fields in reversed(self._documents.all())]

    def revoke(self, ident: str) -> bool:
        """Removes a token; tells whether it was there."""
        with self._store.transaction() as tx:
            there = self._documents.find(tx, ident) is not None
            if there:
                self._audit_log.append(tx, "revoke", f"token:{ident}")
            self._documents.delete(tx, ident)
        self._cache.pop(ident, None)
        return there

    def find(self, text: str) -> Token | None:
        """The entry of a token that is right and not expired, otherwise None."""
        ident, secret = _parts(text)
        entry = self._entry(ident) if ident else None
        # The work is the same whether the id is known or not.
        right = hmac.compare_digest(_digest(secret), entry.digest if entry else _DUMMY_DIGEST)
        if entry is None or not right or (entry.expires is not None and entry.expires <= self._clock()):
            return None
        return replace(entry, digest="")

    def _entry(self, ident: str) -> Token | None:
        now = time.monotonic()
        until, token = self._cache.get(ident, (0.0, None))
        if until < now:
            value = self._store.get(OWNER, SPACE, ident)
            token = None if value is None else Token.of(json.loads(value))
            if len(self._cache) > 10_000:
                self._cache.clear()
            if token is not None:
                self._cache[ident] = (now + _CACHE_SECONDS, token)
        return token


def check_scope(role: Role, scope: Sequence[str]) -> None:
    """Refuses a scope that a role cannot have."""
    if scope and role not in _KINDS:
        raise PolicyError(f"A token of role {role} has no scope.", hint="Leave the scope out, or choose another role.")
    for part in scope:
        match = _SCOPE.fullmatch(part)
        if match is None or match[1] not in _KINDS[role] or not part.isprintable():
            raise PolicyError(
                "A scope names sources as kind:name; * may end a name.",
                hint=f"For {role} the kinds are {', '.join(_KINDS[role])}: such as stream:ward7 or stream:ward*.",
            )


def _parts(text: str) -> tuple[str, str]:
    kind, _, rest = text.partition("_")
    ident, _, secret = rest.partition("_")
    fine = kind == "rt" and len(ident) == 12 and ident.isascii() and ident.isalnum() and len(secret) <= 100
    return (ident, secret) if fine else ("", "")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
