"""Who is calling: a token, a signed-in browser, or the demonstration on loopback; and whether they may."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from starlette.requests import HTTPConnection, Request

from reticent.service.problems import ServiceError
from reticent.service.rate import Rate
from reticent.service.settings import Settings, is_loopback
from reticent.service.tokens import Role, Token, Tokens

COOKIE = "reticent_session"
_DEMO = Token("demo", "demonstration", Role.CUSTODIAN, "", 0.0)


@dataclass(frozen=True)
class _Session:
    token: str
    until: float


class Access:
    """Checks callers; every route and every page asks it."""

    def __init__(self, settings: Settings, tokens: Tokens) -> None:
        self._settings = settings
        self._tokens = tokens
        self._calls = Rate(settings.rate)
        self._refused = Rate(settings.refusals)
        self._sessions: dict[str, _Session] = {}

    def caller(self, request: HTTPConnection) -> Token:
        """The token behind an API request.

        Raises:
            ServiceError: 401 without a valid token, 429 when there are too many requests.
        """
        text = request.headers.get("authorization", "")
        if not text and self.is_demo(request):
            return _DEMO
        token = self._check(request, text[7:] if text[:7].lower() == "bearer " else "")
        if not self._calls.allows(token.id):
            raise ServiceError(429, "rate", "Too many requests with this token.", "Send larger batches, less often.")
        return token

    def is_demo(self, request: HTTPConnection) -> bool:
        """Whether this is the demonstration's own user: on loopback, and not sent here by another site."""
        if not self._settings.open or request.client is None or not is_loopback(request.client.host):
            return False
        host = request.headers.get("host", "")
        # A name that merely resolves to loopback would let a foreign page read our answers.
        if not is_loopback(host.rsplit(":", 1)[0]):
            return False
        origin = request.headers.get("origin")
        return origin is None or origin.split("://", 1)[-1] == host

    def _check(self, request: HTTPConnection, text: str) -> Token:
        address = request.client.host if request.client else "unknown"
        if self._refused.exhausted(address):
            raise ServiceError(429, "rate", "Too many wrong tokens from this address.", "Wait, then use the right one.")
        token = self._tokens.find(text)
        if token is None:
            self._refused.allows(address)
            raise ServiceError(
                401,
                "token",
                "A valid token is needed.",
                "Send 'Authorization: Bearer ...'; a custodian makes one with: reticent token create.",
            )
        return token

    # The studio

    def sign_in(self, request: HTTPConnection, text: str) -> str:
        """Begins a session for a token; gives the cookie's value."""
        token = self._check(request, text.strip())
        if token.role is Role.FEED:
            raise ServiceError(
                403, "role", "A feed token cannot open the studio.", "Use a custodian's or an analyst's."
            )
        now = time.monotonic()
        self._sessions = {key: kept for key, kept in self._sessions.items() if kept.until > now}
        key = secrets.token_urlsafe(32)
        self._sessions[key] = _Session(text.strip(), now + self._settings.session)
        return key

    def sign_out(self, request: HTTPConnection) -> None:
        """Ends a session."""
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)

    def visitor(self, request: HTTPConnection) -> Token | None:
        """The token behind a page; None when nobody is signed in."""
        if self.is_demo(request):
            return _DEMO
        session = self._sessions.get(request.cookies.get(COOKIE, ""))
        if session is None or session.until <= time.monotonic():
            return None
        return self._tokens.find(session.token)


def needs(*roles: Role) -> Callable[[Request], Coroutine[Any, Any, Token]]:
    """A dependency of a route: callers with one of the roles; a custodian may do all."""
    allowed = {Role.CUSTODIAN, *roles}

    async def check(request: Request) -> Token:
        token: Token = request.app.state.access.caller(request)
        if token.role not in allowed:
            raise ServiceError(403, "role", f"The role {token.role} may not do this.", "Ask a custodian.")
        return token

    check.__doc__ = f"Roles: {', '.join(sorted(allowed))}."
    return check
