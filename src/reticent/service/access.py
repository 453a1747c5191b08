"""Authentication and authorization of API calls, signed-in browsers and the demonstration on loopback."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from reticent.service.actor import act_as
from reticent.service.problems import ServiceError
from reticent.service.settings import Settings, is_loopback
from reticent.service.tokens import Role, Token, Tokens

COOKIE = "reticent_session"
_MAX_CALLERS = 10_000
"""Highest number of callers with a stored allowance."""
_DEMO = Token("demo", "demonstration", Role.CUSTODIAN, "", 0.0)


class RateLimiter:
    """A token bucket per caller: `rate` calls per second, with bursts of up to two seconds' worth of calls."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._burst = max(2 * rate, 1.0)
        self._allowances: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, caller: str) -> bool:
        """Return whether the caller is within the limit, and count the call if so."""
        now = time.monotonic()
        left, at = self._allowances.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        if left < 1:
            return False
        self._allowances[caller] = (left - 1, now)
        self._allowances.move_to_end(caller)
        if len(self._allowances) > _MAX_CALLERS:
            self._allowances.popitem(last=False)
        return True


@dataclass(frozen=True)
class _Session:
    credential: str | Token
    """The text of a token, checked at every use; or the user that the provider has authenticated."""
    until: float


class Access:
    """Authenticates the callers of all routes and pages."""

    def __init__(self, settings: Settings, tokens: Tokens) -> None:
        self._settings = settings
        self._tokens = tokens
        self._calls = RateLimiter(settings.rate)
        self._failures = RateLimiter(settings.wrong_token_rate)
        self._sessions: dict[str, _Session] = {}

    def caller(self, request: HTTPConnection) -> Token:
        """Return the token of an API request.

        Raises:
            ServiceError: 401 without a valid token, 429 when there are too many requests.
        """
        text = request.headers.get("authorization", "")
        if not text and self.is_demo(request):
            return _DEMO
        token = self._check(request, text[7:] if text[:7].lower() == "bearer " else "")
        if not self._calls.allows(token.id):
            raise ServiceError(429, "rate", "Too many requests with this token.", "Send fewer and larger batches.")
        return token

    def is_still_valid(self, request: HTTPConnection) -> bool:
        """Return whether the token of a long-running request is still valid."""
        text = request.headers.get("authorization", "")
        return self._tokens.find(text[7:]) is not None if text else self.is_demo(request)

    def is_demo(self, request: HTTPConnection) -> bool:
        """Return whether the request comes from this machine to the demonstration, and not from another site's page."""
        if not self._settings.allows_anonymous or request.client is None or not is_loopback(request.client.host):
            return False
        host = request.headers.get("host", "")
        # A host name that resolves to loopback would let another site's page read the answers.
        return is_loopback(host.rsplit(":", 1)[0]) and self.is_same_origin(request)

    @staticmethod
    def is_same_origin(request: HTTPConnection) -> bool:
        """Return whether the request has no Origin header or the origin of this server."""
        origin = request.headers.get("origin")
        return origin is None or origin.split("://", 1)[-1] == request.headers.get("host", "")

    def _check(self, request: HTTPConnection, text: str) -> Token:
        token = self._tokens.find(text)
        if token is None:
            # Only failures count: a valid token still works when another client behind the same proxy sends wrong ones.
            if not self._failures.allows(request.client.host if request.client else "unknown"):
                raise ServiceError(
                    429, "rate", "Too many invalid tokens from this address.", "Wait, then use a valid token."
                )
            raise ServiceError(
                401,
                "token",
                "The request has no valid token.",
                "Send 'Authorization: Bearer ...'. A custodian creates a token with: reticent token create.",
            )
        return token

    # The studio

    def sign_in(self, request: HTTPConnection, text: str) -> str:
        """Start a session for a token and return the value of its cookie."""
        token = self._check(request, text.strip())
        if token.role not in (Role.CUSTODIAN, Role.ANALYST):
            raise ServiceError(
                403, "role", f"A {token.role} token cannot open the studio.", "Use a custodian or analyst token."
            )
        act_as(token)
        return self._begin(text.strip(), self._settings.session)

    def admit(self, user: Token, seconds: float) -> str:
        """Start a session for a user of the OpenID provider and return the value of its cookie."""
        act_as(user)
        return self._begin(user, min(seconds, self._settings.session))

    def _begin(self, credential: str | Token, seconds: float) -> str:
        now = time.monotonic()
        self._sessions = {key: session for key, session in self._sessions.items() if session.until > now}
        key = secrets.token_urlsafe(32)
        self._sessions[key] = _Session(credential, now + seconds)
        return key

    def sign_out(self, request: HTTPConnection) -> None:
        """End the session of a request."""
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)

    def user_of(self, request: HTTPConnection) -> Token | None:
        """Return the signed-in user of a page request, or None."""
        if not self.is_same_origin(request):
            return None
        if self.is_demo(request):
            return _DEMO
        session = self._sessions.get(request.cookies.get(COOKIE, ""))
        if session is None or session.until <= time.monotonic():
            return None
        return session.credential if isinstance(session.credential, Token) else self._tokens.find(session.credential)


def require_role(*roles: Role, kind: str = "") -> Callable[[Request], Coroutine[Any, Any, Token]]:
    """Return a route dependency that requires one of the roles and a scope with the source `name`; a custodian may do all."""
    allowed = {Role.CUSTODIAN, *roles}

    async def check(request: Request) -> Token:
        token: Token = request.scope.get("token") or request.app.state.access.caller(request)
        request.scope["token"] = token
        if token.role not in allowed:
            raise ServiceError(
                403, "role", f"The role {token.role} may not do this.", "Ask a custodian for a token with another role."
            )
        name = request.path_params.get("name")
        if kind and name is not None and not token.can_access(kind, name):
            raise ServiceError(
                403, "scope", "The scope of this token does not include this source.", "Ask a custodian."
            )
        act_as(token)
        return token

    check.__doc__ = f"Roles: {', '.join(sorted(allowed))}."
    return check


class AuthenticatedRoute(APIRoute):
    """A route that authenticates the caller before it reads the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the default handler, preceded by the checks of the route."""
        handler = super().get_route_handler()
        checks = [part.dependency for part in self.dependencies if part.dependency is not None]

        async def handle(request: Request) -> Response:
            for check in checks:
                await check(request)
            return await handler(request)

        return handle
