"""schemathesis against the OpenAPI document: no answer of 500 or above, errors in one shape, no cell in any of them."""

from __future__ import annotations

import orjson
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import checks
from serving import NDJSON, InThread, csv, feed_policy, lines

from reticent.datasets import feed, hospital
from reticent.service.uploads import CONTENT_TYPES

CELLS = feed.generate(30, 1)


@schemathesis.serializer(*(kind for kind in CONTENT_TYPES if kind != "application/octet-stream"))
def as_it_is(_, value):
    """Bodies of records and tables are bytes of any kind."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


SECRETS = set(CELLS.column("patient_id").to_pylist()) | set(CELLS.column("postcode").to_pylist())


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    running = InThread(tmp_path_factory.mktemp("openapi"), wrong_token_rate=1e9, rate=1e9)
    with running.client() as client:
        client.post("/streams", json={"name": "s", **feed_policy()}).raise_for_status()
        headers = {"Content-Type": NDJSON, "Idempotency-Key": "1"}
        client.post("/streams/s/records", content=lines(CELLS), headers=headers).raise_for_status()
        client.post("/tables", content=csv(hospital.generate(50, 1)), headers={"Content-Type": "text/csv"})
    yield running
    running.close()


def test_no_call_breaks_the_server(filled):
    schema = schemathesis.openapi.from_url(f"{filled.root}/api/v1/openapi.json")
    headers = {"Authorization": f"Bearer {filled.tokens['custodian']}"}
    tried = 0
    for outcome in schema.get_all_operations():
        operation = outcome.ok()
        if operation.path.endswith("/events"):
            continue  # an endless answer; tests/service/test_streams_api.py reads it

        @settings(
            max_examples=12, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy())
        def one(case):
            nonlocal tried
            tried += 1
            answer = case.call(headers=headers, timeout=30)
            assert answer.status_code < 500, (case.operation.label, answer.status_code, answer.text)
            if answer.status_code >= 400:
                said = orjson.loads(answer.content)
                assert set(said) == {"error"}
                assert set(said["error"]) == {"code", "message", "hint"}
                assert not [cell for cell in SECRETS if cell in answer.text]
            case.validate_response(answer, checks=[checks.not_a_server_error])

        one()
    assert tried > 200
