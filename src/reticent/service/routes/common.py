"""What routes share: who may call, how bodies are described, how work is kept off the event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Annotated, Any, TypeVar

from anyio import to_thread
from fastapi import Depends, Header, Path, Request

from reticent.service.access import needs
from reticent.service.hub import NAME, Hub
from reticent.service.tokens import Role

T = TypeVar("T")

ANALYST = [Depends(needs(Role.ANALYST))]
CUSTODIAN = [Depends(needs())]
MONITOR = [Depends(needs(Role.MONITOR))]

Name = Annotated[str, Path(pattern=f"^{NAME}$")]
Ident = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[\x21-\x7e]{1,128}$",
        description="Names this batch; sent again with the same key, it changes nothing and gets the same answer.",
    ),
]


def feed_of(kind: str) -> list[Any]:
    """Feeds whose scope holds the source of this kind that the route names."""
    return [Depends(needs(Role.FEED, kind=kind))]


def analyst_of(kind: str) -> list[Any]:
    """Analysts whose scope holds it."""
    return [Depends(needs(Role.ANALYST, kind=kind))]


async def hub_of(request: Request) -> Hub:
    """The hub behind an app; async, for FastAPI runs anything else on a thread of its pool."""
    hub: Hub = request.app.state.hub
    return hub


TheHub = Annotated[Hub, Depends(hub_of)]


async def aside(work: Callable[[], T]) -> T:
    """Runs something slow on a thread."""
    return await to_thread.run_sync(work)


async def each_aside(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Takes parts one by one on a thread, each when the one before has been sent."""
    while (part := await aside(partial(next, parts, None))) is not None:
        yield part
