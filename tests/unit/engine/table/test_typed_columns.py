"""Columns with types: exact values are written as Arrow writes them, so that the verifier finds them in the input."""

import numpy as np
import pyarrow as pa
import pytest

import reticent
from reticent.policy import Policy

ROWS = 120
RANDOM = np.random.default_rng(1)
COLUMNS = {
    "float": pa.array([None if n == 3 else n + n % 2 / 2 for n in RANDOM.integers(1, 5, ROWS).tolist()], pa.float64()),
    "truth": pa.array(RANDOM.random(ROWS) < 0.5),
    "seconds": pa.array(1_700_000_000 + 3600 * RANDOM.integers(0, 3, ROWS), pa.timestamp("s")),
    "day": pa.array(RANDOM.integers(19_000, 19_004, ROWS).astype(np.int32)).cast(pa.date32()),
}


@pytest.mark.parametrize("method", ["mondrian", "local", "auto"])
@pytest.mark.parametrize("names", [[name] for name in COLUMNS] + [list(COLUMNS)], ids="-".join)
def test_a_table_with_types_is_released(method, names):
    table = pa.table({name: COLUMNS[name] for name in names} | {"ill": ["flu", "cold"] * (ROWS // 2)})
    policy = Policy(columns=dict.fromkeys(names, "quasi") | {"ill": "sensitive"}, privacy={"k": 5})
    release = reticent.anonymize(table, policy, method=method, seed=1)
    assert release.records.published == ROWS
    assert reticent.verify(release, policy, original=table).holds
