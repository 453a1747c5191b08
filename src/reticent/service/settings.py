"""What an operator may set; the defaults are meant for a hospital's own machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from reticent.service.oidc import OidcSettings


@dataclass(frozen=True)
class Settings:
    """Limits and places of one server.

    Attributes:
        store: path or URL of the private store.
        host: address to listen on.
        port: port to listen on.
        demo: demonstration data, and no tokens needed on loopback.
        studio: serve the pages too.
        max_body: largest request body in bytes.
        rate: requests per second that one token may make.
        refusals: wrong tokens per second that one address may try.
        timeout: seconds a client may take to send a body, and the server to answer.
        session: seconds a sign-in to the studio lasts.
        keep_days: days that a stream's released batches stay readable; None for ever.
        keep: days that jobs, tables and releases are kept, by kind; for ever where it is not said.
        certificate: file of the TLS certificate chain.
        key: file of its private key.
        oidc: the house's provider, for signing in to the studio.
        plain: plain HTTP may be spoken off this machine, since a proxy speaks TLS for it.
    """

    store: str
    host: str = "127.0.0.1"
    port: int = 8080
    demo: bool = False
    studio: bool = True
    max_body: int = 64 << 20
    rate: float = 2_000.0
    wrong_token_rate: float = 5.0
    timeout: float = 30.0
    session: float = 8 * 3600.0
    keep_days: float | None = None
    keep: Mapping[str, float] = field(default_factory=dict)
    certificate: Path | None = None
    key: Path | None = None
    plain_http: bool = False
    oidc: OidcSettings | None = None

    @property
    def secure(self) -> bool:
        """Whether the server speaks TLS: then cookies are kept to it and browsers are told to stay with it."""
        return self.certificate is not None

    @property
    def allows_anonymous(self) -> bool:
        """Whether requests from this machine need no token: only in the demonstration, and only on loopback."""
        return self.demo and is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether an address or name means this machine and no other."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
