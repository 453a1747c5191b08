"""The settings of the server; the defaults are for a machine of the hospital itself."""

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
    """Limits and addresses of one server.

    Attributes:
        store: path or URL of the private store.
        host: address to listen on.
        port: port to listen on.
        demo: serve synthetic data, and need no tokens on loopback.
        studio: also serve the studio.
        max_body: largest request body in bytes.
        rate: requests per second that one token may make.
        wrong_token_rate: invalid tokens per second that one address may send.
        timeout: seconds that a client may take to send a body, and the server to answer.
        session: seconds that a studio session lasts.
        keep_days: days that released batches of a stream stay readable; None means forever.
        keep: days that jobs, tables and releases are kept, by kind; kinds without an entry are kept forever.
        certificate: file of the TLS certificate chain.
        key: file of the private key of the certificate.
        oidc: the institution's provider for sign-in to the studio.
        plain_http: allow plain HTTP on other addresses than loopback, behind a TLS proxy.
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
        """Whether the server uses TLS: cookies are then secure, and browsers get an HSTS header."""
        return self.certificate is not None

    @property
    def allows_anonymous(self) -> bool:
        """Whether requests from this machine need no token: only in the demonstration on loopback."""
        return self.demo and is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Return whether an address or host name is this machine's loopback."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
