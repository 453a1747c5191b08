"""A middleware for every request: body and time limits, and security headers for browsers."""

from __future__ import annotations

import asyncio
import secrets
import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reticent.service.problems import ServiceError, response
from reticent.service.settings import Settings

_YEAR = 365 * 86_400
# Bytes per second; a slower body times out once the time for a short body is over.
_MIN_BYTES_PER_SECOND = 32 << 10
_API_CSP = "default-src 'none'; frame-ancestors 'none'"
# NiceGUI compiles its templates in the browser and sets styles on elements, hence the two 'unsafe' words.
# Only scripts with the nonce run, and pages load nothing from other hosts and send nothing to them.
_PAGES_CSP = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; script-src-attr 'none'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
    "worker-src 'none'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class Guard:
    """The outermost ASGI middleware: it gets a request first and an answer last."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings, self._secure = settings, settings.secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the app within its limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        api = scope["path"].startswith("/api/")
        scope["nonce"] = "" if api else secrets.token_urlsafe(16)
        policy = _API_CSP if api else _PAGES_CSP.format(nonce=scope["nonce"])
        body = _Body(scope, receive, self._settings)
        answered = replaced = False

        async def send_answer(message: Message) -> None:
            nonlocal answered, replaced
            if message["type"] == "http.response.start":
                if body.problem is not None and not answered:  # the framework would answer with a plain 400
                    answered = replaced = True
                    await response(body.problem)(scope, receive, send_with_headers)
                answered = True
            if not replaced:
                await send_with_headers(message)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(MutableHeaders(scope=message), policy, api=api, secure=self._secure)
            await send(message)

        try:
            await body.pass_to(self._app, scope, send_answer)
        except ServiceError as problem:
            if answered:
                raise
            await response(problem)(scope, receive, send_with_headers)


class _Body:
    """An incoming body with limits of size and time; it stores the problem that ended it."""

    def __init__(self, scope: Scope, receive: Receive, settings: Settings) -> None:
        self._receive, self._limit, self._timeout = receive, settings.max_body, settings.timeout
        length = dict(scope["headers"]).get(b"content-length", b"0")
        self._declared = int(length) if length.isdigit() else 0
        self._byte_count, self._complete, self._began = 0, False, time.monotonic()
        self.problem: ServiceError | None = None
        self._disconnected = False

    async def pass_to(self, app: ASGIApp, scope: Scope, send: Send) -> None:
        """Let an app read the body; starlette's `base.py` raises an error if the client has disconnected, which is ignored."""
        try:
            await app(scope, self.receive, send)
        except RuntimeError:
            if not self._disconnected:
                raise

    async def receive(self) -> Message:
        """Return the next message of the body."""
        if self._complete:  # only a disconnect can follow; an open stream may wait for it without limit
            return self._note_disconnect(await self._receive())
        self._check(self._declared)
        left = self._began + self._timeout + self._byte_count / _MIN_BYTES_PER_SECOND - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), left)
        except TimeoutError:
            self.problem = ServiceError(
                408, "timeout", "The body did not arrive in time.", "Send the request again, or in smaller parts."
            )
            raise self.problem from None
        self._note_disconnect(message)
        self._byte_count += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        self._check(self._byte_count)
        return message

    def _note_disconnect(self, message: Message) -> Message:
        self._disconnected |= message["type"] == "http.disconnect"
        return message

    def _check(self, size: int) -> None:
        if size > self._limit:
            words = f"The body has more than {self._limit:,} bytes."
            self.problem = ServiceError(413, "too-large", words, "Send it in smaller parts.")
            raise self.problem


def _add_headers(headers: MutableHeaders, policy: str, *, api: bool, secure: bool) -> None:
    headers["Content-Security-Policy"] = policy
    headers["X-Content-Type-Options"] = "nosniff"
    headers["X-Frame-Options"] = "DENY"
    headers["Referrer-Policy"] = "same-origin"  # with no-referrer, browsers send a form with the origin null
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    if secure:
        headers["Strict-Transport-Security"] = f"max-age={_YEAR}"
    if api:
        headers["Cache-Control"] = "no-store"
