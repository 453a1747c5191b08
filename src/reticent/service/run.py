"""Starting the server: its socket, its words to the operator, the demonstration."""

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

# Idle connections of feeds stay open between batches; a connection above this many is turned away.
_KEEP_ALIVE = 75
_CONNECTIONS = 4_000
_SWITCH_INTERVAL = 1e-3
_GC_THRESHOLDS = (10_000, 5, 40)
"""New objects to a look at the youngest, and looks at each generation to one at the next: a page makes some ten thousand."""


def run(settings: Settings) -> None:
    """Serves until it is told to stop."""
    # uvicorn raises the signal again when it has shut down; what is left to clean up must not be cut off by it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # Requests take turns with jobs on the one interpreter; at the usual 5 ms a turn they would wait for most of a second.
    sys.setswitchinterval(_SWITCH_INTERVAL)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with contextlib.ExitStack() as stack:
        if settings.demo and not is_loopback(settings.host):
            raise PolicyError("The demonstration listens on this machine only.", hint="Leave out --host, or --demo.")
        if not settings.secure and not settings.plain_http and not is_loopback(settings.host):
            raise PolicyError(
                "Off this machine the service speaks TLS: otherwise whoever reads the network has the tokens and the records.",
                hint="Give --certificate and --key; or --plain-http where only a proxy that speaks TLS can reach this address.",
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
        listening.listen(served.backlog)  # before it is said: whoever reads the address may call at once
        _print_address(address, settings, app.state.hub.tokens.all() == [])
        uvicorn.Server(served).run(sockets=[listening])


def _freeze_heap() -> None:
    """Sets aside what is in memory now, for it stays: a full garbage collection would stop everyone to look through it.

    Open pages are many small objects; to look through them all after every few pages would stop the feeds for a tenth of a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def config(app: object, settings: Settings) -> uvicorn.Config:
    """How uvicorn runs the app."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=Connection,
        log_config=None,
        access_log=False,  # a path may hold a name; the metrics count requests
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=5,
        limit_concurrency=_CONNECTIONS,
        backlog=1024,
        proxy_headers=False,  # who is calling must not be the caller's to say
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
            f"Cannot listen on port {settings.port}: {error.strerror}.", hint="Choose another with --port."
        ) from None
    return listening


def _print_address(address: str, settings: Settings, no_tokens: bool) -> None:  # noqa: FBT001
    lines = [f"Reticent serves at {address}" + ("" if settings.studio else "/api/v1")]
    if settings.allows_anonymous:
        lines.append("Demonstration: synthetic data, and NO TOKEN is needed on this machine. Not for real data.")
    elif no_tokens:
        store = f" --store {settings.store}" if settings.store != "reticent.db" else ""
        lines.append(f"There are no tokens yet: reticent token create NAME --role custodian{store}")
    if settings.plain_http and not is_loopback(settings.host):
        lines.append("PLAIN HTTP: whoever reads the network between here and the proxy has the tokens and the records.")
    lines.append(f"API: {address}/api/v1/openapi.json   Stop: Ctrl-C")
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()
