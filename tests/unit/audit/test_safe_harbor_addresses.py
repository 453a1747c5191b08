"""Addresses that are no place are not geographic units, and every column is listed under its own identifier."""

import pyarrow as pa
import pytest

from reticent.audit.risk.safe_harbor import safe_harbor

GEOGRAPHIC = "Geographic units smaller than a state"


@pytest.mark.parametrize(
    ("column", "identifier"),
    [
        ("home_address", GEOGRAPHIC),
        ("email", "E-mail addresses"),
        ("website", "Web addresses"),
        ("ip_address", "IP addresses"),
        ("patient_id", "Any other unique identifying number or code"),
    ],
)
def test_a_column_is_listed_under_its_identifier(column, identifier):
    hits = {check.identifier for check in safe_harbor([pa.table({column: ["a", "b"]})]) if not check.clear}
    assert identifier in hits
    assert column in ("home_address", "ip_address") or GEOGRAPHIC not in hits
