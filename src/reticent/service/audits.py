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
    verdict, page, refuted = _judged(made, policy, report=report)
    found = {"id": fresh_id(), "created": now(), "releases": list(releases), "report": report, **verdict}
    found["holds"] = found["holds"] and not refuted

    def store(tx: Transaction) -> None:
        hub.audits.put(tx, found["id"], found)
        if report:
            hub.audits.put_blob(tx, found["id"], page.encode())

    hub.write(store)
    return found


def _judged(made: Sequence[Release], policy: Policy, *, report: bool) -> tuple[dict[str, Any], str, bool]:
    if not report:
        return verify(list(made), policy).to_dict(), "", False
    from reticent.report import audit as attack
    from reticent.report.page import html

    found = attack(list(made), policy)
    return found.verdict.to_dict(), html(found), found.refuted
