"""Audits: the judge recomputes what releases claim, from the releases alone."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from reticent.service.access import ClosedRoute
from reticent.service.audits import audit
from reticent.service.routes.bodies import errors, text_of
from reticent.service.routes.common import CUSTODIAN, Ident, TheHub, aside

router = APIRouter(prefix="/audits", tags=["audits"], dependencies=CUSTODIAN, route_class=ClosedRoute)


class NewAudit(BaseModel):
    """What to audit: releases of one source in the order they were published."""

    model_config = ConfigDict(extra="forbid")
    releases: list[Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]] = Field(min_length=1, max_length=100)
    report: bool = Field(default=False, description="Also measure the risk, attack the releases, and write the report.")


class Audit(BaseModel):
    """A verdict."""

    id: str
    created: str
    releases: list[str]
    report: bool
    holds: bool
    findings: list[dict[str, Any]]
    notes: list[str]
    unchecked: list[str]


@router.post("", status_code=201, responses=errors(404))
async def create(body: NewAudit, hub: TheHub) -> Audit:
    """Audits releases under the policy they were made under."""
    return Audit(**await aside(lambda: audit(hub, body.releases, report=body.report)))


@router.get("", responses=errors())
async def every(hub: TheHub) -> list[Audit]:
    """All audits, the newest first."""
    return [Audit(**audit) for audit in await aside(hub.audits.all)]


@router.get("/{ident}", responses=errors(404))
async def one(ident: Ident, hub: TheHub) -> Audit:
    """One audit."""
    return Audit(**await aside(lambda: hub.audits.get(ident)))


@router.get("/{ident}/report", responses=text_of("text/html", 404), response_class=Response)
async def report(ident: Ident, hub: TheHub) -> Response:
    """The report of an audit that was asked for one."""
    page = await aside(lambda: hub.audits.blob(ident))
    headers = {"Content-Disposition": f'attachment; filename="audit-{ident}.html"'}
    return Response(page, media_type="text/html; charset=utf-8", headers=headers)
