"""`reticent serve`: the API and the studio in one process."""

from __future__ import annotations

from pathlib import Path

import click

from reticent.cli import options
from reticent.errors import ConnectorError, PolicyError


@click.command()
@click.option(
    "--store",
    envvar="RETICENT_STORE",
    show_envvar=True,
    help="The private store: a path or a URL; default reticent.db, in the demo one that is thrown away.",
)
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(min=0, max=65535), default=8080, help="Port to listen on; 0 takes a free one."
)
@click.option("--demo", is_flag=True, help="Synthetic data, and no tokens on this machine.")
@click.option("--studio/--no-studio", default=True, help="Serve the studio's pages too.")
@click.option("--certificate", type=options.EXISTING_PATH, help="TLS certificate chain (PEM).")
@click.option("--key", type=options.EXISTING_PATH, help="Its private key (PEM).")
@click.option("--oidc", type=options.EXISTING_PATH, help="Sign in to the studio through this provider (YAML).")
@click.option(
    "--plain-http",
    is_flag=True,
    help="Speak plain HTTP off this machine: whoever reads that network has the tokens and the records.",
)
@click.option("--max-body", type=click.IntRange(min=1), default=64, help="Largest request body, in megabytes.")
@click.option(
    "--keep-days",
    type=click.FloatRange(min=1),
    help="Days that released batches of streams stay readable; default: for ever.",
)
@click.option(
    "--keep",
    multiple=True,
    help="KIND=DAYS: how long jobs, tables and releases are kept; default: for ever. Repeatable.",
)
@click.option(
    "--rate", type=click.FloatRange(min=0.1), default=2000, help="Requests per second that one token may make."
)
def serve(
    store: str | None,
    host: str,
    port: int,
    demo: bool,
    studio: bool,
    certificate: Path | None,
    key: Path | None,
    oidc: Path | None,
    plain_http: bool,
    max_body: int,
    keep_days: float | None,
    keep: tuple[str, ...],
    rate: float,
) -> None:
    """Serve the API and the studio.

    Feeds post to the API, analysts read from it.
    """
    if (certificate is None) != (key is None):
        raise PolicyError("TLS needs both a certificate and its key.", hint="Give --certificate and --key.")
    try:
        from reticent.service.expiry import parse_days
        from reticent.service.oidc import OidcSettings
        from reticent.service.run import run
        from reticent.service.settings import Settings
    except ModuleNotFoundError as error:
        raise ConnectorError(f"The server needs {error.name}.", hint="pip install 'reticent[server]'") from None
    settings = Settings(
        store=store or ("" if demo else "reticent.db"),
        host=host,
        port=port,
        demo=demo,
        studio=studio,
        max_body=max_body << 20,
        rate=rate,
        keep_days=keep_days,
        keep=parse_days(keep),
        certificate=certificate,
        key=key,
        plain_http=plain_http,
        oidc=OidcSettings.read(oidc) if oidc else None,
    )
    run(settings)
