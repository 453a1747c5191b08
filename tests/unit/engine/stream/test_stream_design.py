"""Delay-free streams and CASTLE: priors, refusals, errors, windows."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine import publisher_class
from reticent.engine.rng import Rng
from reticent.engine.stream.castle import Castle
from reticent.engine.stream.delay_free import DelayFree
from reticent.errors import DataError, GuaranteeError, PolicyError, StateError
from reticent.policy import Policy
from reticent.reproduce.windows import Monitor, Query, true_counts

COLUMNS = {"who": "identifier", "age": "quasi", "ill": "sensitive"}


def policy(tmp_path, counts=None, **settings):
    rules = {"version": 1, "person": "who", "columns": COLUMNS}
    if counts is not None:
        lines = "".join(f"{value},{count}\n" for value, count in counts.items())
        (tmp_path / "prior.csv").write_text("value,count\n" + lines)
        rules["prior"] = {"file": "prior.csv"}
    return Policy.from_dict(rules | {"stream": {"method": "delay-free"} | settings}, base=tmp_path)


def batch(values, start=0):
    n = len(values)
    return pa.table(
        {"who": [f"p{start + i}" for i in range(n)], "age": list(range(start, start + n)), "ill": list(values)}
    )


@pytest.mark.parametrize("text", ["value,count\n", "a,b\n", "a,-1\n", "a,1,2\n", "a,0\n"])
def test_a_prior_that_is_none_is_refused(tmp_path, text):
    rules = policy(tmp_path, {"a": 1}, l=2)
    (tmp_path / "prior.csv").write_text(text)
    with pytest.raises(PolicyError, match="prior"):
        DelayFree(rules, rng=Rng.from_seed(1))


def test_without_a_prior_or_a_domain_the_stream_is_refused(tmp_path):
    with pytest.raises(PolicyError, match="before the first record"):
        DelayFree(policy(tmp_path, l=2), rng=Rng.from_seed(1))


def test_a_record_without_a_person_is_refused(tmp_path):
    stream = DelayFree(policy(tmp_path, {"a": 1, "b": 1}, l=2), rng=Rng.from_seed(1))
    table = pa.table({"who": pa.array([None], pa.string()), "age": [1], "ill": ["a"]})
    with pytest.raises(DataError, match="no value in 'who'"):
        stream.push(table)


def test_a_snapshot_of_another_method_is_refused(tmp_path):
    rules = policy(tmp_path, {"a": 1, "b": 1, "c": 1}, l=2)
    state = DelayFree(rules, rng=Rng.from_seed(1)).snapshot()
    with pytest.raises(StateError, match="another method"):
        Castle.restore(rules, state)


def test_after_an_error_a_stream_takes_nothing_more(tmp_path):
    rules = policy(tmp_path, {"a": 9, "b": 1, "c": 1}, l=3, generation="literal", pool="empirical", draw_limit=5)
    stream = publisher_class("stream", "delay-free")(rules, rng=Rng.from_seed(1))
    with pytest.raises(GuaranteeError, match="draws"):
        stream.push(batch(["a"]))
    with pytest.raises(StateError):
        stream.push(batch(["a"]))
    with pytest.raises(StateError):
        stream.snapshot()


@pytest.mark.parametrize("delta", [1, 7, 50])
def test_castle_lets_nobody_wait_longer_than_delta_and_gives_nobody_up_before(tmp_path, delta):
    rules = {"version": 1, "person": "who", "columns": COLUMNS, "privacy": {"k": 3, "l": 2}}
    rules |= {"stream": {"method": "castle", "delta": delta}}
    stream = Castle(Policy.from_dict(rules), rng=Rng.from_seed(1))
    left = set()
    for i in range(300):
        left.add(i)
        for release in stream.push(batch(["abcd"[i % 4]], start=i)):
            left -= set(release.tables["record"].column("seq").to_pylist())
        # What waits was either just taken in or is younger than delta; the suppressed have left as well.
        assert stream.counts.withheld <= delta
        assert stream.counts.withheld + stream.counts.suppressed == len(left)
        assert stream.counts.suppressed <= sum(seq <= i - delta for seq in left)
    stream.close()
    assert stream.counts.withheld == 0


def test_castle_counts_persons_and_not_records(tmp_path):
    """One person's hundred records are no cluster of k."""
    rules = {"version": 1, "person": "who", "columns": COLUMNS, "privacy": {"k": 2}}
    rules |= {"stream": {"method": "castle", "delta": 5}}
    stream = Castle(Policy.from_dict(rules), rng=Rng.from_seed(1))
    table = pa.table({"who": ["same"] * 100, "age": list(range(100)), "ill": ["a"] * 100})
    assert stream.push(table) == []
    assert stream.close() == []
    assert stream.counts.suppressed == 100


def test_window_counts_are_right_in_the_mean_and_know_their_error(tmp_path):
    stream = DelayFree(policy(tmp_path, dict.fromkeys("abcdefgh", 1000), l=4), rng=Rng.from_seed(3))
    rng = np.random.default_rng(3)
    table = batch(rng.choice(list("abcdefgh"), 8000))
    query = Query(["a"], 400, {"age": list(range(0, 8000, 2))})
    monitor, answers = Monitor(query), []
    for start in range(0, 8000, 700):
        for release in stream.push(table.slice(start, 700)):
            answers += list(monitor.read(release))
    answers += list(monitor.close())
    true = true_counts(table, "ill", query)
    assert len(answers) == len(true) == 20
    off = [(answer.count - count) / answer.error for answer, count in zip(answers, true, strict=True)]
    assert abs(np.mean(off)) < 1
    assert np.std(off) < 2
