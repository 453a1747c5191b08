"""Persons over several visits: what an attacker who knows the true kernel learns from published sets, and what is quoted of it."""

import json

import numpy as np
import pytest
from bench import kernels_of_persons as attack

from reticent import EvolvingTable, Policy, Stream
from reticent.errors import PolicyError


@pytest.fixture(scope="module")
def figures():
    return attack.figures(None, quick=True)


def test_an_attacker_with_the_true_kernel_stays_below_one_and_a_half(figures):
    later = [figures["times_one_in_l"][events] for events in (2, 3, 4, 5)]
    assert np.mean(later) < 1.5
    assert figures["omission_rate"] < 0.02


def test_fresh_veils_for_each_value_do_not_hold(figures):
    assert figures["fresh_veils"][2] > 2.1


def test_the_quoted_figure_is_what_the_attack_finds(figures):
    for events, (right, error) in figures["quoted"].items():
        both = np.hypot(error, figures["standard_error"])
        assert abs(right - figures["times_one_in_l"][events]) < 3 * both, events


def test_a_record_that_is_delivered_again_is_a_visit_that_stayed(tmp_path):
    """A known limit: the true value stays for certain while false candidates move, and the candidates in both sets disclose it."""
    values = [f"v{v:02d}" for v in range(20)]
    (tmp_path / "prior.csv").write_text("value,count\n" + "".join(f"{value},5\n" for value in values))
    (tmp_path / "kernel.csv").write_text("value,stay,within\n" + "".join(f"{value},.5,0\n" for value in values))
    columns = {"id": "identifier", "sex": "quasi", "ill": "sensitive"}
    prior = {"file": "prior.csv", "kernel": {"file": "kernel.csv"}}
    rules = {"version": 1, "person": "id", "columns": columns, "privacy": {"l": 4}, "prior": prior}
    true_values = np.random.default_rng(3).choice(values, 500).tolist()
    lines = "".join(
        json.dumps({"id": i, "sex": "f", "ill": value}) + "\n" for i, value in enumerate(true_values)
    ).encode()
    with Stream(Policy.from_dict(rules, base=tmp_path), store=tmp_path / "store.db") as stream:
        once, again = ([json.loads(line)["candidates"] for line in stream.push(lines).splitlines()] for _ in range(2))
    common = [set(a) & set(b) for a, b in zip(once, again, strict=True)]
    assert all(value in both for value, both in zip(true_values, common, strict=True))
    assert 0.38 < np.mean([1 / len(both) for both in common]) < 0.55


@pytest.mark.parametrize(
    "section",
    [{"stream": {"method": method}} for method in ("veil", "delay-free", "castle")]
    + [{"evolving": {"method": method}} for method in ("indexed", "enc", "encc", "eac", "red")],
    ids=lambda section: "-".join(next(iter(section.values())).values()),
)
@pytest.mark.parametrize("records", ["first", "last"])
def test_who_is_to_be_released_once_is_not_released_again_and_again(tmp_path, section, records):
    """Methods that release every record refuse the setting; a stream passed over it and released all four visits."""
    (tmp_path / "prior.csv").write_text("value,count\na,5\nb,5\nc,5\n")
    columns = {"id": "identifier", "sex": "quasi", "ill": "sensitive"}
    rules = {"version": 1, "person": {"column": "id", "records": records}, "columns": columns, "privacy": {"l": 2}}
    policy = Policy.from_dict(rules | {"prior": {"file": "prior.csv"}} | section, base=tmp_path)
    with pytest.raises(PolicyError, match=r"person\.records"):
        (Stream if "stream" in section else EvolvingTable)(policy=policy, store=tmp_path / "store.db")
