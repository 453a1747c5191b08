"""A stream without a past: the first records wait once, make the prior under a stated epsilon, and are then released with all others."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from reticent.cli import app
from reticent.errors import DataError, PolicyError, StateError

ILLS = ["asthma", "croup", "flu", "gout", "hiv", "mumps", "ulcer"]
POLICY = """\
version: 1
person: id
columns:
  id: identifier
  sex: quasi
  ill: sensitive
privacy: {l: 3}
prior: {file: prior.csv, warmup: 1000, by: [sex], epsilon: 2}
stream: {method: veil}
"""


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def begin(place, source="feed.csv"):
    words = ("stream", place / source if "/" not in source and source != "-" else source, "-p", place / "policy.yaml")
    return run(*words, "--store", place / "feed.db", "--to", place / "out.ndjson")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def feed(place, n, seed=1):
    rng = np.random.default_rng(seed)
    lines = [f"p{i},{rng.choice(['m', 'f'])},{rng.choice(ILLS)}\n" for i in range(n)]
    (place / "feed.csv").write_text("id,sex,ill\n" + "".join(lines))


def records(place):
    lines = [json.loads(line) for line in (place / "out.ndjson").read_text().splitlines()]
    return [line for line in lines if line.get("type") == "record"]


def test_the_first_records_wait_once_and_all_are_released(place):
    feed(place, 999)
    done = begin(place)
    assert isinstance(done.exception, DataError), done.output
    assert "999 of the 1,000 records" in str(done.exception)
    assert [path.name for path in place.iterdir() if path.name not in ("policy.yaml", "feed.csv")] == []
    feed(place, 1500)
    done = begin(place)
    assert done.exit_code == 0, done.output
    assert len(records(place)) == 1500
    before = (place / "prior.csv").read_bytes()
    document = json.loads((place / "out.ndjson.codebook.json").read_bytes())["veil"]
    assert (document["epsilon"], document["figures"]["source"]) == (2, "released")
    assert begin(place).exit_code == 0  # nothing waits a second time
    assert (place / "prior.csv").read_bytes() == before
    assert run("verify", place / "out.ndjson", "-p", place / "policy.yaml").exit_code == 0


def test_the_prior_is_counted_on_the_first_records_only(place):
    feed(place, 1000)
    with (place / "feed.csv").open("a") as file:
        file.writelines(f"q{i},m,rabies\n" for i in range(400))
    begin(place)
    assert "rabies" not in (place / "prior.csv").read_text()


def test_a_prior_that_got_lost_is_not_counted_anew(place):
    feed(place, 1200)
    assert begin(place).exit_code == 0
    (place / "prior.csv").unlink()
    assert isinstance(begin(place).exception, StateError)


@pytest.mark.parametrize("source", ["-", "mllp://127.0.0.1:0"])
def test_what_cannot_be_read_twice_does_not_wait(place, source):
    done = begin(place, source)
    assert isinstance(done.exception, PolicyError), done.output
    assert "--released" in done.exception.hint


def test_a_kernel_that_the_policy_names_is_made_of_the_same_records(place):
    rng = np.random.default_rng(3)
    lines = [f"p{rng.integers(7000)},{rng.choice(['m', 'f'])},{rng.choice(ILLS)}\n" for _ in range(13_000)]
    (place / "feed.csv").write_text("id,sex,ill\n" + "".join(lines))
    text = POLICY.replace("epsilon: 2}", "epsilon: 2, kernel: {file: steps.csv}}").replace("1000", "12000")
    (place / "policy.yaml").write_text(text)
    assert begin(place).exit_code == 0
    assert (place / "steps.csv").read_text().startswith("value,stay,within\n")
    assert {record["event"] for record in records(place)} > {0, 1, 2}
    assert run("verify", place / "out.ndjson", "-p", place / "policy.yaml").exit_code == 0


def test_an_unstated_kernel_is_refused(place):
    feed(place, 1200)
    (place / "policy.yaml").write_text(POLICY.replace("epsilon: 2}", "epsilon: 2, kernel: {file: steps.csv}}"))
    done = begin(place)
    assert isinstance(done.exception, DataError), done.output
    assert "too few later records" in str(done.exception)
    assert not (place / "prior.csv").exists()
