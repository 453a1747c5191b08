"""The kernel that `reticent prior` and `init` write, used as a user would: a stream of returning persons under it, verified and queried."""

import json
from collections import Counter

import pyarrow.csv as pc
import pytest
import yaml
from click.testing import CliRunner

from reticent.cli import app
from reticent.datasets.files import write_feed
from reticent.engine.rng import Rng
from reticent.policy import Policy
from reticent.publication.stream import StreamPublication


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("kernel")
    write_feed(place / "past.csv", 8_000, seed=1)
    policy = yaml.safe_load((place / "past.policy.yaml").read_text())
    policy |= {"privacy": {"l": 5}, "prior": {"file": "mine.csv", "kernel": {"file": "mine.kernel.csv"}}}
    (place / "policy.yaml").write_text(yaml.safe_dump(policy))
    run("prior", place / "past.csv", "-p", place / "policy.yaml", "-o", place / "mine.csv", "--by", "sex", "--seed", 1)
    return place


@pytest.mark.parametrize("link", [True, False])
def test_a_stream_moves_along_the_kernel_that_prior_has_made(place, link):
    assert (place / "mine.kernel.csv").read_text().startswith("value,stay,within\n")
    write_feed(place / f"now{link}.csv", 3_000, seed=2)
    policy = yaml.safe_load((place / "policy.yaml").read_text())
    policy["prior"]["link"] = link
    rules = place / f"policy{link}.yaml"
    rules.write_text(yaml.safe_dump(policy))
    out = place / f"out{link}.ndjson"
    run("stream", place / f"now{link}.csv", "-p", rules, "--store", place / f"{link}.db", "--to", out)
    run("verify", out, "-p", rules, "--original", place / f"now{link}.csv")
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    events = Counter(line["event"] for line in lines if line["type"] == "record")
    assert events[1] > 100 < events.total()
    run("ask", out, "--value", "influenza", "--by", "sex")


def test_records_one_by_one_move_as_in_a_batch(place):
    """Small batches are verified record by record, large ones at once: both under the kernel of few numbers."""
    write_feed(place / "some.csv", 400, seed=3)
    table, policy = pc.read_csv(place / "some.csv"), Policy.load(place / "policy.yaml")
    whole, parts = (StreamPublication(policy, rng=Rng.from_seed(1)) for _ in range(2))
    lines = whole.take(whole.reader.table(table)).lines
    ones = b"".join(parts.take(parts.reader.table(table.slice(at, 1))).lines for at in range(table.num_rows))
    assert lines == ones
    assert b'"event":2' in lines
