"""Jobs: how far long work is, and putting an end to it."""

from __future__ import annotations

from fastapi import APIRouter

from reticent.service.access import ClosedRoute
from reticent.service.routes.bodies import Job, errors
from reticent.service.routes.common import CUSTODIAN, Ident, TheHub, aside

router = APIRouter(prefix="/jobs", tags=["jobs"], dependencies=CUSTODIAN, route_class=ClosedRoute)


@router.get("", responses=errors())
async def every(hub: TheHub) -> list[Job]:
    """All jobs, the newest first."""
    return [Job(**job) for job in await aside(hub.jobs.all)]


@router.get("/{ident}", responses=errors(404))
async def one(ident: Ident, hub: TheHub) -> Job:
    """One job."""
    return Job(**await aside(lambda: hub.jobs.get(ident)))


@router.delete("/{ident}", responses=errors(404))
async def cancel(ident: Ident, hub: TheHub) -> Job:
    """Cancels a job; nothing of it is published. A job that has ended stays as it is."""
    return Job(**await aside(lambda: hub.jobs.cancel(ident)))


@router.post("/{ident}/retry", status_code=202, responses=errors(404))
async def retry(ident: Ident, hub: TheHub) -> Job:
    """Begins a parked job anew. Any other job stays as it is."""
    return Job(**await aside(lambda: hub.jobs.retry(ident)))
