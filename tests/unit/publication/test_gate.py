"""The gate: what it asks the verifier, and what it says when the verifier refutes a release."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.base import Members
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.publication.gate import pass_gate, require_verification
from reticent.release import Guarantee, RecordCounts, Release
from reticent.release.codec import from_bytes
from reticent.verify import verify
from reticent.verify.result import Finding, VerificationResult

COLUMNS = {"id": "identifier", "age": "quasi", "ill": "sensitive"}


def policy(**more) -> Policy:
    return Policy.from_dict({"version": 1, "person": "id", "columns": COLUMNS, **more})


def release(kind: str) -> Release:
    """Two groups of two different values each."""
    return Release(
        kind=kind,
        shape="anatomy",
        method="red",
        tables={
            "qit": pa.table({"group": [0, 0, 1, 1], "age": ["1", "2", "3", "4"]}),
            "st": pa.table({"group": [0, 0, 1, 1], "value": ["a", "b", "c", "d"], "count": [1, 1, 1, 1]}),
        },
        guarantee=Guarantee({"l": {"distinct": 2}}, "a reader"),
        records=RecordCounts(4, 4),
        policy_hash="",
    )


def test_a_release_does_not_say_by_itself_what_it_is_asked_for():
    rules = policy(privacy={"l": 2}, evolving={"l": 3})
    assert verify([release("table")], rules).holds
    with pytest.raises(GuaranteeError, match="verifier refuted"):
        pass_gate(release("table"), rules, "evolving")


def test_the_entry_has_the_digest_of_the_bytes_and_the_next_number():
    members = Members(np.arange(4, dtype=np.uint64), np.array([0, 0, 1, 1]))
    passed = pass_gate(release("evolving"), policy(evolving={"l": 2}), "evolving", members=members)
    assert passed.entry.digest == hashlib.sha256(passed.payload).hexdigest()
    assert passed.entry.number == 1
    assert from_bytes(passed.payload).tables["st"].equals(passed.release.tables["st"])


def test_earlier_releases_are_considered_but_not_verified_again():
    rules = policy(evolving={"l": 2})
    second = replace(release("evolving"), tables=release("evolving").tables | {"st": crossed()})
    alone = pass_gate(second, rules, "evolving").result
    assert alone.holds
    with pytest.raises(GuaranteeError, match="fewer than l candidates, given all publications"):
        pass_gate(second, rules, "evolving", earlier=[release("evolving")])
    between = replace(release("evolving"), tables=release("evolving").tables | {"qit": others()})
    assert pass_gate(second, rules, "evolving", earlier=[between]).result.holds
    with pytest.raises(GuaranteeError):
        pass_gate(second, rules, "evolving", earlier=[release("evolving"), between])
    both = verify([release("evolving"), second], rules, fresh=1)
    assert not any(finding.where.startswith("release 1") for finding in both.findings)
    assert any(finding.where.startswith("release 2") for finding in both.findings)


def others() -> pa.Table:
    """Four persons whom no other release shows."""
    return pa.table({"group": [0, 0, 1, 1], "age": ["5", "6", "7", "8"]})


def crossed() -> pa.Table:
    """The same persons in the same groups, with one value in common with the release before."""
    return pa.table({"group": [0, 0, 1, 1], "value": ["a", "c", "b", "d"], "count": [1, 1, 1, 1]})


def test_a_result_without_checks_lets_nothing_through():
    with pytest.raises(GuaranteeError, match="nothing could be checked"):
        require_verification(VerificationResult(()))


def test_the_error_names_claims_and_no_cell():
    with pytest.raises(GuaranteeError) as refused:
        require_verification(VerificationResult((Finding("k = 5", holds=False, where="2 of 7 groups fail"),)))
    assert "k = 5" in refused.value.message
    assert refused.value.hint
    assert refused.value.exit_code == 4
