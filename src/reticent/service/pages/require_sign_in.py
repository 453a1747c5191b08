"""A middleware that requires a valid session for all pages, their assets and their sockets."""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reticent.service.actor import act_as
from reticent.service.nicegui_setup import is_page_of

# The upload address of a page; only the owner of the page may use it.
_UPLOAD_PATH = re.compile(r"/_nicegui/client/([^/]+)/")
_PUBLIC_PATHS = ("/sign-in", "/sign-in/out", "/sign-in/oidc", "/sign-in/callback")

# Packets of NiceGUI's socket: the connection is open, and the page is unknown.
_RELOAD_PACKETS = (
    '0{"sid":"-","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1}',
    '44{"message":"Implicit handshake failed"}',
)


class RequireSignIn:
    """The ASGI middleware in front of the pages; it also stores the user in the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass requests of signed-in users on and redirect all others to the sign-in."""
        if scope["type"] not in ("http", "websocket") or scope["path"].startswith("/api/"):
            await self._app(scope, receive, send)
            return
        state, caller = scope["app"].state, HTTPConnection(scope)
        if not state.access.is_same_origin(caller):
            await _refuse(scope, receive, send)
        elif scope["path"] in _PUBLIC_PATHS:
            await self._app(scope, receive, send)
        elif (user := state.access.user_of(caller)) is None:
            refuse = _reload_page if scope["type"] == "websocket" else RedirectResponse("/sign-in", 303)
            await refuse(scope, receive, send)
        elif (page := _UPLOAD_PATH.match(scope["path"])) and not is_page_of(page[1], user):
            await _refuse(scope, receive, send, PlainTextResponse("This page belongs to another user.", 403))
        else:
            scope["reticent"], scope["access"] = (state.hub, user, state.settings), state.access

            def is_signed_in() -> bool:
                current = state.access.user_of(caller)
                return current is not None and current.id == user.id

            if scope["type"] == "websocket":
                receive, send = _check_messages(is_signed_in, receive, send)
            act_as(user)
            await self._app(scope, receive, send)


async def _reload_page(_: Scope, receive: Receive, send: Send) -> None:
    """Tell the socket of a page whose session has ended to reload the page, which leads to the sign-in.

    After a plain close the browser would reconnect forever and still display the old page.
    """
    await receive()
    await send({"type": "websocket.accept"})
    for packet in _RELOAD_PACKETS:
        await send({"type": "websocket.send", "text": packet})
    await send({"type": "websocket.close", "code": 1008})


async def _refuse(scope: Scope, receive: Receive, send: Send, answer: ASGIApp | None = None) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await (answer or PlainTextResponse("The request comes from another site.", 403))(scope, receive, send)


def _check_messages(is_valid: Callable[[], bool], receive: Receive, send: Send) -> tuple[Receive, Send]:
    """Return a receive and a send that check the session at every message in both directions."""
    ended = False

    async def end() -> None:
        nonlocal ended
        if not ended:
            ended = True
            await send({"type": "websocket.close", "code": 1008})

    async def checked_receive() -> Message:
        message = await receive()
        if message["type"] == "websocket.receive" and not is_valid():
            await end()
            return {"type": "websocket.disconnect", "code": 1008}
        return message

    async def checked_send(message: Message) -> None:
        if message["type"] == "websocket.send" and not is_valid():
            await end()
        elif not ended:
            await send(message)

    return checked_receive, checked_send
