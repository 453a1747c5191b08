"""The status line of a stream counts the records that a method delays."""

import pyarrow as pa

from reticent.connectors.stream.progress import Progress
from reticent.engine.rng import Rng
from reticent.engine.stream.castle import Castle
from reticent.policy import Policy

RULES = {
    "version": 1,
    "person": "id",
    "columns": {"id": "identifier", "age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "ill": "sensitive"},
    "privacy": {"k": 3},
    "stream": {"method": "castle", "delta": 20},
}


def test_pending_records_of_castle_are_counted(capsys):
    engine = Castle(Policy.from_dict(RULES), rng=Rng.from_seed(1))
    assert not list(engine.push(pa.table({"id": ["a", "b", "c"], "age": [30, 41, 52], "ill": ["x", "y", "z"]})))
    Progress(show=True).tick(lambda: engine.metrics, final=True)
    assert capsys.readouterr().err.endswith(", 3 pending\n")
