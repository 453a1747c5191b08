"""Series: several releases of the same persons."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from reticent.publication.series import Series
from reticent.service.access import AuthenticatedRoute
from reticent.service.hub import Hub
from reticent.service.routes.bodies import Job, NewSource, SourceInfo, create_source, errors, raw_body
from reticent.service.routes.common import CUSTODIAN, HubDependency, Key, Name, in_thread
from reticent.service.routes.feeds import check_content_type, digest_of
from reticent.service.routes.tables import store_table
from reticent.service.uploads import CONTENT_TYPES

router = APIRouter(prefix="/series", tags=["series"], dependencies=CUSTODIAN, route_class=AuthenticatedRoute)


class SeriesStatus(BaseModel):
    """The status of a series."""

    name: str
    method: str
    m: int
    max_risk: float | None
    releases: int


@router.post("", status_code=201, responses=errors(409))
async def create_series(body: NewSource, hub: HubDependency) -> SourceInfo:
    """Create a series under a policy."""
    return await create_source("series", body, hub)


@router.get("", responses=errors())
async def list_series(hub: HubDependency) -> list[SeriesStatus]:
    """List all series."""
    return await in_thread(lambda: [_status(name, series) for name, series in hub.series.items()])


@router.get("/{name}", responses=errors(404))
async def get_series(name: Name, hub: HubDependency) -> SeriesStatus:
    """Get the status of a series."""
    series = hub.series_by_name(name)
    return await in_thread(lambda: _status(name, series))


def _status(name: str, series: Series) -> SeriesStatus:
    settings = series.policy.series
    releases = len(series.store.ledger(series.name))
    return SeriesStatus(
        name=name, method=settings.method, m=series.policy.m, max_risk=settings.limit, releases=releases
    )


@router.post(
    "/{name}/releases", status_code=202, responses=errors(404, 409, 415), openapi_extra=raw_body(*CONTENT_TYPES)
)
async def next_release(name: Name, request: Request, hub: HubDependency, key: Key = None) -> Job:
    """Start a job that publishes a table with all current records as the next release."""
    hub.series_by_name(name)
    check_content_type(request)
    body = await request.body()
    return Job(**await in_thread(lambda: queue_release(hub, name, body, key)))


def queue_release(hub: Hub, name: str, body: bytes, key: str | None = None) -> dict[str, Any]:
    """Queue the next release; the data is deleted when the job ends."""
    table, job = store_table(hub, body, name), None
    request = {"table": table["id"]}
    try:
        job = hub.jobs.begin("series", name, request, key=key, digest=digest_of(body))
    finally:
        if job is None or hub.jobs.documents.get(job["id"])["request"] != request:  # rejected, or a repeated request
            hub.write(lambda tx: hub.tables.delete(tx, table["id"]))
    return job
