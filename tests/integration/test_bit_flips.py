"""One bit of a store turns: what comes out is the same, or a refusal; never something else, never a crash.

`RETICENT_FLIPS` says how often; `make stress` asks for a thousand.
"""

import os

import pytest
from store_harness import harness
from store_scenes import SCENES, people

from reticent.errors import StateError
from reticent.store import Store

FLIPS = int(os.environ.get("RETICENT_FLIPS", "12"))


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


def test_an_empty_file_is_corrupt_and_not_a_new_store(tmp_path):
    (tmp_path / "store.db").touch()
    with pytest.raises(StateError, match="empty") as caught:
        Store.open(tmp_path / "store.db")
    assert "store restore" in caught.value.hint


def test_a_person_is_the_same_in_every_batch():
    assert people(5, 3).slice(1, 1).to_pylist() == people(6, 20).slice(0, 1).to_pylist()
