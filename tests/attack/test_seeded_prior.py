"""Noise from a seed hides nothing from anyone who guesses the seed: a release with such a prior says that it is fit for tests only."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pyarrow.csv
import pytest

from reticent.cli import app

ILLS = [f"v{i}" for i in range(6)]
POLICY = """
version: 1
person: pid
columns: {pid: identifier, line: plain, ill: sensitive}
privacy: {l: 2}
prior: {file: prior.csv}
table: {method: veil}
"""


def run(*words):
    app([str(word) for word in words], standalone_mode=False)


def prior(folder, values, *seed):
    """The prior of these persons, and the bytes of it."""
    folder.mkdir()
    (folder / "policy.yaml").write_text(POLICY)
    columns = {"pid": [f"p{i}" for i in range(len(values))], "line": list(range(len(values))), "ill": values}
    pyarrow.csv.write_csv(pa.table(columns), folder / "now.csv")
    run("prior", folder / "now.csv", "-p", folder / "policy.yaml", "-o", folder / "prior.csv", "--released", *seed)
    return (folder / "prior.csv").read_bytes()


@pytest.mark.parametrize(("seed", "flagged"), [((), False), (("--seed", 1), True)])
def test_a_release_says_that_its_prior_was_seeded(tmp_path, seed, flagged):
    draw = random.Random(1)
    values = [draw.choice(ILLS) for _ in range(600)]
    seen = prior(tmp_path / "data", values, *seed)
    folder = tmp_path / "data"
    run("anonymize", folder / "now.csv", "-p", folder / "policy.yaml", "-o", folder / "out", "--store", folder / "a.db")
    assert json.loads((folder / "out" / "release.json").read_text())["seeded"] is flagged
    run("verify", folder / "out", "-p", folder / "policy.yaml", "--original", folder / "now.csv")
    # An attacker who knows all other values tries every value of the last person.
    guesses = [ill for ill in ILLS if prior(tmp_path / ill, [*values[:-1], ill], "--seed", 1) == seen]
    assert guesses == ([values[-1]] if flagged else [])
