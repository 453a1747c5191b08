"""The kernels equal their reference implementations."""

import evolving_reference as reference
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent import _core

KEY = bytes(range(32))


def u32(items):
    return np.array(list(items), dtype=np.uint32)


def i32(items):
    return np.array(list(items), dtype=np.int32)


def test_the_reference_draws_as_the_core_does():
    draws = reference.ChaCha(KEY)
    assert reference.shuffled(range(500), draws.below) == _core.random.permutation(500, key=KEY).tolist()


@st.composite
def histories(draw):
    l = draw(st.integers(2, 3))
    n = draw(st.integers(4, 30))
    values = {r: draw(st.integers(0, 5)) for r in range(n)}
    classes = {r: draw(st.integers(0, n // 4)) for r in range(n)}
    for c in set(classes.values()):
        rows = [r for r in classes if classes[r] == c]
        if len({values[r] for r in rows}) < l:
            classes |= dict.fromkeys(rows, -1)
    gone = draw(st.lists(st.integers(0, n - 1), unique=True, min_size=1, max_size=n))
    return l, values, classes, gone


@pytest.mark.parametrize("method", ["enc", "encc", "indexed"])
@given(case=histories())
@settings(max_examples=60)
def test_deletion_equals_algorithm_2(method, case):
    l, values, classes, gone = case
    rows = u32(values)
    quasi = np.zeros((len(rows), 1), dtype=np.int32)
    core = _core.evolving.Classes(method, l=l, scale=[0.0])
    core.load(rows, i32(values.values()), quasi, i32(classes.values()))
    change = core.delete(u32(gone), key=KEY)
    expected = reference.enc_delete(classes, values, gone, l)
    left = u32(r for r in values if r not in gone)
    assert dict(zip(left.tolist(), core.classes_of(left).tolist(), strict=True)) == expected
    assert change.withheld == sum(c == -1 for c in expected.values())
    assert dict(zip(change.rows.tolist(), change.classes.tolist(), strict=True)).items() <= expected.items()


@given(
    codes=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=12, max_size=12),
    new=st.tuples(st.integers(0, 9), st.integers(0, 2)),
)
def test_eac_takes_the_cluster_with_the_least_extra_loss(codes, new):
    scale = [0.125, 0.0]  # exact in binary, so that ties are ties in both
    core = _core.evolving.Classes("eac", l=3, scale=scale)
    rows, values = u32(range(12)), i32(r % 4 for r in range(12))
    core.load(rows, values, i32(codes), i32(r // 4 for r in range(12)))
    core.insert(u32([12]), i32([0]), i32([new]), key=KEY)
    clusters = {c: {r for r in range(12) if r // 4 == c} for c in range(3)}
    assert core.classes_of(u32([12]))[0] == reference.eac_place(clusters, [*codes, new], 12, scale)


@pytest.mark.parametrize("method", ["enc", "encc", "indexed", "eac", "red"])
def test_a_row_cannot_come_twice_or_go_unknown(method):
    core = _core.evolving.Classes(method, l=2, scale=[0.0])
    core.insert(u32([0, 1]), i32([0, 1]), np.zeros((2, 1), np.int32), key=KEY)
    with pytest.raises(ValueError, match="twice"):
        core.insert(u32([1]), i32([1]), np.zeros((1, 1), np.int32), key=KEY)
    with pytest.raises(ValueError, match="not at all"):
        core.delete(u32([7]), key=KEY)
    with pytest.raises(ValueError, match="twice"):
        core.delete(u32([1, 1]), key=KEY)


def test_a_false_positive_never_deletes_another_record():
    # 40,000 records in 4,000 classes: the scan over the filters meets hundreds of false positives.
    n = 40_000
    rng = np.random.default_rng(3)
    values = i32(np.arange(n) % 20)
    core = _core.evolving.Classes("encc", l=10, scale=[0.0])
    exact = _core.evolving.Classes("indexed", l=10, scale=[0.0])
    quasi = i32(rng.integers(0, 9, n)).reshape(-1, 1)
    for c in (core, exact):
        c.insert(u32(range(n)), values, quasi, key=KEY)
    gone = u32(rng.permutation(n)[: n // 10])
    left = np.setdiff1d(u32(range(n)), gone)
    for c in (core, exact):
        c.delete(gone, key=KEY, each=True)
    assert (core.classes_of(left) == exact.classes_of(left)).all()
