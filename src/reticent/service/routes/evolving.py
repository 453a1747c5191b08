"""Evolving tables: batches of changes, and publications of the current table."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from reticent.engine.evolving.change import Change
from reticent.publication.evolving import Evolving
from reticent.service.access import AuthenticatedRoute
from reticent.service.problems import ServiceError
from reticent.service.routes.bodies import Job, NewSource, SourceInfo, create_source, errors, raw_body
from reticent.service.routes.common import CUSTODIAN, HubDependency, Key, Name, in_thread, require_feed_role
from reticent.service.routes.feeds import check_content_type, digest_of, require_key
from reticent.service.uploads import CONTENT_TYPES, read_upload
from reticent.store import Transaction

router = APIRouter(prefix="/evolving", tags=["evolving tables"], route_class=AuthenticatedRoute)


class EvolvingStatus(BaseModel):
    """The status of an evolving table."""

    name: str
    method: str
    l: int
    rows: int
    withheld: int
    publications: int


class BatchResult(BaseModel):
    """The effect of a batch of changes."""

    inserted: int
    deleted: int
    updated: int
    touched: int
    dissolved: int
    relocated: int
    withheld: int
    rows: int


class PublishRequest(BaseModel):
    """Options of a publication."""

    model_config = ConfigDict(extra="forbid")
    again: bool = Field(
        default=False, description="Publish again although the method is safe for one publication only."
    )


@router.post("", status_code=201, dependencies=CUSTODIAN, responses=errors(409))
async def create_evolving_table(body: NewSource, hub: HubDependency) -> SourceInfo:
    """Create an evolving table under a policy."""
    return await create_source("evolving", body, hub)


@router.get("", dependencies=CUSTODIAN, responses=errors())
async def list_evolving_tables(hub: HubDependency) -> list[EvolvingStatus]:
    """List all evolving tables."""
    return await in_thread(lambda: [_status(name, table) for name, table in hub.evolving.items()])


@router.get("/{name}", dependencies=CUSTODIAN, responses=errors(404))
async def get_evolving_table(name: Name, hub: HubDependency) -> EvolvingStatus:
    """Get the status of an evolving table."""
    table = hub.evolving_table(name)
    return await in_thread(lambda: _status(name, table))


def _status(name: str, table: Evolving) -> EvolvingStatus:
    figures = table.status()
    return EvolvingStatus(**figures, name=name, rows=figures["records"])


@router.post(
    "/{name}/changes",
    dependencies=require_feed_role("evolving"),
    responses=errors(404, 409, 415),
    openapi_extra=raw_body(*CONTENT_TYPES),
)
async def change(name: Name, request: Request, hub: HubDependency, key: Key = None) -> BatchResult:
    """Apply all changes of a batch or none: insertions, or insert, update and delete from the column `op`."""
    table = hub.evolving_table(name)
    require_key(key)
    check_content_type(request)
    body = await request.body()
    if not body:
        raise ServiceError(422, "data", "The body has no records.", "Send at least one record.")
    return BatchResult(**await in_thread(lambda: change_table(table, read_upload(body), key, digest_of(body))))


def change_table(table: Evolving, batch: pa.Table, key: str | None = None, digest: str = "") -> dict[str, Any]:
    """Apply a batch of changes; a repeated batch with the same key changes nothing and gets the same answer."""
    with table.step_lock:
        known = table.store.get(table.name, "key", key) if key else None
        if known is not None:
            answer: dict[str, Any] = json.loads(known)
            if answer.pop("digest") != digest:
                raise ServiceError(409, "key", "This idempotency key was used for another batch.", "Use a new key.")
            return answer

        def reply(change: Change) -> dict[str, Any]:
            return {**change.to_dict(), "rows": table.engine.counts.input}

        def remember(tx: Transaction, change: Change) -> None:
            if key:
                tx.put(table.name, "key", key, json.dumps(reply(change) | {"digest": digest}).encode())

        return reply(table.push(batch, hook=remember))


@router.post("/{name}/publish", status_code=202, dependencies=CUSTODIAN, responses=errors(404, 409))
async def publish(name: Name, body: PublishRequest, hub: HubDependency, key: Key = None) -> Job:
    """Start a job that publishes the current table."""
    hub.evolving_table(name)
    return Job(
        **await in_thread(lambda: hub.jobs.begin("evolving", name, {"again": body.again}, key=key, digest="publish"))
    )
