"""`reticent serve`: run the API and the studio in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reticent.cli import options
from reticent.errors import ConnectorError, PolicyError


@click.command()
@click.option(
    "--store",
    envvar="RETICENT_STORE",
    show_envvar=True,
    help="Store: a file or a URL; default: reticent.db, or a temporary store with --demo.",
)
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(min=0, max=65535), default=8080, help="Port to listen on; 0: any free port."
)
@click.option("--demo", is_flag=True, help="Use synthetic data, and need no tokens on this machine.")
@click.option("--studio/--no-studio", default=True, help="Also serve the studio.")
@click.option("--certificate", type=options.EXISTING_PATH, help="TLS certificate chain (PEM).")
@click.option("--key", type=options.EXISTING_PATH, help="Private key of the certificate (PEM).")
@click.option("--oidc", type=options.EXISTING_PATH, help="OpenID Connect provider for sign-in to the studio (YAML).")
@click.option(
    "--plain-http",
    is_flag=True,
    help="Allow HTTP without TLS from other machines. Anyone on the network can then read tokens and records.",
)
@click.option("--max-body", type=click.IntRange(min=1), default=64, help="Largest request body in megabytes.")
@click.option(
    "--keep-days",
    type=click.FloatRange(min=1),
    help="Days to keep released batches of streams; default: forever.",
)
@click.option(
    "--keep",
    multiple=True,
    help="KIND=DAYS: days to keep jobs, tables or releases; default: forever. Repeatable.",
)
@click.option(
    "--rate", type=click.FloatRange(min=0.1), default=2000, help="Limit of requests per second for each token."
)
def serve(
    store: str | None,
    demo: bool,
    certificate: Path | None,
    key: Path | None,
    oidc: Path | None,
    max_body: int,
    keep: tuple[str, ...],
    **options: Any,
) -> None:
    """Run the HTTP API and the studio.

    Feeds send records to the API, and analysts read releases from it.
    """
    if (certificate is None) != (key is None):
        raise PolicyError("TLS needs a certificate and its private key.", hint="Give both --certificate and --key.")
    try:
        from reticent.service.expiry import parse_days
        from reticent.service.oidc import OidcSettings
        from reticent.service.run import run
        from reticent.service.settings import Settings
    except ModuleNotFoundError as error:
        raise ConnectorError(f"The server needs {error.name}.", hint="Run pip install 'reticent[server]'.") from None
    settings = Settings(
        store=store or ("" if demo else "reticent.db"),
        demo=demo,
        certificate=certificate,
        key=key,
        oidc=OidcSettings.read(oidc) if oidc else None,
        max_body=max_body << 20,
        keep=parse_days(keep),
        **options,
    )
    run(settings)
