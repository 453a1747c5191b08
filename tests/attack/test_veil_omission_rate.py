"""Averaging: anyone who gets the same values again and again must not average the noise out of the omission rates in `veil.json`."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reticent import EvolvingTable, Series, anonymize
from reticent.policy import Policy

VALUES = [f"v{v:02d}" for v in range(20)]
N, LOST, RUNS = 200, 7, 24


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "prior.csv").write_text("value,count\n" + "".join(f"{value},5\n" for value in VALUES))
    columns = {"id": "identifier", "line": "plain", "ill": "sensitive"}
    rules = {"version": 1, "person": "id", "columns": columns, "privacy": {"l": 4}, "prior": {"file": "prior.csv"}}
    (tmp_path / "policy.json").write_text(json.dumps(rules | {"table": {"method": "veil"}}))
    return Policy.load(tmp_path / "policy.json")


def people(lost: int = LOST, run: int = 0) -> pa.Table:
    """The same persons with the same values, their records in another order each time."""
    table = pa.table(
        {
            "id": [f"p{i}" for i in range(N)],
            "line": list(range(N)),
            "ill": ["new" if i < lost else VALUES[i * 7 % 20] for i in range(N)],
        }
    )
    return table.take(pa.array(np.random.default_rng(run).permutation(N)))


def omitted_count(release) -> float:
    (share,) = release.metadata["veil"]["omission_rate"]
    return round(share * N, 6)


def test_tables_of_the_same_values_state_one_omission_rate(policy, tmp_path):
    shares = [omitted_count(anonymize(people(run=run), policy, store=tmp_path / "h.db")) for run in range(RUNS)]
    assert len(set(shares)) == 1, f"their mean {np.mean(shares):.2f} discloses the {LOST}"


def test_publications_of_an_unchanged_table_state_one_omission_rate(policy, tmp_path):
    table = EvolvingTable(tmp_path / "h.db", policy)
    table.insert(people())
    assert len({omitted_count(table.publish()) for _ in range(RUNS)}) == 1


def test_releases_of_an_unchanged_series_state_one_omission_rate(policy, tmp_path):
    assert len({omitted_count(Series(tmp_path / "h.db", policy).publish(people(run=run))) for run in range(6)}) == 1


def test_other_values_and_another_store_have_noise_of_their_own(policy, tmp_path):
    """Else the difference of two releases would be exact; and nobody without the key may foresee it."""
    errors = [
        omitted_count(anonymize(people(lost), policy, store=tmp_path / f"{lost}.db")) - lost for lost in range(5, 17)
    ]
    assert len(set(errors)) > 2
    same = [
        omitted_count(anonymize(people(lost), policy, store=tmp_path / "one.db", allow_republication=True)) - lost
        for lost in range(5, 17)
    ]
    assert len(set(same)) > 2


def test_noise_in_whole_steps_leaves_no_part_of_a_person(policy, tmp_path):
    """One of three records of a person omits its value: a fraction of a third disclosed this, whatever the noise."""
    rules = policy.to_dict() | {"person": {"column": "id", "events": "visit"}}
    rules["columns"] |= {"visit": "identifier"}
    rules = Policy.from_dict(rules, base=policy.base)
    table = people().append_column("visit", pa.array([1] * N))
    visits = pa.table({"id": ["p0"] * 2, "line": [0, 0], "ill": ["new", VALUES[0]], "visit": [2, 3]})
    first = {"id": "p0", "line": 0, "ill": VALUES[0], "visit": 1}
    others = table.filter(pc.not_equal(table["id"], "p0"))
    table = pa.concat_tables([others, pa.table({name: [cell] for name, cell in first.items()}), visits])
    numbers = [omitted_count(anonymize(table, rules, store=tmp_path / f"{run}.db")) for run in range(RUNS)]
    assert max(abs(number - round(number)) for number in numbers) < 0.001
    assert abs(np.mean(numbers) - LOST) < 4
