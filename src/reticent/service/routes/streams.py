"""Streams: feeds push records and get their released form back; analysts read what was released."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from reticent.service.live import LiveStream, Pushed, PushStep
from reticent.service.problems import ServiceError
from reticent.service.routes.common import (
    ANALYST,
    CUSTODIAN,
    FEED,
    Created,
    Key,
    Name,
    PolicyBody,
    TheHub,
    aside,
    body_of,
    errors,
    require,
)
from reticent.service.wire import ARROW, NDJSON, media_type
from reticent.store import OutboxEntry

LOG = logging.getLogger(__name__)
router = APIRouter(prefix="/streams", tags=["streams"])
_LINES = {"content": {NDJSON: {"schema": {"type": "string"}}}, "description": "One JSON object per line"}
_HEARTBEAT = 15.0
_BATCHES = 1_000
Cursor = Annotated[int, Query(ge=-1, le=2**53, description="The last batch already read; -1 for the beginning.")]

Generation = Annotated[
    str | None,
    Query(pattern=r"^[0-9a-f]{16}-[0-9]{1,9}$", description="The `Reticent-Generation` the cursor came with."),
]


class NewStream(PolicyBody):
    """A stream to begin."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")


class StreamStatus(BaseModel):
    """A running stream, in figures."""

    name: str
    method: str
    rows_in: int
    published: int
    held: int
    suppressed: int
    cursor: int
    oldest: int
    metrics: dict[str, float]
    guarantee: dict[str, Any]
    against: str
    not_covered: list[str]
    rows_per_second: float
    median_ms: float
    p99_ms: float


@router.post("", status_code=201, dependencies=CUSTODIAN, responses=errors(409))
async def create(body: NewStream, hub: TheHub) -> Created:
    """Begins a stream under a policy."""
    policy = await aside(lambda: hub.create("stream", body.name, body.bundle()))
    return Created(name=body.name, policy_hash=policy.hash)


@router.get("", dependencies=ANALYST, responses=errors())
async def names(hub: TheHub) -> list[str]:
    """The names of all streams."""
    return sorted(hub.streams)


@router.get("/{name}", dependencies=CUSTODIAN, responses=errors(404))
async def status(name: Name, hub: TheHub) -> StreamStatus:
    """One stream in figures."""
    return StreamStatus(**hub.stream(name).status())


@router.post(
    "/{name}/records",
    dependencies=FEED,
    responses={**errors(404, 409, 410, 415), 200: _LINES, 202: {"description": "Taken in; held until it is safe"}},
    response_class=Response,
    openapi_extra=body_of(NDJSON, ARROW),
)
async def push(name: Name, request: Request, hub: TheHub, key: Key = None) -> Response:
    """Releases a batch of records, wholly or not at all; the answer holds their released form.

    It is on disk when the answer comes. A batch that is sent again with its `Idempotency-Key` gets the stored answer.
    """
    stream = hub.stream(name)
    require(key)
    kind = media_type(request.headers.get("content-type"))
    if kind not in (NDJSON, ARROW):
        raise ServiceError(415, "content-type", f"Records are sent as {NDJSON} or {ARROW}.", "Set Content-Type.")
    step = PushStep(stream, await request.body(), kind, key)
    answer = await _within(request, hub.writer.submit(step))
    headers = {
        "Reticent-Cursor": str(answer.number),
        "Reticent-Generation": hub.store.generation,
        "Reticent-Replayed": str(answer.replayed).lower(),
    }
    if not answer.lines:
        return Response(status_code=202, headers=headers | {"Reticent-Held": str(answer.held)})
    return Response(answer.lines, media_type=NDJSON, headers=headers)


async def _within(request: Request, future: Any) -> Pushed:
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


@router.get(
    "/{name}/records",
    dependencies=ANALYST,
    responses={**errors(404, 409, 410), 200: _LINES},
    response_class=Response,
)
async def read(
    name: Name,
    hub: TheHub,
    cursor: Cursor = -1,
    limit: Annotated[int, Query(ge=1, le=_BATCHES)] = 100,
    generation: Generation = None,
) -> Response:
    """Released lines after a cursor, at most `limit` batches; `Reticent-Cursor` is where to go on."""
    stream = hub.stream(name)
    _same_generation(hub, generation)
    entries = await aside(lambda: _after(hub, stream, cursor, limit))
    last = entries[-1].number if entries else cursor
    return Response(
        b"".join(entry.payload for entry in entries),
        media_type=NDJSON,
        headers={"Reticent-Cursor": str(last), "Reticent-Generation": hub.store.generation},
    )


@router.get(
    "/{name}/codebook",
    dependencies=ANALYST,
    responses={**errors(404), 200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
    response_class=Response,
)
async def codebook(name: Name, hub: TheHub) -> Response:
    """What a recipient needs to read the lines: columns, levels, the guarantee, and the published side of the veil."""
    stream = hub.stream(name)
    return Response(await aside(stream.codebook), media_type="application/json")


@router.get(
    "/{name}/events",
    dependencies=ANALYST,
    responses={**errors(404, 409, 410), 200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    response_class=StreamingResponse,
)
async def events(
    name: Name,
    hub: TheHub,
    cursor: Cursor = -1,
    last_event_id: Annotated[str | None, Header(pattern=r"^[0-9]{1,15}$")] = None,
    limit: Annotated[
        int | None, Query(ge=0, le=10**9, description="End after so many batches; default: never.")
    ] = None,
) -> StreamingResponse:
    """Released lines as they come: one event per batch, its id the cursor, its data one line each."""
    start = int(last_event_id) if last_event_id is not None else cursor
    hub.stream(name).retention.check(start)
    await aside(partial(_after, hub, hub.stream(name), start, 1))  # refused before the stream of events begins
    follow = _follow(hub, hub.stream(name), start, limit)
    return StreamingResponse(follow, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _follow(hub: TheHub, stream: LiveStream, cursor: int, limit: int | None) -> AsyncIterator[bytes]:
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(news.set)

    stream.heard.append(wake)
    left = limit
    try:
        yield b": reticent\n\n"
        while left is None or left > 0:
            news.clear()
            entries = await aside(partial(_after, hub, stream, cursor, min(_BATCHES, left or _BATCHES)))
            for entry in entries:
                yield _event(entry)
                cursor = entry.number
            left = None if left is None else left - len(entries)
            if not entries:
                try:
                    await asyncio.wait_for(news.wait(), _HEARTBEAT)
                except TimeoutError:
                    yield b": still here\n\n"
    except ServiceError as problem:  # too slow: it asks again, and then it is told
        LOG.warning("a follower of a stream is too far behind: %s", problem)
    finally:
        stream.heard.remove(wake)


def _after(hub: TheHub, stream: LiveStream, cursor: int, limit: int) -> list[OutboxEntry]:
    entries = list(islice(hub.store.outbox(stream.publisher, after=cursor), limit))
    stream.retention.check(cursor)
    if not entries and cursor >= hub.store.row(stream.publisher)["next_number"]:
        raise ServiceError(
            409,
            "ahead",
            "The cursor is ahead of the stream: its store was put back to an older copy.",
            "Tell the custodian what you have; `reticent store restore --published` needs to know it.",
        )
    return entries


def _same_generation(hub: TheHub, generation: str | None) -> None:
    if generation is not None and generation != hub.store.generation:
        raise ServiceError(
            409,
            "generation",
            "The store was restored since this cursor was given.",
            "Compare what you have with what is here, then leave `generation` out.",
        )


def _event(entry: OutboxEntry) -> bytes:
    lines = b"".join(b"data: " + line + b"\n" for line in entry.payload.splitlines())
    return b"id: %d\nevent: batch\n%s\n" % (entry.number, lines)
