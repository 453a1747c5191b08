"""Which words no record has anymore: counting with every change gives the same as a scan of all records."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.policy import Policy

RULES = {
    "version": 1,
    "person": "who",
    "columns": {"who": "identifier", "town": "quasi", "age": "quasi", "ill": "sensitive"},
    "privacy": {"l": 2},
}


def people(rng, names):
    draw = {"town": (40, "t"), "age": (6, "a"), "ill": (12, "i")}
    cells = {name: [f"{sign}{n}" for n in rng.integers(top, size=len(names))] for name, (top, sign) in draw.items()}
    return pa.table({"who": [str(name) for name in names], **cells})


def looked_through(records, codes):
    live = records.codes[records.rows()]
    return [sorted(set(codes[:, at].tolist()) - set(live[:, at].tolist())) for at in range(codes.shape[1])]


@pytest.mark.parametrize("method", ["indexed", "enc", "red"])
def test_counting_along_finds_what_looking_through_all_records_finds(method):
    rng, policy = np.random.default_rng(5), Policy.from_dict(RULES | {"evolving": {"method": method}})
    engine = publisher(policy, "evolving", method, rng=Rng.from_seed(1))
    engine.insert(people(rng, range(60)))
    alive, fresh, found = list(range(60)), 60, 0
    for _ in range(40):
        gone = rng.choice(alive, size=3, replace=False).tolist()
        change = engine.delete([str(name) for name in gone])
        codes = engine.records.codes[change.removed]
        unused = [own.tolist() for own in engine.records.unused_codes(codes)]
        assert unused == looked_through(engine.records, codes)
        found += sum(map(len, unused))
        alive = [name for name in alive if name not in gone]
        engine.update(people(rng, rng.choice(alive, size=4, replace=False).tolist()))
        engine.insert(people(rng, range(fresh, fresh + 3)))
        alive, fresh = [*alive, *range(fresh, fresh + 3)], fresh + 3
    assert found > 10, "some words were of one record alone"
