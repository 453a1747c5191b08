"""The audit log: who did what; custodians compare its digest with one that they saved elsewhere."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from reticent.service.access import AuthenticatedRoute
from reticent.service.routes.bodies import errors
from reticent.service.routes.common import CUSTODIAN, HubDependency, in_thread

router = APIRouter(prefix="/audit-log", tags=["audit log"], dependencies=CUSTODIAN, route_class=AuthenticatedRoute)


class Entry(BaseModel):
    """One action; `previous` is the digest of the previous entry."""

    number: int
    time: str
    action: str
    target: str
    actor: str
    name: str
    role: str
    previous: str
    digest: str


class Head(BaseModel):
    """The end of the log; save it outside the store to be able to prove that no entry was changed."""

    entries: int
    digest: str
    broken: int | None = None


@router.get("", responses=errors())
async def list_entries(
    hub: HubDependency,
    after: Annotated[
        int, Query(ge=-1, le=10**11, description="Number of the last entry that you have read; -1 for the beginning.")
    ] = -1,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> list[Entry]:
    """List entries after a number, oldest first."""
    return [Entry(**entry) for entry in await in_thread(lambda: hub.audit_log.entries(after, limit))]


@router.get("/head", responses=errors())
async def get_head(hub: HubDependency) -> Head:
    """Check all entries, then return their number and the digest of the last entry."""
    return await in_thread(lambda: Head(**hub.audit_log.head(), broken=hub.audit_log.first_broken_entry()))
