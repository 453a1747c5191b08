"""Tokens with a role and a scope. The store contains only their hashes, which are compared in constant time.

A token is `rt_<id>_<secret>`: the id finds the entry; the secret has 256 random bits, so one round of a hash suffices.
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
# Seconds that a revoked token may still be accepted from the cache.
_CACHE_SECONDS = 2.0
_DUMMY_DIGEST = hashlib.sha256(b"nobody").hexdigest()


class Role(StrEnum):
    """The role of a token."""

    FEED = "feed"
    ANALYST = "analyst"
    CUSTODIAN = "custodian"
    MONITOR = "monitor"


_KINDS = {Role.FEED: ("stream", "evolving"), Role.ANALYST: ("stream", "evolving", "series", "table", "release")}
"""Kinds of sources in the scope of each role; the other roles have no scope."""
_SCOPE = re.compile(r"([a-z]+):([^:*]{0,100}\*?)")


@dataclass(frozen=True)
class Token:
    """The stored entry of a token."""

    id: str
    name: str
    role: Role
    digest: str
    created: float
    expires: float | None = None
    scope: tuple[str, ...] = ()
    """Sources as `kind:name`, where `*` at the end matches any rest of the name; empty means all sources."""

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Build a token from the fields of a document."""
        return cls(**(fields | {"role": Role(fields["role"]), "scope": tuple(fields["scope"])}))

    def can_access(self, kind: str, name: str) -> bool:
        """Return whether the scope includes a source."""
        source = f"{kind}:{name}"
        return not self.scope or any(
            source.startswith(part[:-1]) if part.endswith("*") else source == part for part in self.scope
        )

    def __repr__(self) -> str:
        return f"Token({self.id}, {self.role})"


OPERATOR = Token("operator", "the command line", Role.CUSTODIAN, "", 0.0)
"""The actor of the command line in the audit log."""


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
        """Create a token and return its text, which is displayed once, and its entry."""
        check_scope(role, scope)
        if not 0 < len(name) <= 100 or not name.isprintable():
            raise PolicyError(
                "The name of a token must have 1 to 100 printable characters.", hint="Name the feed or the person."
            )
        if days is not None and not days > 0:
            raise PolicyError("The days of a token must be above 0.", hint="Give --days above 0.")
        now = self._clock()
        ident, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        until = None if days is None else now + days * 86_400
        entry = Token(ident, name, role, _digest(secret), now, until, tuple(scope))
        with self._store.transaction() as tx:
            self._audit_log.append(tx, "grant", f"token:{ident}")
            self._documents.put(tx, ident, asdict(entry))
        return f"rt_{ident}_{secret}", entry

    def all(self) -> list[Token]:
        """Return all tokens, oldest first."""
        return [Token.of(fields) for fields in reversed(self._documents.all())]

    def revoke(self, ident: str) -> bool:
        """Remove a token and return whether it existed."""
        with self._store.transaction() as tx:
            exists = self._documents.find(tx, ident) is not None
            if exists:
                self._audit_log.append(tx, "revoke", f"token:{ident}")
            self._documents.delete(tx, ident)
        self._cache.pop(ident, None)
        return exists

    def find(self, text: str) -> Token | None:
        """Return the entry of a valid token that has not expired, or None."""
        ident, secret = _parts(text)
        entry = self._entry(ident) if ident else None
        # An unknown id takes the same work, so that the time does not disclose it.
        matches = hmac.compare_digest(_digest(secret), entry.digest if entry else _DUMMY_DIGEST)
        if entry is None or not matches or (entry.expires is not None and entry.expires <= self._clock()):
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
    """Reject a scope that a role cannot have."""
    if scope and role not in _KINDS:
        raise PolicyError(f"A token of role {role} has no scope.", hint="Remove the scope, or choose another role.")
    for part in scope:
        match = _SCOPE.fullmatch(part)
        if match is None or match[1] not in _KINDS[role] or not part.isprintable():
            raise PolicyError(
                "A scope must be kind:name; * may end the name.",
                hint=f"Use {', '.join(_KINDS[role])} for the role {role}, such as stream:ward7 or stream:ward*.",
            )


def _parts(text: str) -> tuple[str, str]:
    kind, _, rest = text.partition("_")
    ident, _, secret = rest.partition("_")
    is_token = kind == "rt" and len(ident) == 12 and ident.isascii() and ident.isalnum() and len(secret) <= 100
    return (ident, secret) if is_token else ("", "")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
