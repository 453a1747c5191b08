"""Variants of one value count as one value in a series."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.verify import verify

POLICY = {
    "version": 1,
    "person": "id",
    "columns": {"id": "identifier", "age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "ill": "sensitive"},
    "privacy": {"l": 2},
    "series": {"method": "m-invariance", "m": 2},
}


def rows(*ills):
    ages = np.random.default_rng(1).integers(0, 90, 60)
    return pa.table({"id": [f"p{at}" for at in range(60)], "age": ages, "ill": list(ills) * (60 // len(ills))})


def cut(policy, *ills):
    series = publisher(policy, "series", "m-invariance", rng=Rng.from_seed(1))
    series.push(rows(*ills))
    (release,) = series.cut()
    return release


def test_variants_are_refused_or_merged():
    with pytest.raises(DataError, match="variants"):
        cut(Policy.from_dict(POLICY), "flu", "flu", "Flu ", "gout")
    columns = {**POLICY["columns"], "ill": {"role": "sensitive", "normalize": True}}
    release = cut(Policy.from_dict({**POLICY, "columns": columns}), "flu", "gout", "flu", "gout", "Gout", "ulcer")
    assert "Gout" not in release.tables["data"]["ill"].to_pylist()


def test_the_verifier_refutes_groups_of_variants():
    policy = Policy.from_dict(POLICY)
    release = cut(policy, "flu", "gout", "ulcer")
    assert verify(release, policy).holds
    data = release.tables["data"]
    ills = pa.array(["Flu" if ill == "gout" else ill for ill in data["ill"].to_pylist()])
    forged = {**release.tables, "data": data.set_column(data.column_names.index("ill"), "ill", ills)}
    claims = {finding.claim for finding in verify(replace(release, tables=forged), policy).refuted}
    assert "no two values are variants of one value" in claims
