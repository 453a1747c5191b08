"""Sign-in to the studio through the institution's own OpenID Connect provider, in addition to tokens.

It uses the code flow with PKCE, a state bound to the browser and a nonce. authlib checks signature, issuer, audience
and time of the provider's answer. The user's groups give the role and the scope; without such a group there is no access.

Guarantee: against attackers who cannot sign in at the provider with such a group, and against sites that try to sign a
    user in as another person. An answer must fit a request of the same browser from the last ten minutes, and only once.
Not covered: a user who loses a group keeps the session until it ends, at most an hour; the API, which accepts only tokens.
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
"""Longest session in seconds; after it the user signs in at the provider again."""
_MAX_PENDING, _SIGN_IN_SECONDS = 1_000, 600.0


@dataclass(frozen=True)
class OidcSettings:
    """Addresses of the provider and the roles of its groups.

    Attributes:
        issuer: address of the provider.
        client_id: id of this service at the provider.
        client_secret: authenticates this service at the provider.
        address: address of this service, as browsers see it.
        roles: role -> groups with this role.
        scope: group -> sources that its analysts can access; a group without an entry can access all.
        claim: name of the claim with the groups.
        asks: OAuth scopes to request from the provider.
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
        """Read the settings from a YAML file; the secret is in another file, named in `client_secret_file`."""
        try:
            values = yaml.safe_load(file.read_text(encoding="utf-8"))
            secret = (file.parent / values.pop("client_secret_file")).read_text(encoding="utf-8").strip()
            settings = cls(client_secret=secret, **values)
        except (OSError, yaml.YAMLError, TypeError, AttributeError, KeyError):
            raise PolicyError(
                "The OpenID Connect settings are malformed.",
                hint="Give issuer, client_id, client_secret_file, address and roles; see docs/service.md.",
            ) from None
        settings.check()
        return settings

    def check(self) -> None:
        """Reject invalid addresses, roles and scopes."""
        for address in (self.issuer, self.address):
            scheme, _, rest = address.partition("://")
            host = rest.split("/")[0].rsplit(":", 1)[0]
            if scheme != "https" and not (scheme == "http" and is_loopback(host)):
                raise PolicyError(
                    "issuer and address must be https addresses.", hint="Write them as https://id.example."
                )
        known = set(self.roles) <= {Role.CUSTODIAN, Role.ANALYST}
        if not self.roles or not known or not all(isinstance(groups, list) for groups in self.roles.values()):
            raise PolicyError("roles must map custodian or analyst to groups.", hint="Write roles: {analyst: [GROUP]}.")
        for sources in self.scope.values():
            check_scope(Role.ANALYST, sources)


class Oidc:
    """The provider: `begin` sends a browser to the sign-in and `finish` checks the answer."""

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
        """Redirect the browser to the provider."""
        key = secrets.token_urlsafe(32)
        state: dict[str, Any] = {}
        request.scope["session"] = state
        back = f"{self._settings.address.rstrip('/')}/sign-in/callback"
        try:
            answer: Response = await self._client.authorize_redirect(request, back)
        except Exception:  # noqa: BLE001 - any error of the network or the provider
            raise ServiceError(
                503, "provider", "The sign-in provider cannot be reached.", "Try again later, or sign in with a token."
            ) from None
        now = time.monotonic()
        self._pending[key] = (now + _SIGN_IN_SECONDS, state)
        while len(self._pending) > _MAX_PENDING or next(iter(self._pending.values()))[0] < now:
            self._pending.popitem(last=False)
        secure = self._settings.address.startswith("https:")
        # Lax, since the provider redirects the browser back from another site.
        answer.set_cookie(COOKIE, key, max_age=int(_SIGN_IN_SECONDS), httponly=True, samesite="lax", secure=secure)
        return answer

    async def finish(self, request: Request) -> Token:
        """Return the user who has signed in at the provider.

        Raises:
            ServiceError: 401 if the answer is invalid, 403 if none of the user's groups has a role.
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
        except Exception:  # noqa: BLE001 - forged, late, refused or malformed
            raise ServiceError(
                401, "provider", "The sign-in failed.", "Start again, or sign in with a token."
            ) from None
        return self._token(claims)

    def _token(self, claims: dict[str, Any]) -> Token:
        claim = claims.get(self._settings.claim)
        groups = {claim} if isinstance(claim, str) else set(map(str, claim if isinstance(claim, list) else ()))
        for role in (Role.CUSTODIAN, Role.ANALYST):
            role_groups = groups & set(self._settings.roles.get(role, ()))
            if role_groups:
                scope = self._scope(role_groups) if role is Role.ANALYST else ()
                name = _printable_name(str(claims.get("name") or claims.get("preferred_username") or "unnamed user"))
                # The store gets a hash of the provider's id of a person, not the id.
                ident = hashlib.sha256(f"{self._settings.issuer} {claims['sub']}".encode()).hexdigest()[:12]
                return Token(f"oidc-{ident}", name, role, "", time.time(), None, scope)
        raise ServiceError(403, "role", "None of your groups may open the studio.", "Ask a custodian for access.")

    def _scope(self, groups: set[str]) -> tuple[str, ...]:
        """Return the sources of all groups; empty, which means all, if one group has no entry."""
        known = self._settings.scope
        return tuple(sorted({source for group in groups for source in known[group]})) if groups <= set(known) else ()


def _printable_name(name: str) -> str:
    """Return a name for the audit log, without control and invisible characters."""
    return "".join(c if c.isprintable() else " " for c in name)[:100].strip() or "unnamed user"
