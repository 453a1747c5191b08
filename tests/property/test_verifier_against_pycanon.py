"""The verifier and the models against pycanon, an independent package, on random tables.

Where the conventions differ, and how each comparison takes care of it:

- k, distinct l, equal t (text columns) and ordered t (numeric columns): the same definitions.
- entropy l: pycanon gives the whole part of exp(entropy) in doubles, so a class exactly on a boundary may come out one
  too low; compared where no class lies within 1e-9 of a whole number, and on the boundary ours is never below.
- recursive (c,l): pycanon sorts counts upwards and puts the smallest count above the fraction, which is not the
  definition of Machanavajjhala et al.; its l is compared, and its c shown to accept what the definition refuses.
- t: pycanon knows no hierarchical distance and no input beyond the table; the reference is the release's own.
"""

from __future__ import annotations

import math
import warnings

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pycanon import anonymity

from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release
from reticent.verify import verify

ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 4)), min_size=2, max_size=30)
QUASI = ["q1", "q2"]


def table(rows, *, text=True):
    frame = pd.DataFrame(rows, columns=[*QUASI, "ill"])
    return frame.assign(ill=frame["ill"].map(str)) if text else frame


def verify_claims(frame, claims):
    policy = Policy.from_dict({"version": 1, "columns": {"q1": "quasi", "q2": "quasi", "ill": "sensitive"}})
    data = pa.Table.from_pandas(frame, preserve_index=False)
    counts = RecordCounts(len(frame), len(frame), 0, 0)
    return verify(Release("table", "generalized", "peer", {"data": data}, Guarantee(claims, ""), counts, ""), policy)


def holds(frame, claims):
    return verify_claims(frame, claims).holds


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_k_distinct_and_equal_t(rows):
    frame = table(rows)
    k, l = anonymity.k_anonymity(frame, QUASI), anonymity.l_diversity(frame, QUASI, ["ill"])
    t = anonymity.t_closeness(frame, QUASI, ["ill"])
    assert holds(frame, {"k": k, "l": {"distinct": l}})
    assert not holds(frame, {"k": k + 1})
    assert not holds(frame, {"l": {"distinct": l + 1}})
    finding = next(f for f in verify_claims(frame, {"t": {"equal": 1}}).findings if f.claim.startswith("t ="))
    assert finding.measured == pytest.approx(t, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(ROWS.filter(lambda rows: len({row[2] for row in rows}) > 1))
def test_ordered_t_of_numbers(rows):
    frame = table(rows, text=False)
    finding = next(f for f in verify_claims(frame, {"t": {"ordered": 1}}).findings if f.claim.startswith("t ="))
    assert finding.measured == pytest.approx(anonymity.t_closeness(frame, QUASI, ["ill"]), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_entropy(rows):
    frame = table(rows)
    theirs = anonymity.entropy_l_diversity(frame, QUASI, ["ill"])
    ours = next(f for f in verify_claims(frame, {"l": {"entropy": 1}}).findings if "entropy" in f.claim).measured
    if abs(ours - round(ours)) > 1e-9:
        assert theirs == math.floor(ours)
        assert holds(frame, {"l": {"entropy": theirs}})
        assert not holds(frame, {"l": {"entropy": theirs + 1}})
    else:
        assert theirs <= round(ours)
        assert holds(frame, {"l": {"entropy": round(ours)}})


@settings(max_examples=30, deadline=None)
@given(ROWS)
def test_recursive_shares_the_l(rows):
    frame = table(rows)
    _, l = anonymity.recursive_c_l_diversity(frame, QUASI, ["ill"])
    assert holds(frame, {"l": {"recursive": [1000, int(l)]}})
    assert not holds(frame, {"l": {"recursive": [1000, int(l) + 1]}})


def test_pycanons_c_is_not_the_definitions():
    # counts 10, 1: f1 = 10 must stay below c * f2 = c, so c must exceed 10; pycanon says 1
    frame = table([("a", "x", 0)] * 10 + [("a", "x", 1)])
    c, l = anonymity.recursive_c_l_diversity(frame, QUASI, ["ill"])
    assert (c, l) == (1, 2)
    assert not holds(frame, {"l": {"recursive": [10, 2]}})
    assert holds(frame, {"l": {"recursive": [10.001, 2]}})
