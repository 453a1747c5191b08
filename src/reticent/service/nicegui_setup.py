"""The page kit, closed: nonces in its template, one transport, an owner for every event, silence about addresses.

The kit is made for pages whose visitors are all equal. Here a page belongs to the token it was built for, and whatever
comes over the socket for it is asked again whose it is: a token that was revoked, or another one that took its place in
the same browser, moves nothing any more.
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
# What the template asks for; the guard puts the same word into the policy of the answer.
_NONCE = '<script nonce="{{ request.scope.nonce }}"'


class _NonceLoader(BaseLoader):
    """Marks the scripts of a template before anything is filled in, so that no data can carry the mark."""

    def __init__(self, loader: BaseLoader) -> None:
        self._loader = loader

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        """The template's text, every script with a nonce."""
        text, path, fresh = self._loader.get_source(environment, template)
        return text.replace("<script", _NONCE), path, fresh


class _PagesMount(Mount):
    """The kit's place in the app: all addresses but those of the API, which speaks for itself."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether an address is a page's."""
        return (Match.NONE, {}) if scope.get("path", "").startswith("/api/") else super().matches(scope)


def reset() -> None:
    """Lets the kit, of which there is one per process, be mounted into a further app."""
    core.app.middleware_stack = None
    core.app.user_middleware.clear()


def secure(app: FastAPI) -> None:
    """Closes the kit that has just been mounted into an app."""
    routes = app.router.routes
    routes[:] = [
        _PagesMount("", core.app) if isinstance(route, Mount) and route.app is core.app else route for route in routes
    ]
    core.app.exception_handlers[404] = core.app.exception_handlers[RequestValidationError] = _respond_404
    core.app.exception_handlers[Exception] = _respond_500
    redact_logger("nicegui")
    environment = kit_client.templates.env
    if not isinstance(environment.loader, _NonceLoader):  # the kit is one per process, apps may be several
        assert environment.loader is not None  # noqa: S101 - the kit's own folder
        environment.loader = _NonceLoader(environment.loader)
        _check_event_owners()


def _check_event_owners() -> None:
    sio = core.sio
    # Long polling would let one request after the other speak for a socket.
    sio.eio.transports = ["websocket"]
    sio.eio.cors_allowed_origins = []  # other origins are turned away before
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
    """Whether the visitor behind a socket, as they are known now, is the one a page was built for."""
    scope = (environ or {}).get("asgi.scope")
    if scope is None or "reticent" not in scope:
        return False
    return is_page_of(page, scope["access"].visitor(HTTPConnection(scope)))


def is_page_of(page: str | None, user: Token | None) -> bool:
    """Whether a page was built for a visitor."""
    client = kit_client.Client.instances.get(page or "")
    if client is None or user is None:
        return False
    built_for: Token = client.request.scope["reticent"][1]
    return user.id == built_for.id


async def _respond_404(_: Request, __: Exception) -> Response:
    return PlainTextResponse("There is no such page.", 404)


async def _respond_500(_: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error_location(error)}. This is a bug; please report it.", 500)
