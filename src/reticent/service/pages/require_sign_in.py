"""Nobody sees a page, its assets or its socket without being signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_FREE = ("/api/", "/sign-in")


class RequireSignIn:
    """An ASGI layer in front of the pages; it also tells them who the visitor is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets visitors through and sends everybody else to sign in."""
        if scope["type"] not in ("http", "websocket") or scope["path"].startswith(_FREE):
            await self._app(scope, receive, send)
            return
        state = scope["app"].state
        visitor = state.access.visitor(HTTPConnection(scope))
        if visitor is not None:
            scope["reticent"] = (state.hub, visitor, state.settings)
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await RedirectResponse("/sign-in", 303)(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})
