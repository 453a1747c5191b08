"""One bit of a store turns: what comes out is the same, or a refusal of ours; never something else, never a crash.

`RETICENT_FLIPS` says how many bits; `make storms` asks for a thousand.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from store_scenes import SCENES, people

from reticent.errors import StateError
from reticent.store import Store

HARNESS = Path(__file__).with_name("flip_harness.py")
FLIPS = int(os.environ.get("RETICENT_FLIPS", "100"))


def flipped(folder, *words):
    done = subprocess.run([sys.executable, HARNESS, folder, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("left", ["killed", "closed"])
@pytest.mark.parametrize("name", SCENES)
def test_a_flipped_bit_changes_nothing_in_silence(name, left, tmp_path):
    told, bad = flipped(tmp_path, name, left, str(-(-FLIPS // (2 * len(SCENES)))), "19")
    print(name, left, told)  # noqa: T201
    assert not bad
    assert told["refused"] > 0


@pytest.mark.slow
def test_without_digests_flips_go_unnoticed(tmp_path):
    """The planted bug: rows are believed as they are."""
    _, bad = flipped(tmp_path, "stream", "closed", "60", "19", "believing")
    assert bad


def test_an_empty_file_is_damage_and_not_a_new_store(tmp_path):
    (tmp_path / "store.db").touch()
    with pytest.raises(StateError, match="empty") as caught:
        Store.open(tmp_path / "store.db")
    assert "store restore" in caught.value.hint


def test_a_person_is_the_same_in_every_batch():
    assert people(5, 3).slice(1, 1).to_pylist() == people(6, 20).slice(0, 1).to_pylist()
