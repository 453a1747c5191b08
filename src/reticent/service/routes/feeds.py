"""What feeds send: batches with a key and a content type, and the way of a batch of a stream to its answer."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from typing import Any

from fastapi import Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from reticent.errors import ReticentError
from reticent.publication.records import Batch
from reticent.service.access import require_role
from reticent.service.hub import NAME_PATTERN
from reticent.service.live_stream import LiveStream, PushResult
from reticent.service.problems import ServiceError, response
from reticent.service.routes.common import HubDependency, Key, Name
from reticent.service.tokens import Role
from reticent.service.uploads import ARROW, CONTENT_TYPES, NDJSON
from reticent.service.writer import Step
from reticent.store import Transaction

_PATH = re.compile(f"/api/v1/streams/({NAME_PATTERN})/records")
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_require_feed_role = require_role(Role.FEED, kind="stream")


def require_key(key: str | None) -> None:
    """Refuses a batch without a key: sent again after a lost answer, it would publish the same people twice."""
    if key is None:
        raise ServiceError(
            400,
            "key",
            "A batch needs an Idempotency-Key.",
            "Send a name of your own for it in that header, and the same name when you send it again.",
        )


def media_type(request: Request) -> str:
    """The content type that a request names, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def check_content_type(request: Request) -> None:
    """Refuses a content type that tables do not come in."""
    if media_type(request) not in CONTENT_TYPES:
        raise ServiceError(415, "content-type", f"Tables are sent as {', '.join(CONTENT_TYPES)}.", "Set Content-Type.")


def digest_of(body: bytes) -> str:
    """What tells one body from another."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()


class PushStep(Step):
    """A batch on its way through the writer; the stream stores all batches of a group at once."""

    def __init__(self, stream: LiveStream, body: bytes, kind: str, key: str | None) -> None:
        self.owner = self._stream = stream
        self._body, self._kind, self._key = body, kind, key
        self._digest = digest_of(body)
        self._began = time.perf_counter()
        self._known: PushResult | None = None
        self._batch: Batch | None = None
        self._done: PushResult | None = None

    def check(self) -> None:
        """Reads the batch; it is refused here, before anything is placed."""
        self._known = self._stream.replay(self._key, self._digest)
        if self._known is None:
            if self._stream.stopped:
                raise ServiceError(409, "stopped", "The stream is stopped; nothing was released.", "Ask its custodian.")
            self._batch = self._stream.read(self._body, self._kind)

    def apply(self, _: Transaction) -> PushResult:
        """Releases it, unless it was released before."""
        self._done = self._known
        if self._done is None:
            assert self._batch is not None  # noqa: S101 - check comes first
            self._done = self._stream.push(self._batch, self._key, self._digest)
        return self._done

    def on_commit(self) -> None:
        """On disk."""
        if self._done is not None:
            self._stream.record_push(self._done, self._began)

    def drop(self) -> None:
        """The engine may be ahead of the store."""
        self._stream.drop()


async def push(name: Name, request: Request, hub: HubDependency, key: Key = None) -> Response:
    """Releases a batch of records, wholly or not at all; the answer holds their released form.

    It is on disk when the answer comes. A batch that is sent again with its `Idempotency-Key` gets the stored answer.
    """
    stream = hub.stream(name)
    require_key(key)
    kind = media_type(request)
    if kind not in (NDJSON, ARROW):
        raise ServiceError(415, "content-type", f"Records are sent as {NDJSON} or {ARROW}.", "Set Content-Type.")
    step = PushStep(stream, await request.body(), kind, key)
    answer = await _await_result(request, hub.writer.submit(step))
    headers = {
        "Reticent-Cursor": str(answer.number),
        "Reticent-Epoch": hub.store.epoch,
        "Reticent-Replayed": str(answer.replayed).lower(),
    }
    if not answer.lines:
        return Response(status_code=202, headers=headers | {"Reticent-Pending": str(answer.pending)})
    return Response(answer.lines, media_type=NDJSON, headers=headers)


async def _await_result(request: Request, future: Any) -> PushResult:
    try:
        # Shielded: a client that goes away does not take its batch out of the queue halfway.
        waiting = asyncio.shield(asyncio.wrap_future(future))
        return await asyncio.wait_for(waiting, request.app.state.settings.timeout)
    except TimeoutError:
        if future.cancel():
            raise ServiceError(
                503, "busy", "The server is too busy; the batch was not begun.", "Send it again with the same key."
            ) from None
        raise ServiceError(
            503,
            "unknown",
            "The batch is being released; it is not known yet how it ends.",
            "Ask again with the same key.",
        ) from None


class FastPush:
    """An ASGI layer in front of the app: a short way to the one address that feeds call all day.

    It does what the route `POST /streams/{name}/records` does, with the same checks in the same order, without the cost of
    resolving a route and its parameters anew for every batch. Everything else goes the usual way.
    """

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
            await _require_feed_role(request)
            answer = await push(path.group(1), request, request.app.state.hub, key)
        except ReticentError as error:
            answer = response(error)
        await answer(scope, receive, send)
