"""Jobs: the progress of long work, and its cancellation."""

from __future__ import annotations

from fastapi import APIRouter

from reticent.service.access import AuthenticatedRoute
from reticent.service.routes.bodies import Job, errors
from reticent.service.routes.common import CUSTODIAN, HubDependency, Ident, in_thread

router = APIRouter(prefix="/jobs", tags=["jobs"], dependencies=CUSTODIAN, route_class=AuthenticatedRoute)


@router.get("", responses=errors())
async def list_jobs(hub: HubDependency) -> list[Job]:
    """List all jobs, newest first."""
    return [Job(**job) for job in await in_thread(hub.jobs.all)]


@router.get("/{ident}", responses=errors(404))
async def get_job(ident: Ident, hub: HubDependency) -> Job:
    """Get a job."""
    return Job(**await in_thread(lambda: hub.jobs.get(ident)))


@router.delete("/{ident}", responses=errors(404))
async def cancel(ident: Ident, hub: HubDependency) -> Job:
    """Cancel a job, so that it publishes nothing. A job that has ended stays as it is."""
    return Job(**await in_thread(lambda: hub.jobs.cancel(ident)))


@router.post("/{ident}/retry", status_code=202, responses=errors(404))
async def retry(ident: Ident, hub: HubDependency) -> Job:
    """Restart a parked job. Any other job stays as it is."""
    return Job(**await in_thread(lambda: hub.jobs.retry(ident)))
