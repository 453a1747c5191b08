"""A short way to the one address that feeds call all day.

It does what the route `POST /streams/{name}/records` does, with the same checks in the same order, without the cost of
resolving a route and its parameters anew for every batch. Everything else goes the usual way.
"""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from reticent.errors import ReticentError
from reticent.service.access import needs
from reticent.service.hub import NAME
from reticent.service.problems import response
from reticent.service.routes.streams import push
from reticent.service.tokens import Role

_PATH = re.compile(f"/api/v1/streams/({NAME})/records")
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_may = needs(Role.FEED, kind="stream")


class FastPush:
    """An ASGI layer in front of the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a well-formed push; passes everything else on."""
        path = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if path is None:
            await self._app(scope, receive, send)
            return
        scope["path_params"] = {"name": path.group(1)}
        request = Request(scope, receive)
        key = request.headers.get("idempotency-key")
        if key is not None and not _KEY.fullmatch(key):
            await self._app(scope, receive, send)  # the usual way has the words for it
            return
        try:
            await _may(request)
            answer = await push(path.group(1), request, request.app.state.hub, key)
        except ReticentError as error:
            answer = response(error)
        await answer(scope, receive, send)
