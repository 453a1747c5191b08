"""Whether the server is there, and its figures for Prometheus."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter, Response
from pydantic import BaseModel

from reticent.service.access import ClosedRoute
from reticent.service.metrics import exposition
from reticent.service.routes.bodies import text_of
from reticent.service.routes.common import MONITOR, TheHub, aside

router = APIRouter(tags=["server"], route_class=ClosedRoute)


class Health(BaseModel):
    """The server is there."""

    status: str
    version: str


@router.get("/health")
async def health() -> Health:
    """Whether the server answers; the one address that needs no token."""
    return Health(status="ok", version=version("reticent"))


@router.get("/metrics", dependencies=MONITOR, responses=text_of("text/plain"), response_class=Response)
async def metrics(hub: TheHub) -> Response:
    """Figures in Prometheus' text format."""
    return Response(await aside(lambda: exposition(hub)), media_type="text/plain; version=0.0.4")
