"""Signing in to the studio through the house's own provider (OpenID Connect), beside tokens.

The code flow with PKCE, a state bound to the browser and a nonce; authlib checks signature, issuer, audience and time of what
the provider says. Groups of the visitor become a role, and a scope where one is given; nobody without such a group gets in.

Guarantee: against whoever cannot sign in at the provider with such a group, and against sites that would sign a visitor in as somebody
    else: the answer has to fit a request that the same browser began within ten minutes, and fits once.
Not covered: a visitor who loses a group keeps the session until it ends, an hour at most; the API, which takes tokens alone.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from starlette.requests import Request
from starlette.responses import Response

from reticent.errors import ConnectorError, PolicyError
from reticent.service.problems import ServiceError
from reticent.service.settings import is_loopback
from reticent.service.tokens import Role, Token, check_scope

COOKIE = "reticent_oidc"
SESSION = 3_600.0
"""Seconds a session lasts at most; then the provider is asked again."""
_MAX_PENDING, _SIGN_IN_SECONDS = 1_000, 600.0


@dataclass(frozen=True)
class OidcSettings:
    """How the provider is reached, and what its groups may do.

    Attributes:
        issuer: address of the provider.
        client_id: what it calls this service.
        client_secret: proves to it that this service is calling.
        address: of this service, as browsers see it.
        roles: role -> groups that have it.
        scope: group -> sources that its analysts see; a group without an entry sees all.
        claim: where the provider puts the groups.
        asks: scopes to ask the provider for.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    address: str
    roles: dict[str, list[str]]
    scope: dict[str, list[str]] = field(default_factory=dict)
    claim: str = "groups"
    scopes: str = "openid profile"

    @classmethod
    def read(cls, file: Path) -> OidcSettings:
        """From a YAML file; the secret stands in a file of its own, named `client_secret_file`."""
        try:
            values = yaml.safe_load(file.read_text(encoding="utf-8"))
            secret = (file.parent / values.pop("client_secret_file")).read_text(encoding="utf-8").strip()
            settings = cls(client_secret=secret, **values)
        except (OSError, yaml.YAMLError, TypeError, AttributeError, KeyError):
            raise PolicyError(
                "The settings of the provider are not understood.",
                hint="They need issuer, client_id, client_secret_file, address and roles; see docs/service.md.",
            ) from None
        settings.check()
        return settings

    def check(self) -> None:
        """Refuses what cannot be meant."""
        for where in (self.issuer, self.address):
            scheme, _, rest = where.partition("://")
            host = rest.split("/")[0].rsplit(":", 1)[0]
            if scheme != "https" and not (scheme == "http" and is_loopback(host)):
                raise PolicyError(
                    "Provider and service are named by https addresses.", hint="Such as https://id.example."
                )
        known = set(self.roles) <= {Role.CUSTODIAN, Role.ANALYST}
        if not self.roles or not known or not all(isinstance(groups, list) for groups in self.roles.values()):
            raise PolicyError("Groups of the provider become custodians or analysts.", hint="roles: {analyst: [GROUP]}")
        for sources in self.scope.values():
            check_scope(Role.ANALYST, sources)


class Oidc:
    """The provider; `begin` sends a browser there and `finish` takes what comes back."""

    def __init__(self, settings: OidcSettings) -> None:
        try:
            from authlib.integrations.starlette_client import OAuth
        except ModuleNotFoundError as error:
            raise ConnectorError(f"OpenID Connect needs {error.name}.", hint="pip install 'reticent[oidc]'") from None
        self._settings = settings
        self._pending: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()
        self._client = OAuth().register(
            "provider",
            client_id=settings.client_id,
            client_secret=settings.client_secret,
            server_metadata_url=f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={"scope": settings.scopes, "code_challenge_method": "S256", "timeout": 10},
        )

    async def begin(self, request: Request) -> Response:
        """Sends the browser to the provider."""
        key = secrets.token_urlsafe(32)
        state: dict[str, Any] = {}
        request.scope["session"] = state
        back = f"{self._settings.address.rstrip('/')}/sign-in/callback"
        try:
            answer: Response = await self._client.authorize_redirect(request, back)
        except Exception:  # noqa: BLE001 - whatever the network or the provider does
            raise ServiceError(
                503, "provider", "The provider cannot be reached.", "Try again, or use a token."
            ) from None
        now = time.monotonic()
        self._pending[key] = (now + _SIGN_IN_SECONDS, state)
        while len(self._pending) > _MAX_PENDING or next(iter(self._pending.values()))[0] < now:
            self._pending.popitem(last=False)
        secure = self._settings.address.startswith("https:")
        # Lax, since the browser comes back from another site.
        answer.set_cookie(COOKIE, key, max_age=int(_SIGN_IN_SECONDS), httponly=True, samesite="lax", secure=secure)
        return answer

    async def finish(self, request: Request) -> Token:
        """Who has signed in at the provider.

        Raises:
            ServiceError: 401 when the answer does not fit, 403 when no group of theirs has a role.
        """
        until, state = self._pending.pop(request.cookies.get(COOKIE, ""), (0.0, {}))
        request.scope["session"] = state if until > time.monotonic() else {}
        checks = {
            "iss": {"essential": True, "values": [self._settings.issuer]},
            "aud": {"essential": True, "values": [self._settings.client_id]},
        }
        try:
            tokens = await self._client.authorize_access_token(request, claims_options=checks)
            claims = dict(tokens["userinfo"])
        except Exception:  # noqa: BLE001 - forged, late, refused or broken: nobody gets in
            raise ServiceError(401, "provider", "Signing in did not work.", "Begin again, or use a token.") from None
        return self._token(claims)

    def _token(self, claims: dict[str, Any]) -> Token:
        said = claims.get(self._settings.claim)
        groups = {said} if isinstance(said, str) else set(map(str, said if isinstance(said, list) else ()))
        for role in (Role.CUSTODIAN, Role.ANALYST):
            having = groups & set(self._settings.roles.get(role, ()))
            if having:
                scope = self._scope(having) if role is Role.ANALYST else ()
                name = _printable_name(str(claims.get("name") or claims.get("preferred_username") or "somebody"))
                # The provider's own name of a person stays there.
                ident = hashlib.sha256(f"{self._settings.issuer} {claims['sub']}".encode()).hexdigest()[:12]
                return Token(f"oidc-{ident}", name, role, "", time.time(), None, scope)
        raise ServiceError(403, "role", "None of your groups may open the studio.", "Ask a custodian.")

    def _scope(self, groups: set[str]) -> tuple[str, ...]:
        """The sources of all groups; a group without an entry sees all."""
        known = self._settings.scope
        return tuple(sorted({source for group in groups for source in known[group]})) if groups <= set(known) else ()


def _printable_name(name: str) -> str:
    """A name as the trail shows it: nothing that turns or breaks a line, or cannot be seen."""
    return "".join(c if c.isprintable() else " " for c in name)[:100].strip() or "somebody"
