"""The verifier of a series against reference implementations: matchings by permutation, shares by the engine's own measure."""

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from reticent.engine.series.history import History
from reticent.engine.series.update_graph import risk_of
from reticent.policy import Policy
from reticent.policy.updates import Updates
from reticent.release import Ledger, LedgerEntry, RecordCounts
from reticent.verify.published import Published
from reticent.verify.series import LinkedRelease, can_match, largest_shares, verify_series

SETS = st.lists(st.frozensets(st.integers(0, 5), max_size=4), min_size=1, max_size=4)


@given(SETS, st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_matched_equals_trying_every_order(sets, values):
    tried = len(sets) == len(values) and any(
        all(value in found for value, found in zip(order, sets, strict=True)) for order in permutations(values)
    )
    assert can_match(sets, values) == tried


@pytest.mark.parametrize("seed", range(5))
def test_shares_equal_the_engines_risk(seed):
    """Two implementations of equation (2), one native and one in numpy, on persons who miss releases."""
    rng = np.random.default_rng(seed)
    size, m = 8, 3
    matrix = rng.random((size, size)) + 0.01
    updates = Updates(tuple(map(str, range(size))), sparse.csr_array(matrix / matrix.sum(axis=1, keepdims=True)))
    history, views = History(), []
    for number in range(1, 6):
        groups = [tuple(sorted(rng.permutation(size)[:m].tolist())) for _ in range(6)]
        people = np.sort(rng.choice(40, 18, replace=False)).astype(np.uint64)
        group = rng.integers(0, 6, 18).astype(np.int32)
        own = np.array([groups[g][0] for g in group], dtype=np.int32)
        offsets = np.arange(0, 6 * m + 1, m, dtype=np.int64)
        history = history.extend(people, people, group, own, (offsets, np.array(groups, dtype=np.int32).ravel()))
        views.append(LinkedRelease(number, people, group + 1, {g + 1: values for g, values in enumerate(groups)}, 0))
    found = largest_shares(views, updates)
    risk = risk_of(history, updates)
    expected = dict(zip(history.persons.tolist(), risk.worst.tolist(), strict=True))
    assert found.keys() == expected.keys()
    np.testing.assert_allclose([found[p] for p in expected], list(expected.values()), rtol=1e-9)


@pytest.mark.parametrize(("then", "illegal"), [("cde", 3), ("cdf", 0)])
def test_a_candidate_that_nobody_can_have_reached_is_refuted(tmp_path, then, illegal):
    """No share is too large, yet one of the later candidates is ruled out: e follows none of the earlier candidates."""
    steps = [(value, then, 0.4) for value in "abx" for then in "cd"] + [(value, "f", 0.2) for value in "abx"]
    steps += [(value, value, 1) for value in "cdef"]
    lines = "".join(f"{value},{then},{share}\n" for value, then, share in steps)
    (tmp_path / "updates.csv").write_text("value,next,probability\n" + lines)
    columns = {"who": "identifier", "age": "quasi", "ill": {"role": "sensitive", "updates": {"file": "updates.csv"}}}
    rules = {"version": 1, "person": "who", "columns": columns, "series": {"m": 3, "max_risk": 0.5}}
    ledger, releases = Ledger(), []
    for number, values in enumerate(("abx", then), 1):
        data = pa.table({"group": ["1"] * 3, "age": ["30"] * 3, "ill": list(values)})
        tables = {"data": data, "counterfeits": pa.table({"group": pa.array([], "str"), "count": pa.array([], "str")})}
        releases.append(Published("", "m-distinct", "series", tables=tables, explain={"release": number}))
        entry = LedgerEntry(number, "", "", "m-distinct", RecordCounts(3, 3, 0, 0), "")
        ledger.record(entry, np.arange(3, dtype=np.uint64), np.ones(3, dtype=np.int64))
    result = verify_series(releases, Policy.from_dict(rules, base=tmp_path), ledger)
    found = {finding.claim: finding for finding in result.findings}
    legal = found["candidates are a legal update instance, one to one"]
    assert (legal.holds, legal.measured) == (not illegal, illegal)
    assert found["no candidate has a share above max_risk"].holds
