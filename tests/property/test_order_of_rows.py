"""The order of the rows decides nothing: a table gives the same release whichever way it is sorted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from counted_cases import PARTING, REQUIREMENTS, as_sorted, policy, rows

from reticent import anonymize

CASES = [(method, REQUIREMENTS[at]) for method in ("optimal", "mondrian", "local") for at in (0, 1, 4)]


@pytest.mark.parametrize(("method", "privacy"), [*CASES, ("local", PARTING)], ids=str)
def test_the_release_does_not_follow_the_order_of_the_rows(method, privacy):
    table, wanted = rows(1200), policy(privacy, method=method)
    release = as_sorted(anonymize(table, wanted, seed=1).tables["data"])
    for seed in range(4):
        shuffled = table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))
        assert as_sorted(anonymize(shuffled, wanted, seed=1).tables["data"]) == release
