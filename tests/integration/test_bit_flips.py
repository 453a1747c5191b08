"""One bit of a store turns, or the power fails: what comes out is the same, or a refusal; never something else, never a crash.

`RETICENT_FLIPS` and `RETICENT_TORN` say how often; `make storms` asks for a thousand of each.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from store_scenes import SCENES, people

from reticent.errors import StateError
from reticent.store import Store

HERE = Path(__file__).parent
TORN = int(os.environ.get("RETICENT_TORN", "40"))
FLIPS = int(os.environ.get("RETICENT_FLIPS", "25"))


@pytest.fixture
def memory():
    """A folder in memory where there is one: thousands of small commits need not wait for a disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # noqa: S108
        yield Path(name)


def harness(name, folder, *words):
    command = [sys.executable, HERE / name, folder, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("left", ["killed", "closed"])
@pytest.mark.parametrize("name", SCENES)
def test_a_flipped_bit_changes_nothing_in_silence(name, left, memory):
    told, bad = harness("flip_harness.py", memory, name, left, str(-(-FLIPS // (2 * len(SCENES)))), "19")
    print(name, left, told)  # noqa: T201
    assert not bad
    assert (
        told["refused"] > 0 or left == "closed"
    )  # of a closed file few bits matter; the planted bug shows that they are hit


@pytest.mark.slow
def test_without_digests_flips_go_unnoticed(memory):
    """The planted bug: rows are believed as they are."""
    _, bad = harness("flip_harness.py", memory, "stream", "closed", "60", "19", "believing")
    assert bad


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_power_that_fails_in_the_middle_of_a_write_loses_nothing(memory):
    """Of what was being written any beginning may be there; going on gives what the last commit would have given."""
    fine, bad = harness("torn_harness.py", memory, str(TORN), "19")
    assert not bad
    assert fine == TORN


def test_an_empty_file_is_damage_and_not_a_new_store(tmp_path):
    (tmp_path / "store.db").touch()
    with pytest.raises(StateError, match="empty") as caught:
        Store.open(tmp_path / "store.db")
    assert "store restore" in caught.value.hint


def test_a_person_is_the_same_in_every_batch():
    assert people(5, 3).slice(1, 1).to_pylist() == people(6, 20).slice(0, 1).to_pylist()
