"""An audit of releases that the service keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reticent.audit import verify
from reticent.service.documents import fresh_id, now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reticent.service.hub import Hub


def audit(hub: Hub, releases: Sequence[str]) -> dict[str, Any]:
    """Judges releases in order, from what was published; keeps and returns the verdict."""
    documents = [hub.releases.get(ident) for ident in releases]
    policy = hub.policy(documents[0]["policy_hash"])
    verdict = verify([hub.releases.load(ident) for ident in releases], policy)
    found = {"id": fresh_id(), "created": now(), "releases": list(releases), **verdict.to_dict()}
    hub.write(lambda tx: hub.audits.put(tx, found["id"], found))
    return found
