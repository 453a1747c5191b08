"""CASTLE counts persons: many records of one person do not make a class, and one person's values are not diverse."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.rng import Rng
from reticent.engine.stream.castle import Castle
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.publication.stream_publication import StreamPublication
from reticent.verify.original.persons import matching_sizes

POLICY = {
    "version": 1,
    "person": "id",
    "columns": {"id": "identifier", "age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "ill": "sensitive"},
    "privacy": {"k": 3, "l": 3},
    "stream": {"method": "castle", "delta": 60, "beta": 8},
}


def visits(n=600, seed=1):
    """Each person always of one age; half of the records are of few persons with many different values."""
    rng = np.random.default_rng(seed)
    who = np.where(rng.random(n) < 0.5, rng.integers(0, 8, n), rng.integers(8, 200, n))
    ill = np.where(who < 8, rng.choice(list("bcdefgh"), n), "a")
    return pa.table({"id": [f"p{at}" for at in who], "age": who * 7 % 90, "ill": ill})


def test_every_combination_has_k_persons_and_l_of_them_l_values():
    rows, engine = visits(), Castle(Policy.from_dict(POLICY), rng=Rng.from_seed(1))
    assert engine.guarantee.claims == {"k": {"persons": 3}, "l": {"persons": {"distinct": 3}}}
    ids = rows["id"].to_pylist()
    classes, ills, published = defaultdict(list), rows["ill"].to_pylist(), 0
    for release in [*engine.push(rows), *engine.close()]:
        for seq, age in zip(
            release.tables["record"]["seq"].to_pylist(), release.tables["record"]["age"].to_pylist(), strict=True
        ):
            classes[age].append(seq)
            published += 1
    assert published > 300
    for seqs in classes.values():
        person = np.unique([ids[seq] for seq in seqs], return_inverse=True)[1]
        value = np.unique([ills[seq] for seq in seqs], return_inverse=True)[1]
        assert len(np.unique(person)) >= 3
        assert matching_sizes(np.zeros(len(seqs), dtype=np.int64), 1, person, value)[0] >= 3


def test_the_verifier_refutes_an_engine_that_counts_records(monkeypatch):
    """An engine that takes every record for another person."""
    policy = Policy.from_dict(POLICY)
    publication = StreamPublication(policy, rng=Rng.from_seed(1))
    blind = Castle(Policy.from_dict({**POLICY, "person": None}), rng=Rng.from_seed(1))
    monkeypatch.setattr(publication.engine, "place", blind.place)
    texts = pa.table({name: visits()[name].cast(pa.string()) for name in ("id", "age", "ill")})
    with pytest.raises(GuaranteeError, match="persons"):
        publication.take(publication.reader.table(texts))
