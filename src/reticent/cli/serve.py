"""`reticent serve`: the API and the studio in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            help="The private store: a path or a URL; default reticent.db, in the demo one that is thrown away.",
            show_default=False,
            envvar="RETICENT_STORE",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8080,
    demo: Annotated[bool, typer.Option("--demo", help="Synthetic data, and no tokens on this machine.")] = False,
    studio: Annotated[bool, typer.Option(help="Serve the studio's pages too.")] = True,
    certificate: Annotated[
        Path | None, typer.Option(help="TLS certificate chain (PEM).", show_default=False, exists=True)
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key (PEM).", show_default=False, exists=True)] = None,
    oidc: Annotated[
        Path | None,
        typer.Option(help="Sign in to the studio through this provider (YAML).", show_default=False, exists=True),
    ] = None,
    plain_http: Annotated[
        bool,
        typer.Option(
            "--plain-http",
            help="Speak plain HTTP off this machine: whoever reads that network has the tokens and the records.",
        ),
    ] = False,
    max_body: Annotated[int, typer.Option(help="Largest request body, in megabytes.", min=1)] = 64,
    keep_days: Annotated[
        float | None,
        typer.Option(
            help="Days that released batches of streams stay readable; default: for ever.", show_default=False, min=1
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="KIND=DAYS: how long jobs, tables and releases are kept; default: for ever. Repeatable.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests per second that one token may make.", min=0.1)] = 2_000,
) -> None:
    """Serve the API and the studio.

    Feeds post to the API, analysts read from it.
    """
    from reticent.errors import ConnectorError, PolicyError

    if (certificate is None) != (key is None):
        raise PolicyError("TLS needs both a certificate and its key.", hint="Give --certificate and --key.")
    try:
        from reticent.service.expiry import read_days
        from reticent.service.oidc import OidcSettings
        from reticent.service.run import Tls, run
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
        keep=read_days(keep or []),
        secure=certificate is not None,
        plain=plain_http,
        oidc=OidcSettings.read(oidc) if oidc else None,
    )
    run(settings, Tls(certificate, key) if certificate and key else None)
