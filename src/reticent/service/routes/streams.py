"""Streams: feeds push records and get the released records back; analysts read the released records."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate, chain
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from reticent.service.access import AuthenticatedRoute
from reticent.service.actor import can_access
from reticent.service.live_stream import LiveStream
from reticent.service.problems import ServiceError
from reticent.service.routes.bodies import NewSource, SourceInfo, create_source, errors, raw_body, text_responses
from reticent.service.routes.common import (
    ANALYST,
    CUSTODIAN,
    HubDependency,
    Name,
    in_thread,
    iter_in_thread,
    require_analyst_role,
    require_feed_role,
)
from reticent.service.routes.feeds import push
from reticent.service.uploads import ARROW, NDJSON
from reticent.store import OutboxEntry, schema

LOG = logging.getLogger(__name__)
router = APIRouter(prefix="/streams", tags=["streams"], route_class=AuthenticatedRoute)
_LINES = {"content": {NDJSON: {"schema": {"type": "string"}}}, "description": "One JSON object per line"}
_HEARTBEAT = 15.0
_MAX_BATCHES = 1_000
# Bytes of released lines before the last batch of an answer, and bytes of one piece of it.
_MAX_BYTES = 4 << 20
_PIECE_BYTES = 64 << 10
Cursor = Annotated[
    int, Query(ge=-1, le=2**53, description="Number of the last batch that you have read; -1 for the beginning.")
]

Epoch = Annotated[
    str | None,
    Query(pattern=r"^[0-9a-f]{16}-[0-9]{1,9}$", description="The `Reticent-Epoch` the cursor came with."),
]


class StreamStatus(BaseModel):
    """The status of a stream."""

    name: str
    method: str
    input: int
    published: int
    pending: int
    suppressed: int
    stopped: bool
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
async def create_stream(body: NewSource, hub: HubDependency) -> SourceInfo:
    """Create a stream under a policy."""
    return await create_source("stream", body, hub)


@router.get("", dependencies=ANALYST, responses=errors())
async def list_streams(hub: HubDependency) -> list[str]:
    """List the streams in the scope of the token."""
    return sorted(name for name in hub.streams if can_access("stream", name))


@router.get("/{name}", dependencies=CUSTODIAN, responses=errors(404))
async def get_stream(name: Name, hub: HubDependency) -> StreamStatus:
    """Get the status of a stream."""
    return StreamStatus(**hub.stream(name).status())


@router.post("/{name}/stop", dependencies=CUSTODIAN, responses=errors(404))
async def stop(name: Name, hub: HubDependency) -> StreamStatus:
    """Stop taking records until the stream is resumed; released records stay readable and pending records stay pending."""
    await in_thread(lambda: hub.halt(name, stop=True))
    return StreamStatus(**hub.stream(name).status())


@router.post("/{name}/resume", dependencies=CUSTODIAN, responses=errors(404))
async def resume(name: Name, hub: HubDependency) -> StreamStatus:
    """Resume a stopped stream."""
    await in_thread(lambda: hub.halt(name, stop=False))
    return StreamStatus(**hub.stream(name).status())


router.post(
    "/{name}/records",
    dependencies=require_feed_role("stream"),
    responses={
        **errors(404, 409, 410, 415),
        200: _LINES,
        202: {"description": "Accepted; pending until the records can be released safely"},
    },
    response_class=Response,
    openapi_extra=raw_body(NDJSON, ARROW),
)(push)


@router.get(
    "/{name}/records",
    dependencies=require_analyst_role("stream"),
    responses={**errors(404, 409, 410), 200: _LINES},
    response_class=Response,
)
async def read_records(
    name: Name,
    hub: HubDependency,
    cursor: Cursor = -1,
    limit: Annotated[int, Query(ge=1, le=_MAX_BATCHES)] = 100,
    epoch: Epoch = None,
) -> Response:
    """Read released lines after a cursor, at most `limit` batches and 4 MiB; continue with `Reticent-Cursor`."""
    stream = hub.stream(name)
    await in_thread(lambda: hub.log_read(f"stream:{name}"))
    _check_epoch(hub, epoch)
    sizes = await in_thread(lambda: _sizes(hub, stream, cursor, limit))
    total = sum(size for _, size in sizes)
    headers = {
        "Reticent-Cursor": str(sizes[-1][0] if sizes else cursor),
        "Reticent-Epoch": hub.store.epoch,
        "Content-Length": str(total),
    }
    pieces = _pieces(_entries(hub, stream, sizes))
    if total <= _PIECE_BYTES:
        return Response(await in_thread(lambda: b"".join(pieces)), media_type=NDJSON, headers=headers)
    return StreamingResponse(iter_in_thread(pieces), media_type=NDJSON, headers=headers)


@router.get(
    "/{name}/codebook",
    dependencies=require_analyst_role("stream"),
    responses={**errors(404), 200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
    response_class=Response,
)
async def codebook(name: Name, hub: HubDependency) -> Response:
    """Get the codebook for the lines: columns, levels, the guarantee and the public parameters of the veil."""
    stream = hub.stream(name)
    return Response(await in_thread(stream.codebook), media_type="application/json")


@router.get(
    "/{name}/events",
    dependencies=require_analyst_role("stream"),
    responses=text_responses("text/event-stream", 404, 409, 410),
    response_class=StreamingResponse,
)
async def events(
    name: Name,
    request: Request,
    hub: HubDependency,
    cursor: Cursor = -1,
    last_event_id: Annotated[str | None, Header(pattern=r"^[0-9]{1,15}$")] = None,
    limit: Annotated[
        int | None,
        Query(ge=0, le=10**9, description="End after this many batches; without a limit the connection stays open."),
    ] = None,
) -> StreamingResponse:
    """Follow released lines as server-sent events: one event per batch, with the cursor as id and one data line per line."""
    stream, start = hub.stream(name), int(last_event_id) if last_event_id is not None else cursor
    await in_thread(partial(_sizes, hub, stream, start, 1))  # rejects an invalid cursor before the answer begins
    await in_thread(lambda: hub.log_read(f"stream:{name}"))
    follow = _follow(hub, stream, start, limit, is_valid=partial(request.app.state.access.is_still_valid, request))
    return StreamingResponse(follow, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _follow(
    hub: HubDependency, stream: LiveStream, cursor: int, limit: int | None, *, is_valid: Callable[[], bool]
) -> AsyncIterator[bytes]:
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(news.set)

    stream.subscribers.append(wake)
    left = limit
    try:
        yield b": reticent\n\n"
        while (left is None or left > 0) and is_valid():  # a revoked or expired token gets no further batch
            news.clear()
            sizes = await in_thread(partial(_sizes, hub, stream, cursor, min(_MAX_BATCHES, left or _MAX_BATCHES)))
            events = chain.from_iterable(map(_event, _entries(hub, stream, sizes)))
            async for piece in iter_in_thread(events):
                yield piece
            cursor = sizes[-1][0] if sizes else cursor
            left = None if left is None else left - len(sizes)
            if not sizes:
                try:
                    await asyncio.wait_for(news.wait(), _HEARTBEAT)
                except TimeoutError:
                    yield b": still here\n\n"
    except ServiceError as problem:  # the subscriber is too slow: its next request gets the error
        LOG.warning("a subscriber of a stream is too far behind: %s", problem)
    finally:
        stream.subscribers.remove(wake)


def _sizes(hub: HubDependency, stream: LiveStream, cursor: int, limit: int) -> list[tuple[int, int]]:
    """Return numbers and sizes of the batches of one answer after a cursor, without reading the batches."""
    table = schema.outbox.c
    query = sa.select(table.number, sa.func.length(table.payload)).order_by(table.number).limit(limit)
    batches = hub.store.read(query.where(table.publisher == stream.publisher, table.number > cursor))
    stream.retention.check(cursor)
    if not batches and cursor >= hub.store.publisher_row(stream.publisher)["next_number"]:
        raise ServiceError(
            409,
            "ahead",
            "The cursor is ahead of the stream: the store was restored from an older backup.",
            "Send your last cursor to the custodian, who needs it for `reticent store restore --published`.",
        )
    before = accumulate((size for _, size in batches), initial=0)
    return [
        (number, size) for (number, size), sum_before in zip(batches, before, strict=False) if sum_before < _MAX_BYTES
    ]


def _entries(hub: HubDependency, stream: LiveStream, sizes: list[tuple[int, int]]) -> Iterator[OutboxEntry]:
    """Yield the batches; a batch that was deleted meanwhile ends the answer, so that no reader skips it unknowingly."""
    stored = hub.store.outbox(stream.publisher, after=sizes[0][0] - 1) if sizes else iter(())
    for number, _ in sizes:
        entry = next(stored, None)
        if entry is None or entry.number != number:
            raise ServiceError(
                410, "gone", f"Batch {number} was deleted while it was being read.", "Send the request again."
            )
        yield entry


def _pieces(entries: Iterable[OutboxEntry]) -> Iterator[bytes]:
    """Yield released lines in pieces, so that a slow client needs memory for one batch only."""
    group: list[bytes] = []
    for entry in entries:
        group.append(entry.payload)
        if sum(map(len, group)) >= _PIECE_BYTES:
            lines, group = b"".join(group), []
            yield from (lines[start : start + _PIECE_BYTES] for start in range(0, len(lines), _PIECE_BYTES))
    if group:
        yield b"".join(group)


def _check_epoch(hub: HubDependency, epoch: str | None) -> None:
    if epoch is not None and epoch != hub.store.epoch:
        raise ServiceError(
            409,
            "epoch",
            "The store was restored after this cursor was issued.",
            "Compare your records with the stream, then remove `epoch` from the request.",
        )


def _event(entry: OutboxEntry) -> Iterator[bytes]:
    piece = bytearray(b"id: %d\nevent: batch\n" % entry.number)
    for line in io.BytesIO(entry.payload):
        piece += b"data: " + line.rstrip(b"\r\n") + b"\n"
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece) + b"\n"
