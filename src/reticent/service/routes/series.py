"""Series: the same persons again, release by release."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from reticent.publication.series import Series
from reticent.service.access import ClosedRoute
from reticent.service.hub import Hub
from reticent.service.routes.bodies import Created, Job, NewSource, body_of, created, errors
from reticent.service.routes.common import CUSTODIAN, Key, Name, TheHub, aside
from reticent.service.routes.feeds import check_kind, digest_of
from reticent.service.routes.tables import keep
from reticent.service.uploads import KINDS

router = APIRouter(prefix="/series", tags=["series"], dependencies=CUSTODIAN, route_class=ClosedRoute)


class SeriesStatus(BaseModel):
    """A series in figures."""

    name: str
    method: str
    m: int
    max_risk: float | None
    releases: int


@router.post("", status_code=201, responses=errors(409))
async def create(body: NewSource, hub: TheHub) -> Created:
    """Begins a series under a policy."""
    return await created("series", body, hub)


@router.get("", responses=errors())
async def every(hub: TheHub) -> list[SeriesStatus]:
    """All series."""
    return await aside(lambda: [_status(name, series) for name, series in hub.series.items()])


@router.get("/{name}", responses=errors(404))
async def one(name: Name, hub: TheHub) -> SeriesStatus:
    """One series."""
    series = hub.a_series(name)
    return await aside(lambda: _status(name, series))


def _status(name: str, series: Series) -> SeriesStatus:
    settings = series.policy.series
    releases = len(series.store.ledger(series.name))
    return SeriesStatus(
        name=name, method=settings.method, m=series.policy.m, max_risk=settings.limit, releases=releases
    )


@router.post("/{name}/releases", status_code=202, responses=errors(404, 409, 415), openapi_extra=body_of(*KINDS))
async def next_release(name: Name, request: Request, hub: TheHub, key: Key = None) -> Job:
    """Publishes a table, all records as they are now, as the next release, as a job."""
    hub.a_series(name)
    check_kind(request)
    body = await request.body()
    return Job(**await aside(lambda: begin(hub, name, body, key)))


def begin(hub: Hub, name: str, body: bytes, key: str | None = None) -> dict[str, Any]:
    """Queues the next release; the data is forgotten when the job ends."""
    table, job = keep(hub, body, name), None
    request = {"table": table["id"]}
    try:
        job = hub.jobs.begin("series", name, request, key=key, digest=digest_of(body))
    finally:
        if job is None or hub.jobs.documents.get(job["id"])["request"] != request:  # refused, or it came before
            hub.write(lambda tx: hub.tables.delete(tx, table["id"]))
    return job
