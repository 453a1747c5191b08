"""Nobody sees a page, its assets or its socket without being signed in, and only for as long as they are."""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reticent.service.actor import act_as
from reticent.service.nicegui_setup import is_page_of

# Where a page takes files: it is the page's own, whoever else has learnt its name.
_UPLOAD_PATH = re.compile(r"/_nicegui/client/([^/]+)/")
_PUBLIC_PATHS = ("/sign-in", "/sign-in/out", "/sign-in/oidc", "/sign-in/callback")

# Packets of the kit's socket: it is open, and its page is not known here.
_RELOAD_PACKETS = (
    '0{"sid":"-","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1}',
    '44{"message":"Implicit handshake failed"}',
)


class RequireSignIn:
    """An ASGI layer in front of the pages; it also tells them who the visitor is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets visitors through and sends everybody else to sign in."""
        if scope["type"] not in ("http", "websocket") or scope["path"].startswith("/api/"):
            await self._app(scope, receive, send)
            return
        state, caller = scope["app"].state, HTTPConnection(scope)
        if not state.access.is_own(caller):
            await _refuse(scope, receive, send)
        elif scope["path"] in _PUBLIC_PATHS:
            await self._app(scope, receive, send)
        elif (visitor := state.access.visitor(caller)) is None:
            refuse = _reload_page if scope["type"] == "websocket" else RedirectResponse("/sign-in", 303)
            await refuse(scope, receive, send)
        elif (page := _UPLOAD_PATH.match(scope["path"])) and not is_page_of(page[1], visitor):
            await _refuse(scope, receive, send, PlainTextResponse("This is somebody else's page.", 403))
        else:
            scope["reticent"], scope["access"] = (state.hub, visitor, state.settings), state.access

            def is_signed_in() -> bool:
                now = state.access.visitor(caller)
                return now is not None and now.id == visitor.id

            if scope["type"] == "websocket":
                receive, send = _check_messages(is_signed_in, receive, send)
            act_as(visitor)
            await self._app(scope, receive, send)


async def _reload_page(_: Scope, receive: Receive, send: Send) -> None:
    """Tells the socket of a page that its visitor is none any more: it loads the page again, and so comes to sign in.

    A socket that is merely closed is opened again and again, before a page that still shows what it showed.
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
        await (answer or PlainTextResponse("Another site sent you here.", 403))(scope, receive, send)


def _check_messages(is_valid: Callable[[], bool], receive: Receive, send: Send) -> tuple[Receive, Send]:
    """A socket that is asked at every message, either way, whether its visitor is still one."""
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
