"""Around every request: body and time limits, and headers that keep a browser from doing more than it should."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders

from reticent.service.problems import ServiceError, response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from reticent.service.settings import Settings

_API = "default-src 'none'; frame-ancestors 'none'"
# The studio's framework compiles its templates in the browser, hence the two 'unsafe' words; nothing is let in from
# another host, and nothing goes out to one.
_PAGES = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)


class Guard:
    """An ASGI layer; the first to see a request and the last to see an answer."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes one request on, within its limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        api = scope["path"].startswith("/api/")
        answered = False

        async def sending(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                _add_headers(MutableHeaders(scope=message), api=api)
            await send(message)

        try:
            await self._app(scope, self._limited(scope, receive), sending)
        except ServiceError as problem:
            if answered:
                raise
            await response(problem)(scope, receive, sending)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        limit, timeout = self._settings.max_body, self._settings.timeout
        too_large = ServiceError(413, "too-large", f"The body is larger than {limit:,} bytes.", "Send it in parts.")
        length = dict(scope["headers"]).get(b"content-length", b"0")
        declared = int(length) if length.isdigit() else 0
        seen, whole = 0, False

        async def receiving() -> Message:
            nonlocal seen, whole
            if declared > limit:
                raise too_large
            if whole:  # only a disconnect can follow, and an open stream may wait for it as long as it likes
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), timeout)
            except TimeoutError:
                raise ServiceError(408, "timeout", "The body did not arrive in time.", "Send it again.") from None
            seen += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if seen > limit:
                raise too_large
            return message

        return receiving


def _add_headers(headers: MutableHeaders, *, api: bool) -> None:
    headers["Content-Security-Policy"] = _API if api else _PAGES
    headers["X-Content-Type-Options"] = "nosniff"
    headers["X-Frame-Options"] = "DENY"
    headers["Referrer-Policy"] = "no-referrer"
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    if api:
        headers["Cache-Control"] = "no-store"
