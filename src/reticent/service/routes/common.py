"""What routes share: who may call, how bodies are described, how work is kept off the event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Annotated, Any, TypeVar

from anyio import to_thread
from fastapi import Depends, Header, Path, Request

from reticent.service.access import require_role
from reticent.service.hub import NAME_PATTERN, Hub
from reticent.service.tokens import Role

T = TypeVar("T")

ANALYST = [Depends(require_role(Role.ANALYST))]
CUSTODIAN = [Depends(require_role())]
MONITOR = [Depends(require_role(Role.MONITOR))]

Name = Annotated[str, Path(pattern=f"^{NAME_PATTERN}$")]
Ident = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[\x21-\x7e]{1,128}$",
        description="Names this batch; sent again with the same key, it changes nothing and gets the same answer.",
    ),
]


def require_feed_role(kind: str) -> list[Any]:
    """Feeds whose scope holds the source of this kind that the route names."""
    return [Depends(require_role(Role.FEED, kind=kind))]


def require_analyst_role(kind: str) -> list[Any]:
    """Analysts whose scope holds it."""
    return [Depends(require_role(Role.ANALYST, kind=kind))]


async def hub_of(request: Request) -> Hub:
    """The hub behind an app; async, for FastAPI runs anything else on a thread of its pool."""
    hub: Hub = request.app.state.hub
    return hub


HubDependency = Annotated[Hub, Depends(hub_of)]


async def in_thread(work: Callable[[], T]) -> T:
    """Runs something slow on a thread."""
    return await to_thread.run_sync(work)


async def iter_in_thread(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Takes parts one by one on a thread, each when the one before has been sent."""
    while (part := await in_thread(partial(next, parts, None))) is not None:
        yield part
