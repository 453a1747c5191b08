"""An audit of releases that the service keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reticent.audit import verify
from reticent.policy import Policy
from reticent.release import Release
from reticent.service.documents import fresh_id, now
from reticent.service.hub import Hub
from reticent.store import Transaction


def audit(hub: Hub, releases: Sequence[str], *, report: bool = False) -> dict[str, Any]:
    """Judges releases in the order they were published, from what was published; keeps and returns the verdict.

    With `report` it measures the risk and attacks the releases too, and keeps the report that a custodian signs.
    """
    policy = hub.policy(hub.releases.get(releases[0])["policy_hash"])
    verdict, page, more = _judged([hub.releases.load(ident) for ident in releases], policy, report=report)
    document = {"id": fresh_id(), "created": now(), "releases": list(releases), "report": report, **verdict}
    document |= {"more": more, "holds": verdict["holds"] and not more.get("refuted")}

    def store(tx: Transaction) -> None:
        hub.audits.put(tx, document["id"], document)
        if report:
            hub.audits.put_blob(tx, document["id"], page.encode())

    hub.act("report" if report else "audit", f"audit:{document['id']}", store)
    return document


def _judged(releases: list[Release], policy: Policy, *, report: bool) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """The verdict; where a report was asked for, its page, and the attacks and risks in it for pages of ours."""
    if not report:
        return verify(releases, policy).to_dict(), "", {}
    from reticent.report import audit as attack
    from reticent.report.page import html

    outcome = attack(releases, policy)
    figures = outcome.to_dict()
    more = {name: figures[name] for name in ("refuted", "risk", "attacks", "not_applicable")}
    return outcome.verdict.to_dict(), html(outcome), more
