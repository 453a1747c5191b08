"""What an attacker learns equals the result record by record and node by node."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.audit.attack.attacker_model import Likelihood, fit_model
from reticent.audit.attack.grouped_records import GroupedRecords
from reticent.audit.attack.person_nodes import person_nodes
from reticent.policy import Policy
from reticent.verify.groups import histograms

COLUMNS = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
    "zip": {"role": "quasi", "hierarchy": {"prefix": 3}},
    "town": "quasi",
    "ill": "sensitive",
}
POLICY = Policy.from_dict({"version": 1, "columns": COLUMNS, "privacy": {"k": 2}})


def persons(rng, size):
    columns = {
        "age": rng.integers(0, 60, size).astype(str),
        "zip": rng.integers(100, 400, size).astype(str),
        "town": rng.choice(["rome", "oslo"], size),
    }
    return pa.table({name: pa.array(cells.tolist()) for name, cells in columns.items()})


def test_every_level_has_its_nodes():
    table = pa.table({"age": ["3", "7", "18"], "zip": ["123", "124", "123"], "town": ["rome"] * 3})
    seen = person_nodes(table, ["age", "zip", "town"], POLICY, raw=True)
    # all; three ages, two tens (both in one twenty); two codes (both in one prefix); towns do not differ.
    assert seen.nodes.shape[1] == 1 + 3 + 2 + 2
    ones = seen @ np.eye(8)
    assert ones.sum(axis=1).tolist() == [4, 4, 4]
    assert (ones @ ones.T).astype(int).tolist() == [[4, 2, 2], [2, 4, 1], [2, 1, 4]]


def by_records(seen, explains, before, weights):
    """The loss, computed record by record."""
    logits = np.log(before) + (seen @ np.eye(seen.nodes.shape[1])) @ weights
    belief = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return -np.log((belief * explains).sum(axis=1)).mean()


@pytest.mark.parametrize("seed", range(5))
def test_equal_records_count_as_often_as_they_occur(seed):
    rng = np.random.default_rng(seed)
    table = persons(rng, 40)
    seen = person_nodes(table, table.column_names, POLICY, raw=True)[rng.integers(0, 40, 300)]
    explains, before = rng.random((40, 7))[rng.integers(0, 2, 300)], rng.random((2, 7))[rng.integers(0, 2, 300)] + 0.1
    weights = rng.normal(size=(seen.nodes.shape[1], 7))
    merged = Likelihood.of(seen, explains, before)
    single = Likelihood(seen, explains, np.log(before), np.ones(300))
    assert len(merged.times) < 200
    assert merged.times.sum() == 300
    assert merged.loss(weights) == pytest.approx(by_records(seen, explains, before, weights))
    start = np.zeros_like(weights)
    assert merged.fit(start, 5.0) == pytest.approx(single.fit(start, 5.0), abs=1e-6)


def test_the_learned_model_beats_the_prior_on_held_out_records():
    rng = np.random.default_rng(1)
    table = persons(rng, 600)
    true_values = np.array([town == "rome" for town in table["town"].to_pylist()]).astype(int)
    explains, before = np.eye(2)[true_values], np.full((600, 2), 0.5)
    seen = person_nodes(table, table.column_names, POLICY, raw=True)
    model = fit_model(seen, explains, before, rng)
    assert model.loss < 0.2
    assert (model.belief(seen, before).argmax(axis=1) == true_values).all()


def by_all_values(belief, group, counts):
    """Proportional fitting over all values of all groups at once."""
    free = np.maximum(counts.sum(axis=1) - np.bincount(group, minlength=len(counts)), 0)[:, None]
    members = (np.arange(len(counts))[:, None] == group).astype(float)
    average, scale = members @ belief / np.maximum(members.sum(axis=1), 1)[:, None], (counts > 0).astype(float)

    def shares(weights):
        return weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)

    for _ in range(12):
        total = members @ shares(belief * scale[group]) + free * shares(average * scale)
        scale *= np.divide(counts, total, out=np.zeros_like(scale), where=total > 0)
    return shares(belief * scale[group])


@pytest.mark.parametrize("seed", range(5))
def test_beliefs_are_fitted_group_by_group(seed):
    rng = np.random.default_rng(seed)
    group = np.sort(rng.integers(0, 9, 60))
    values = pa.chunked_array([pa.array(rng.choice(list("abcdef"), 60).tolist())])
    offers = histograms(group, 9, values)
    seen = GroupedRecords(pa.table({"town": ["rome"] * 60}), group, offers)
    records = np.flatnonzero(rng.random(60) < 0.8)
    belief = rng.random((len(records), len(offers.values)))
    wanted = by_all_values(belief, group[records], seen.counts(np.arange(9)))
    assert seen.posterior(belief, records) == pytest.approx(wanted)
    assert seen.posterior(belief[:0], records[:0]).shape == (0, belief.shape[1])
