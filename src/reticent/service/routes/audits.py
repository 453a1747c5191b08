"""Audits: the verifier recomputes the claims of releases from the published data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from reticent.policy import Policy
from reticent.release import Release
from reticent.service.access import AuthenticatedRoute
from reticent.service.documents import new_id, now
from reticent.service.hub import Hub
from reticent.service.routes.bodies import errors, text_responses
from reticent.service.routes.common import CUSTODIAN, HubDependency, Ident, in_thread
from reticent.store import Transaction
from reticent.verify import verify

router = APIRouter(prefix="/audits", tags=["audits"], dependencies=CUSTODIAN, route_class=AuthenticatedRoute)


class NewAudit(BaseModel):
    """Releases of one source to audit, in the order of publication."""

    model_config = ConfigDict(extra="forbid")
    releases: list[Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]] = Field(min_length=1, max_length=100)
    report: bool = Field(default=False, description="Also measure the risk, attack the releases and write the report.")


class Audit(BaseModel):
    """The result of an audit."""

    id: str
    created: str
    releases: list[str]
    report: bool
    holds: bool
    findings: list[dict[str, Any]]
    notes: list[str]
    unchecked: list[str]


@router.post("", status_code=201, responses=errors(404))
async def create_audit(body: NewAudit, hub: HubDependency) -> Audit:
    """Audit releases under their own policy."""
    return Audit(**await in_thread(lambda: audit(hub, body.releases, report=body.report)))


@router.get("", responses=errors())
async def list_audits(hub: HubDependency) -> list[Audit]:
    """List all audits, newest first."""
    return [Audit(**audit) for audit in await in_thread(hub.audits.all)]


@router.get("/{ident}", responses=errors(404))
async def get_audit(ident: Ident, hub: HubDependency) -> Audit:
    """Get an audit."""
    return Audit(**await in_thread(lambda: hub.audits.get(ident)))


@router.get("/{ident}/report", responses=text_responses("text/html", 404), response_class=Response)
async def get_report(ident: Ident, hub: HubDependency) -> Response:
    """Get the report of an audit that has one."""
    page = await in_thread(lambda: hub.audits.blob(ident))
    headers = {"Content-Disposition": f'attachment; filename="audit-{ident}.html"'}
    return Response(page, media_type="text/html; charset=utf-8", headers=headers)


def audit(hub: Hub, releases: Sequence[str], *, report: bool = False) -> dict[str, Any]:
    """Verify releases in the order of publication from the published data, then store and return the result.

    With `report` it also measures the risk, attacks the releases and stores the report for the custodian to sign.
    """
    policy = hub.policy(hub.releases.get(releases[0])["policy_hash"])
    result, page, more = _verify_releases([hub.releases.load(ident) for ident in releases], policy, report=report)
    document = {"id": new_id(), "created": now(), "releases": list(releases), "report": report, **result}
    document |= {"more": more, "holds": result["holds"] and not more.get("refuted")}

    def store(tx: Transaction) -> None:
        hub.audits.put(tx, document["id"], document)
        if report:
            hub.audits.put_blob(tx, document["id"], page.encode())

    hub.write_and_log("report" if report else "audit", f"audit:{document['id']}", store)
    return document


def _verify_releases(
    releases: list[Release], policy: Policy, *, report: bool
) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """Return the result; with `report` also the page of the report and its attacks and risks for the studio."""
    if not report:
        return verify(releases, policy).to_dict(), "", {}
    from reticent.report import audit as attack
    from reticent.report.page import render_html

    outcome = attack(releases, policy)
    figures = outcome.to_dict()
    more = {name: figures[name] for name in ("refuted", "risk", "attacks", "not_applicable")}
    return outcome.result.to_dict(), render_html(outcome), more
