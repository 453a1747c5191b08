"""An audit of releases that the service keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reticent.audit import verify
from reticent.service.documents import fresh_id, now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reticent.policy import Policy
    from reticent.release import Release
    from reticent.service.hub import Hub
    from reticent.store import Transaction


def audit(hub: Hub, releases: Sequence[str], *, report: bool = False) -> dict[str, Any]:
    """Judges releases in order, from what was published; keeps and returns the verdict.

    Args:
        hub: where the releases are.
        releases: their ids, in the order they were published.
        report: measure the risk and attack the releases too, and keep the report that a custodian signs.
    """
    documents = [hub.releases.get(ident) for ident in releases]
    policy = hub.policy(documents[0]["policy_hash"])
    made = [hub.releases.load(ident) for ident in releases]
    verdict, page, more = _judged(made, policy, report=report)
    found = {"id": fresh_id(), "created": now(), "releases": list(releases), "report": report, **verdict, "more": more}
    found["holds"] = found["holds"] and not more.get("refuted")

    def store(tx: Transaction) -> None:
        hub.trail.note(tx, "report" if report else "audit", f"audit:{found['id']}")
        hub.audits.put(tx, found["id"], found)
        if report:
            hub.audits.put_blob(tx, found["id"], page.encode())

    hub.write(store)
    return found


def _judged(made: Sequence[Release], policy: Policy, *, report: bool) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """The verdict; where a report was asked for, its page, and the attacks and risks in it for pages of ours."""
    if not report:
        return verify(list(made), policy).to_dict(), "", {}
    from reticent.report import audit as attack
    from reticent.report.page import html

    found = attack(list(made), policy)
    whole = found.to_dict()
    more = {name: whole[name] for name in ("refuted", "risk", "attacks", "not_applicable")}
    return found.verdict.to_dict(), html(found), more
