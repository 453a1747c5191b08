"""Rows of the prior: records that differ in one of many columns are looked up apart."""

import pyarrow as pa

from reticent.engine.veil.levels import Levels
from reticent.policy import Policy

COLUMNS = [f"c{number}" for number in range(9)]


def test_many_columns_do_not_run_into_one_another():
    # 256 values in each of nine columns are more combinations than there are numbers of 64 bits.
    cells = [[f"v{row}"] * len(COLUMNS) for row in range(256)] + [["v1", *["v0"] * (len(COLUMNS) - 1)]]
    table = pa.table({name: [row[at] for row in cells] for at, name in enumerate(COLUMNS)})
    policy = Policy.from_dict({"version": 1, "columns": dict.fromkeys(COLUMNS, "quasi") | {"ill": "sensitive"}})
    strata = [("v0",) * len(COLUMNS), ("*",) * len(COLUMNS)]
    rows = Levels(policy, COLUMNS, strata).publish(table)[1].tolist()
    assert rows == [0] + [1] * 256
