"""Security settings for NiceGUI: nonces in its template, one transport, an owner for every event, no addresses in logs.

NiceGUI makes no difference between users. Here a page belongs to the token that opened it, and every event on its
socket is checked again: a revoked token, or another token in the same browser, cannot change the page.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from jinja2 import BaseLoader, Environment
from nicegui import client as kit_client
from nicegui import core
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Match, Mount
from starlette.types import Scope

from reticent.service.actor import act_as
from reticent.service.problems import error_location, redact_logger
from reticent.service.tokens import Token

Handler = Callable[..., Any]
# The guard puts the same nonce into the content security policy of the answer.
_NONCE = '<script nonce="{{ request.scope.nonce }}"'


class _NonceLoader(BaseLoader):
    """Adds nonces to the scripts of a template before it is filled in, so that no data can contain the nonce."""

    def __init__(self, loader: BaseLoader) -> None:
        self._loader = loader

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        """Return the template's text with a nonce for every script."""
        text, path, fresh = self._loader.get_source(environment, template)
        return text.replace("<script", _NONCE), path, fresh


class _PagesMount(Mount):
    """NiceGUI's mount point: all addresses except those of the API."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether an address belongs to the pages."""
        return (Match.NONE, {}) if scope.get("path", "").startswith("/api/") else super().matches(scope)


def reset() -> None:
    """Let NiceGUI, which exists once per process, be mounted into another app."""
    core.app.middleware_stack = None
    core.app.user_middleware.clear()


def secure(app: FastAPI) -> None:
    """Apply the security settings after NiceGUI was mounted into an app."""
    routes = app.router.routes
    routes[:] = [
        _PagesMount("", core.app) if isinstance(route, Mount) and route.app is core.app else route for route in routes
    ]
    core.app.exception_handlers[404] = core.app.exception_handlers[RequestValidationError] = _respond_404
    core.app.exception_handlers[Exception] = _respond_500
    redact_logger("nicegui")
    environment = kit_client.templates.env
    if not isinstance(environment.loader, _NonceLoader):  # NiceGUI exists once per process, apps may be several
        assert environment.loader is not None  # noqa: S101 - NiceGUI's own folder
        environment.loader = _NonceLoader(environment.loader)
        _check_event_owners()


def _check_event_owners() -> None:
    sio = core.sio
    # With long polling, each request could act for a socket.
    sio.eio.transports = ["websocket"]
    sio.eio.cors_allowed_origins = []  # the middleware rejects other origins before
    core.app.config.socket_io_js_transports = ["websocket"]
    handlers = sio.handlers["/"]
    for name, handler in list(handlers.items()):
        if name == "connect":
            handlers[name] = _check_connect(handler)
        elif name != "disconnect":
            handlers[name] = _require_owner(handler)


def _require_owner(handler: Handler) -> Handler:
    async def handle(sid: str, message: dict[str, Any]) -> Any:
        if not is_page_owner(core.sio.get_environ(sid), message.get("client_id")):
            await core.sio.disconnect(sid)
            return False
        act_as(kit_client.Client.instances[message["client_id"]].request.scope["reticent"][1])
        return await _resolve(handler(sid, message))

    return handle


def _check_connect(handler: Handler) -> Handler:
    async def handle(sid: str, environ: dict[str, Any], auth: Any = None) -> Any:
        page = parse_qs(environ.get("QUERY_STRING", "")).get("client_id", [None])[0]
        if page in kit_client.Client.instances and not is_page_owner(environ, page):
            return False
        return await _resolve(handler(sid, environ, auth))

    return handle


async def _resolve(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def is_page_owner(environ: dict[str, Any] | None, page: str | None) -> bool:
    """Return whether the current user of a socket is the user who opened the page."""
    scope = (environ or {}).get("asgi.scope")
    if scope is None or "reticent" not in scope:
        return False
    return is_page_of(page, scope["access"].user_of(HTTPConnection(scope)))


def is_page_of(page: str | None, user: Token | None) -> bool:
    """Return whether a user opened the page."""
    client = kit_client.Client.instances.get(page or "")
    if client is None or user is None:
        return False
    owner: Token = client.request.scope["reticent"][1]
    return user.id == owner.id


async def _respond_404(_: Request, __: Exception) -> Response:
    return PlainTextResponse("There is no such page.", 404)


async def _respond_500(_: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error_location(error)}. This is a bug; please report it.", 500)
