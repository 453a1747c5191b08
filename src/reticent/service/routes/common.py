"""What routes share: who may call, how bodies are described, how work is kept off the event loop."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Annotated, Any, TypeVar

from anyio import to_thread
from fastapi import Depends, Header, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from reticent.policy.bundle import Bundle
from reticent.service.access import needs
from reticent.service.hub import NAME, Hub
from reticent.service.problems import ErrorReply, ServiceError
from reticent.service.shelf import parse
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


def require(key: str | None) -> None:
    """Refuses a batch without a key: sent again after a lost answer, it would publish the same people twice."""
    if key is None:
        raise ServiceError(
            400,
            "key",
            "A batch needs an Idempotency-Key.",
            "Send a name of your own for it in that header, and the same name when you send it again.",
        )


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


class PolicyBody(BaseModel):
    """A policy, as plain values or as the text of a YAML file, and the files it names."""

    model_config = ConfigDict(extra="forbid")
    policy: dict[str, Any] | str = Field(description="See `reticent policy schema`.")
    files: dict[str, str] = Field(default_factory=dict, description="File name -> text, for files the policy names.")

    def bundle(self) -> Bundle:
        """As the hub takes it."""
        return parse(self.policy, self.files)


class NewSource(PolicyBody):
    """A stream, an evolving table or a series to begin."""

    name: str = Field(pattern=f"^{NAME}$")


class Created(BaseModel):
    """A new source."""

    name: str
    policy_hash: str


async def created(kind: str, body: NewSource, hub: Hub) -> Created:
    """Begins a source of a kind."""
    policy = await aside(lambda: hub.create(kind, body.name, body.bundle()))
    return Created(name=body.name, policy_hash=policy.hash)


class Job(BaseModel):
    """Long work: ask again until its state is done, failed, cancelled or parked."""

    id: str
    created: str
    kind: str
    source: str
    state: str
    progress: float
    stage: str
    release: str | None = None
    error: dict[str, str] | None = None


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, for the OpenAPI document."""
    words = {
        400: "The request is malformed",
        401: "No valid token",
        403: "The role or the scope of the token does not allow this",
        404: "No such thing",
        408: "The body did not arrive in time",
        409: "It exists, the key was used, or the policy cannot be met",
        410: "No longer kept",
        413: "The body is too large",
        415: "Another content type is needed",
        422: "The request, the policy or the data is wrong",
        429: "Too many requests",
        503: "The server is too busy or its store cannot be reached; ask again with the same key",
    }
    always = (400, 401, 403, 408, 413, 422, 429, 503)
    return {status: {"model": ErrorReply, "description": words[status]} for status in sorted({*always, *statuses})}


def body_of(*kinds: str) -> dict[str, Any]:
    """Describes a raw body for the OpenAPI document."""
    content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in kinds}
    return {"requestBody": {"required": True, "content": content}}


def digest_of(body: bytes) -> str:
    """What tells one body from another."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()


async def aside(work: Callable[[], T]) -> T:
    """Runs something slow on a thread."""
    return await to_thread.run_sync(work)


async def each_aside(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Takes parts one by one on a thread, each when the one before has been sent."""
    while (part := await aside(partial(next, parts, None))) is not None:
        yield part
