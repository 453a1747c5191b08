"""Start of the server: its socket, its messages to the operator and the demonstration."""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import socket
import sys
import tempfile
from dataclasses import replace

import uvicorn

from reticent.errors import ConnectorError, PolicyError
from reticent.service.app import create_app
from reticent.service.connection import Connection
from reticent.service.settings import Settings, is_loopback

# Feeds keep idle connections between batches; the server rejects connections above this number.
_KEEP_ALIVE = 75
_CONNECTIONS = 4_000
_SWITCH_INTERVAL = 1e-3
_GC_THRESHOLDS = (10_000, 5, 40)
"""Thresholds of the garbage collector; a page creates about ten thousand objects."""


def run(settings: Settings) -> None:
    """Serve until a signal stops the server."""
    # uvicorn raises the signal again after its shutdown; the signal must not interrupt the cleanup.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # Requests and jobs share one interpreter; at the default 5 ms per switch a request would wait most of a second.
    sys.setswitchinterval(_SWITCH_INTERVAL)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with contextlib.ExitStack() as stack:
        if settings.demo and not is_loopback(settings.host):
            raise PolicyError("The demonstration listens only on this machine.", hint="Remove --host or --demo.")
        if not settings.secure and not settings.plain_http and not is_loopback(settings.host):
            raise PolicyError(
                "The service needs TLS on an address that other machines reach: plain HTTP shows tokens and records to the network.",
                hint="Give --certificate and --key; or --plain-http if only a TLS proxy can reach this address.",
            )
        if not settings.store:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="reticent-demo-"))
            settings = replace(settings, store=f"{folder}/store.db")
        listening = stack.enter_context(_socket(settings))
        app = create_app(settings)
        scheme = "https" if settings.secure else "http"
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        address = f"{scheme}://{host}:{listening.getsockname()[1]}"
        if settings.demo:
            from reticent.service.demo import Demo

            stack.enter_context(Demo(app.state.hub))
        served = config(app, settings)
        served.load()
        _freeze_heap()
        listening.listen(served.backlog)  # before the address is printed, since clients may connect at once
        _print_address(address, settings, app.state.hub.tokens.all() == [])
        uvicorn.Server(served).run(sockets=[listening])


def _freeze_heap() -> None:
    """Exclude all current objects from garbage collection, and collect less often.

    Open pages consist of many small objects; frequent full collections would stop the feeds for a tenth of a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def config(app: object, settings: Settings) -> uvicorn.Config:
    """Return the uvicorn settings for an app."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=Connection,
        log_config=None,
        access_log=False,  # a path may contain a name
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=5,
        limit_concurrency=_CONNECTIONS,
        backlog=1024,
        proxy_headers=False,  # a client could forge its address in these headers
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
    )


def _socket(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise ConnectorError(
            f"Cannot listen on port {settings.port}: {error.strerror}.", hint="Choose another port with --port."
        ) from None
    return listening


def _print_address(address: str, settings: Settings, no_tokens: bool) -> None:  # noqa: FBT001
    lines = [f"Reticent serves at {address}" + ("" if settings.studio else "/api/v1")]
    if settings.allows_anonymous:
        lines.append(
            "Demonstration with synthetic data: requests from this machine need NO TOKEN. Do not use it for real data."
        )
    elif no_tokens:
        store = f" --store {settings.store}" if settings.store != "reticent.db" else ""
        lines.append(f"There are no tokens yet. Create one: reticent token create NAME --role custodian{store}")
    if settings.plain_http and not is_loopback(settings.host):
        lines.append("PLAIN HTTP: the network between this server and the proxy can read the tokens and the records.")
    lines.append(f"API: {address}/api/v1/openapi.json   Stop: Ctrl-C")
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()
