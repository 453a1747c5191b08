"""Anatomy: the core equals the reference implementation, and the release is what the paper says."""

import heapq

import numpy as np
import pyarrow as pa
import pytest
import yaml
from chacha import ChaCha20
from hypothesis import given
from hypothesis import strategies as st

import reticent
from reticent import _core
from reticent.engine.rng import Rng
from reticent.engine.table.anatomy import Anatomy, largest_eligible_size
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.verify import verify

KEY = bytes(range(32))


def reference_anatomy(codes, domain, l, key):
    """Anatomy, step by step as in the paper."""
    rng = ChaCha20(key)
    buckets = [[row for row, code in enumerate(codes) if code == value] for value in range(domain)]
    for bucket in buckets:
        rng.shuffle(bucket)
    groups = [-1] * len(codes)
    heap = [(-len(b), -rng.u32(), -v) for v, b in enumerate(buckets) if b]
    heapq.heapify(heap)
    made = 0
    while len(heap) >= l:
        for size, _, value in [heapq.heappop(heap) for _ in range(l)]:
            groups[buckets[-value].pop()] = made
            if size < -1:
                heapq.heappush(heap, (size + 1, -rng.u32(), value))
        made += 1
    for value, bucket in enumerate(buckets):
        has = {g for g, code in zip(groups, codes, strict=True) if code == value}
        free = [g for g in range(made) if g not in has]
        for row in bucket:
            if not free:
                break
            pick = rng.below(len(free))
            groups[row] = free[pick]
            free[pick] = free[-1]
            free.pop()
    return groups, made


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(1, 4), st.binary(min_size=32, max_size=32))
def test_the_core_equals_the_reference_implementation(codes, l, key):
    grouped = _core.table.anatomize(np.array(codes, dtype=np.int32), domain=6, l=l, key=key)
    assert (grouped.groups.tolist(), grouped.count) == reference_anatomy(codes, 6, l, key)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 9)), max_size=60))
def test_rows_and_groups_are_arranged_as_by_the_reference_implementation(rows):
    groups = np.unique([group for _, group in rows], return_inverse=True)[1].astype(np.int64)
    lists = [
        sorted((key, at) for at, (key, _) in enumerate(rows) if groups[at] == group)
        for group in range(len(set(groups)))
    ]
    order = sorted(range(len(lists)), key=lambda group: [key for key, _ in lists[group]])
    arranged = _core.table.arrange_rows(np.array([key for key, _ in rows], dtype=np.int64), groups)
    assert arranged.order.tolist() == [at for group in order for _, at in lists[group]]
    assert [arranged.numbers[group] for group in order] == list(range(len(lists)))


@given(st.integers(0, 40), st.binary(min_size=32, max_size=32))
def test_permutations_equal_the_reference_implementation(n, key):
    order = list(range(n))
    ChaCha20(key).shuffle(order)
    assert _core.random.permutation(n, key=key).tolist() == order


def test_the_core_refuses_nonsense():
    with pytest.raises(ValueError, match="domain"):
        _core.table.anatomize(np.array([7], dtype=np.int32), domain=3, l=2, key=KEY)
    with pytest.raises(ValueError, match="at least 1"):
        _core.table.anatomize(np.array([0], dtype=np.int32), domain=3, l=0, key=KEY)
    for groups, words in (([0], "length"), ([0, -1], "numbered"), ([0, 5], "numbered")):
        with pytest.raises(ValueError, match=words):
            _core.table.arrange_rows(np.zeros(2, dtype=np.int64), np.array(groups, dtype=np.int64))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(2, 4))
def test_largest_eligible_equals_brute_force(counts, l):
    counts = np.array(counts)
    n = int(counts.sum())
    best = max((size for size in range(n + 1) if np.minimum(counts, size // l).sum() >= size), default=0)
    assert largest_eligible_size(counts, l) == best


def policy(l=3, suppression=0.0, **privacy):
    columns = {"age": "quasi", "ill": "sensitive"}
    return Policy.from_dict(
        {"version": 1, "columns": columns, "privacy": {"l": l, "suppression": suppression, **privacy}}
    )


def test_a_share_of_the_records_is_the_share_as_it_is_written():
    """0.58 of a hundred is 58, though as a product of floating-point numbers it is a little less."""
    table = pa.table({"age": list(range(100)), "ill": ["flu"] * 79 + ["asthma"] * 21})
    rules = policy(2, suppression=0.58)
    made = reticent.anonymize(table, rules, method="anatomy", seed=1)
    assert made.records.suppressed == 58
    assert reticent.verify(made, rules).holds


def release(ills, rules, seed=1):
    engine = Anatomy(rules, rng=Rng.from_seed(seed))
    engine.push(pa.table({"age": list(range(len(ills))), "ill": ills}))
    (made,) = engine.close()
    return made


@given(st.lists(st.sampled_from("abcdef"), min_size=3, max_size=80), st.integers(2, 4))
def test_every_eligible_table_is_released_and_no_other(ills, l):
    eligible = max(ills.count(v) for v in set(ills)) * l <= len(ills)
    if not eligible:
        with pytest.raises(GuaranteeError):
            release(ills, policy(l))
        return
    made = release(ills, policy(l))
    assert verify([made], policy(l)).holds
    assert sorted(made.tables["qit"]["age"].to_pylist()) == list(range(len(ills)))


@given(st.lists(st.sampled_from("aaab"), min_size=9, max_size=60))
def test_suppression_takes_as_few_as_it_must(ills):
    rules = policy(2, suppression=1.0)
    counts = np.array([ills.count("a"), ills.count("b")])
    if largest_eligible_size(counts, 2) == 0:
        with pytest.raises(GuaranteeError):
            release(ills, rules)
        return
    made = release(ills, rules)
    assert made.records.published == largest_eligible_size(counts, 2)
    assert verify([made], rules).holds


def test_a_sorted_input_does_not_show_in_the_order_of_a_group():
    ills = ["a"] * 300 + ["b"] * 300 + ["c"] * 300
    made = release(ills, policy(3))
    rows = made.tables["qit"].select(["group", "age"]).to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["group"], str(row["age"])))
    mixed = np.random.default_rng(5).permutation(900)
    again = release([ills[i] for i in mixed], policy(3))
    assert again.tables["qit"].num_rows == 900


def test_what_anatomy_cannot_promise_is_refused():
    for extra in ({"k": 3}, {"t": 0.2}):
        with pytest.raises(PolicyError, match="cannot promise"):
            release(["a", "b", "c"], policy(3, **extra))
    with pytest.raises(GuaranteeError, match="lower l to 2"):
        release(["a", "a", "b", "b"], policy(3))


@pytest.mark.parametrize("privacy", [{"k": 5}, {"t": 0.2}, {"k": 5, "l": {"entropy": 2}, "t": 0.2}, {}])
def test_its_hint_leads_to_a_release(privacy):
    columns = {"age": "quasi", "ill": "sensitive"}
    table = pa.table({"age": ["1", "2", "3"], "ill": ["a", "b", "c"]})
    with pytest.raises(PolicyError) as error:
        reticent.anonymize(table, Policy(columns=columns, privacy=privacy), method="anatomy")
    section = yaml.safe_load(error.value.hint.removeprefix("Write ").partition(", or use")[0])
    assert reticent.anonymize(table, Policy(columns=columns, **section), method="anatomy").records.published == 3
