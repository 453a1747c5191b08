"""Releases: the published data, for analysts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from reticent.service.access import AuthenticatedRoute
from reticent.service.hub import Hub
from reticent.service.routes.bodies import errors, text_responses
from reticent.service.routes.common import ANALYST, CUSTODIAN, HubDependency, Ident, in_thread, iter_in_thread

router = APIRouter(prefix="/releases", tags=["releases"], dependencies=ANALYST, route_class=AuthenticatedRoute)


_PIECE_BYTES = 256 << 10


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
    records: dict[str, int]
    metrics: dict[str, float]
    guarantee: dict[str, Any]
    explain: dict[str, Any]
    tables: dict[str, int]
    verification: dict[str, Any]
    persons: int = Field(description="Persons in this publication so far.")
    added: int = Field(description="Persons who are in this publication for the first time with this release.")
    withdrawn: str | None = Field(
        default=None, description="Time of the withdrawal; a withdrawn release cannot be downloaded."
    )


@router.get("", responses=errors())
async def list_releases(hub: HubDependency) -> list[ReleaseInfo]:
    """List all releases, newest first."""
    return [ReleaseInfo(**release) for release in await in_thread(hub.releases.all)]


@router.get("/{ident}", responses=errors(404))
async def get_release(ident: Ident, hub: HubDependency) -> ReleaseInfo:
    """Get the guarantee, the metrics and the verification result of a release."""
    return ReleaseInfo(**await in_thread(lambda: hub.releases.get(ident)))


@router.post("/{ident}/withdraw", dependencies=CUSTODIAN, responses=errors(404))
async def withdraw(ident: Ident, hub: HubDependency) -> ReleaseInfo:
    """Withdraw a release. Recipients keep their copies, and the ledger still counts its persons."""
    return ReleaseInfo(**await in_thread(lambda: hub.withdraw(ident)))


@router.get(
    "/{ident}/download", responses=text_responses("application/zip", 404, 410, binary=True), response_class=Response
)
async def download(
    ident: Ident, hub: HubDependency, file_format: Annotated[Literal["csv", "parquet"], Query(alias="format")] = "csv"
) -> Response:
    """Download a release as a zip file."""
    return await send_release(hub, ident, file_format)


async def send_release(hub: Hub, ident: str, file_format: str) -> Response:
    """Return a response that reads the zip file of a release piece by piece."""
    file = await in_thread(lambda: hub.releases.open(ident, file_format))
    name = f'attachment; filename="release-{ident}.zip"'
    headers = {"Content-Disposition": name, "Content-Length": str(os.fstat(file.fileno()).st_size)}
    return StreamingResponse(iter_in_thread(_pieces(file)), media_type="application/zip", headers=headers)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while part := file.read(_PIECE_BYTES):
            yield part
