"""Dates as hospitals write them: however a column writes its days, a table loses as little, and the verifier reads it."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import reticent
from reticent.policy import Policy

ROWS = 400
WRITTEN = {"DD.MM.YYYY": "%d.%m.%Y", "MM/DD/YYYY": "%m/%d/%Y", None: "%Y%m%d"}


def table(shape):
    rng = np.random.default_rng(1)
    days = [dt.date(1940, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 20_000, ROWS)]
    return pa.table(
        {
            "born": [day.strftime(shape) for day in days],
            "sex": rng.choice(["f", "m"], ROWS),
            "ill": rng.choice(["I10", "E11", "J18", "K35"], ROWS),
        }
    )


def policy(written):
    dates = {"dates": ["month", "quarter", "year", "decade"]} | ({"format": written} if written else {})
    columns = {"born": {"role": "quasi", "hierarchy": dates}, "sex": "quasi", "ill": "sensitive"}
    return Policy.from_dict({"version": 1, "columns": columns, "privacy": {"k": 5, "l": 2}})


@pytest.mark.parametrize(("written", "shape"), WRITTEN.items())
def test_a_table_is_as_fine_as_with_the_year_first(written, shape):
    plain, local = table("%Y-%m-%d"), table(shape)
    wanted = reticent.anonymize(plain, policy(None), seed=1)
    release = reticent.anonymize(local, policy(written), seed=1)
    assert release.metrics["loss"] == wanted.metrics["loss"]
    cells = release.tables["data"]["born"].to_pylist()
    assert sorted(cells) == sorted(wanted.tables["data"]["born"].to_pylist())
    assert all(cell.startswith("[19") for cell in cells)
    assert reticent.verify([release], policy(written), original=local).holds


@pytest.mark.parametrize(("written", "shape"), WRITTEN.items())
def test_the_verifier_refutes_a_range_without_the_day(written, shape):
    local = table(shape)
    release = reticent.anonymize(local, policy(written), seed=1)
    cells = release.tables["data"]["born"].to_pylist()
    first = cells[0]
    moved = [f"[2001{cell[5:12]} 2002{cell[-7:]}" if cell == first else cell for cell in cells]
    data = release.tables["data"].set_column(0, "born", pa.array(moved))
    forged = reticent.Release(**{**vars(release), "tables": {**release.tables, "data": data}})
    assert reticent.verify([forged], policy(written)).holds  # nothing but the input shows it
    assert not reticent.verify([forged], policy(written), original=local).holds
