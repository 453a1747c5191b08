"""The codebook of a stream: what a recipient needs to read its lines, told before the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from reticent.release.wording import claims_in_words

if TYPE_CHECKING:
    from reticent.engine.stream.contract import StreamPublisher
    from reticent.policy import Policy

KIND = "codebook"
_ETA = "eta: which share of the true values will not be among the candidates is not known before the stream has run"


def codebook(policy: Policy, engine: StreamPublisher) -> bytes:
    """One JSON object on one line: columns, roles and levels, the guarantee in words and numbers, the veil.

    Nothing in it depends on a record.
    """
    guarantee, documents = engine.guarantee, engine.documents
    book: dict[str, Any] = {
        "type": KIND,
        "kind": engine.kind,
        "method": engine.method,
        "columns": [_column(policy, name) for name in policy.released],
        "guarantee": {
            "claims": dict(guarantee.claims),
            "words": claims_in_words(guarantee.claims),
            "against": guarantee.against,
            "not_covered": list(guarantee.not_covered),
        },
        "policy": policy.hash,
        **documents,
    }
    if "veil" in documents:
        book["notes"] = [_ETA]
    return orjson.dumps(book) + b"\n"


def _column(policy: Policy, name: str) -> dict[str, Any]:
    column = policy.columns[name]
    told: dict[str, Any] = {"name": name, "role": column.role}
    if column.role == "quasi":
        told |= {"level": column.level, "hierarchy": column.hierarchy.kind if column.hierarchy else None}
    return told
