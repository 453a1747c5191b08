"""Releases: what was published, for analysts to read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from reticent.service.routes.common import ANALYST, Ident, TheHub, aside, errors

router = APIRouter(prefix="/releases", tags=["releases"], dependencies=ANALYST)


class ReleaseInfo(BaseModel):
    """A release without its data."""

    id: str
    created: str
    kind: str
    source: str
    number: int
    shape: str
    method: str
    policy_hash: str
    seeded: bool
    counts: dict[str, int]
    metrics: dict[str, float]
    guarantee: dict[str, Any]
    explain: dict[str, Any]
    tables: dict[str, int]
    verdict: dict[str, Any]


@router.get("", responses=errors())
async def every(hub: TheHub) -> list[ReleaseInfo]:
    """All releases, the newest first."""
    return [ReleaseInfo(**release) for release in await aside(hub.releases.all)]


@router.get("/{ident}", responses=errors(404))
async def one(ident: Ident, hub: TheHub) -> ReleaseInfo:
    """One release: its guarantee, figures and verdict."""
    return ReleaseInfo(**await aside(lambda: hub.releases.get(ident)))


@router.get(
    "/{ident}/download",
    responses={
        **errors(404),
        200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}},
    },
    response_class=Response,
)
async def download(
    ident: Ident, hub: TheHub, form: Annotated[Literal["csv", "parquet"], Query(alias="format")] = "csv"
) -> Response:
    """The folder of a release as a zip file."""
    data = await aside(lambda: hub.releases.archive(ident, form))
    headers = {"Content-Disposition": f'attachment; filename="release-{ident}.zip"'}
    return Response(data, media_type="application/zip", headers=headers)
