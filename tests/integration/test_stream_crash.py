"""The runner killed at any instruction: every input row is released exactly once, among one set of candidates."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from reticent.connectors.stream import Stream
from reticent.datasets import feed
from reticent.datasets.writers import csv_text
from reticent.policy import Policy
from reticent.store import Store
from reticent.verify import verify

HARNESS = Path(__file__).with_name("crash_harness.py")
ROWS = 20_000
KILLS = int(os.environ.get("RETICENT_STREAM_KILLS", "10"))
"""`make stress` kills 200 times."""
POLICY = """
version: 1
person: patient_id
columns:
  admitted: plain
  patient_id: identifier
  household: identifier
  age: {role: quasi, level: 1, hierarchy: {intervals: [[5, 15, 30, 45, 60, 75, 85]]}}
  sex: quasi
  region: quasi
  postcode: {role: quasi, hierarchy: {prefix: 5}}
  admission_route: quasi
  diagnosis: sensitive
privacy: {l: 10}
prior: {file: prior.csv, by: [sex, age], kernel: {file: kernel.csv}}
stream: {method: veil}
"""


def prepare(folder, rows):
    """A feed with some lines that cannot be read, and the numbers of those lines."""
    (folder / "prior.csv").write_text(csv_text(feed.strata()))
    (folder / "kernel.csv").write_text(csv_text(feed.kernel()))
    (folder / "policy.yaml").write_text(POLICY)
    table = feed.generate(rows, seed=1)
    columns = [table.column(name).cast("string").to_pylist() for name in table.column_names]
    records = [",".join(cells) for cells in zip(*columns, strict=True)]
    bad = list(range(100, rows, 997))
    for number in bad:
        records[number] = "too,few"
    (folder / "feed.csv").write_text(",".join(table.column_names) + "\n" + "\n".join(records) + "\n")
    return bad


def crash(folder, kills, seed, *bug):
    done = subprocess.run(
        [sys.executable, str(HARNESS), str(folder), str(kills), str(seed), *bug], capture_output=True, check=False
    )
    return done.returncode, done.stdout.decode().strip(), done.stderr.decode()


def straight(folder, policy):
    """The same stream without a crash, read in other pieces."""
    with Stream(policy, store=folder / "straight.db", seed=7) as stream:
        stream.run(str(folder / "feed.csv"), str(folder / "straight.ndjson"))
    return (folder / "straight.ndjson").read_bytes()


@pytest.mark.timeout(3600)
def test_kills_lose_and_double_nothing(tmp_path):
    bad = prepare(tmp_path, ROWS)
    code, told, said = crash(tmp_path, KILLS, 11)
    assert code == 0, said
    killed, moved, rounds = map(int, told.split())
    assert killed >= KILLS
    assert moved >= KILLS // 4, f"only {moved} of {killed} kills hit a runner that was releasing"
    policy = Policy.load(tmp_path / "policy.yaml")
    expected = straight(tmp_path, policy)
    for number in range(rounds):
        place = tmp_path / f"round_{number}"
        assert (place / "out.ndjson").read_bytes() == expected
        with Store.open(place / "store.db") as store:
            assert [int(letter.position) for letter in store.dead_letters("stream")] == bad
            assert not list(store.iter_undelivered_batches("stream"))
    lines = [orjson.loads(line) for line in expected.splitlines()]
    seqs = [line["seq"] for line in lines if line["type"] == "record"]
    assert sorted(seqs) == sorted(set(range(ROWS)) - set(bad))
    assert verify(str(tmp_path / "round_0" / "out.ndjson"), policy).holds


def test_a_runner_that_forgets_its_journal_is_noticed(tmp_path):
    """The planted bug: after a restart the persons are unknown."""
    prepare(tmp_path, 6_000)
    code, told, said = crash(tmp_path, 12, 12, "forgetful")
    assert code == 0, said
    policy = Policy.load(tmp_path / "policy.yaml")
    expected = straight(tmp_path, policy)
    rounds = int(told.split()[2])
    outputs = [(tmp_path / f"round_{number}" / "out.ndjson").read_bytes() for number in range(rounds)]
    assert any(found != expected for found in outputs)
