"""Batches from feeds: their idempotency keys and content types, and the push of a batch to a stream."""

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
    """Reject a batch without a key: a repetition after a lost answer would publish the same people twice."""
    if key is None:
        raise ServiceError(
            400,
            "key",
            "The batch has no Idempotency-Key header.",
            "Set the header to your own name for the batch, and use the same name when you send the batch again.",
        )


def media_type(request: Request) -> str:
    """Return the content type of a request without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def check_content_type(request: Request) -> None:
    """Reject a content type that is not a table format."""
    if media_type(request) not in CONTENT_TYPES:
        raise ServiceError(
            415, "content-type", f"The content type must be one of {', '.join(CONTENT_TYPES)}.", "Set Content-Type."
        )


def digest_of(body: bytes) -> str:
    """Return the digest of a body."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()


class PushStep(Step):
    """The step of the writer for one batch; the stream stores all batches of a group together."""

    def __init__(self, stream: LiveStream, body: bytes, kind: str, key: str | None) -> None:
        self.owner = self._stream = stream
        self._body, self._kind, self._key = body, kind, key
        self._digest = digest_of(body)
        self._began = time.perf_counter()
        self._known: PushResult | None = None
        self._batch: Batch | None = None
        self._done: PushResult | None = None

    def check(self) -> None:
        """Parse the batch, or reject it before the engine changes."""
        self._known = self._stream.replay(self._key, self._digest)
        if self._known is None:
            if self._stream.stopped:
                raise ServiceError(
                    409, "stopped", "The stream is stopped; nothing was released.", "Ask the custodian to resume it."
                )
            self._batch = self._stream.read(self._body, self._kind)

    def apply(self, _: Transaction) -> PushResult:
        """Release the batch, unless it was released before."""
        self._done = self._known
        if self._done is None:
            assert self._batch is not None  # noqa: S101 - check runs first
            self._done = self._stream.push(self._batch, self._key, self._digest)
        return self._done

    def on_commit(self) -> None:
        """Update the stream after the commit."""
        if self._done is not None:
            self._stream.record_push(self._done, self._began)

    def drop(self) -> None:
        """Discard the engine in memory, which may be ahead of the store."""
        self._stream.drop()


async def push(name: Name, request: Request, hub: HubDependency, key: Key = None) -> Response:
    """Release all records of a batch or none; the answer contains the released records.

    The server answers after the commit. A batch that is sent again with its `Idempotency-Key` gets the stored answer.
    """
    stream = hub.stream(name)
    require_key(key)
    kind = media_type(request)
    if kind not in (NDJSON, ARROW):
        raise ServiceError(415, "content-type", f"The content type must be {NDJSON} or {ARROW}.", "Set Content-Type.")
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
        # Shielded, so that a client that disconnects does not cancel a batch in progress.
        waiting = asyncio.shield(asyncio.wrap_future(future))
        return await asyncio.wait_for(waiting, request.app.state.settings.timeout)
    except TimeoutError:
        if future.cancel():
            raise ServiceError(
                503,
                "busy",
                "The server is too busy; it did not process the batch.",
                "Send the batch again with the same key.",
            ) from None
        raise ServiceError(
            503,
            "unknown",
            "The server is still processing the batch.",
            "Send the batch again with the same key to get its answer.",
        ) from None


class FastPush:
    """An ASGI middleware that serves pushes to streams without the cost of FastAPI's routing.

    It does the same as the route `POST /streams/{name}/records`, with the same checks in the same order. The app serves
    all other requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a well-formed push and pass all other requests on."""
        path = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if path is None:
            await self._app(scope, receive, send)
            return
        scope["path_params"] = {"name": path.group(1)}
        request = Request(scope, receive)
        key = request.headers.get("idempotency-key")
        if key is not None and not _KEY.fullmatch(key):
            await self._app(scope, receive, send)  # the route answers with the error
            return
        try:
            await _require_feed_role(request)
            answer = await push(path.group(1), request, request.app.state.hub, key)
        except ReticentError as error:
            answer = response(error)
        await answer(scope, receive, send)
