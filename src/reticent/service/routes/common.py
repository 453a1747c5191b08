"""Shared parts of the routes: roles, parameters, and work in threads."""

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
        description="Your name for this request. A repeated request with the same key changes nothing and gets the same answer.",
    ),
]


def require_feed_role(kind: str) -> list[Any]:
    """Return the dependency for feeds whose scope includes the source in the path."""
    return [Depends(require_role(Role.FEED, kind=kind))]


def require_analyst_role(kind: str) -> list[Any]:
    """Return the dependency for analysts whose scope includes the source in the path."""
    return [Depends(require_role(Role.ANALYST, kind=kind))]


async def hub_of(request: Request) -> Hub:
    """Return the hub of an app; async, since FastAPI would run a plain function in a thread."""
    hub: Hub = request.app.state.hub
    return hub


HubDependency = Annotated[Hub, Depends(hub_of)]


async def in_thread(work: Callable[[], T]) -> T:
    """Run slow work in a thread."""
    return await to_thread.run_sync(work)


async def iter_in_thread(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield parts that a thread reads one by one, each after the previous part was sent."""
    while (part := await in_thread(partial(next, parts, None))) is not None:
        yield part
