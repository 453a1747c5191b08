"""One bit of a store turns: what comes out is the same, or a refusal of ours; never something else, never a crash.

`RETICENT_FLIPS` says how many bits; `make storms` asks for a thousand.
"""

import os
import random

import pytest
from store_scenes import SCENES, closed, copied, killed, outcome, people

from reticent.errors import StateError
from reticent.store import Store, integrity

FLIPS = int(os.environ.get("RETICENT_FLIPS", "100"))


def flip(folder, rng):
    """Turns one bit of the store's files, all bits alike."""
    files = sorted(path for path in folder.iterdir() if path.suffix != ".lock" and path.stat().st_size)
    at = rng.randrange(sum(path.stat().st_size for path in files) * 8)
    for path in files:
        bits = path.stat().st_size * 8
        if at < bits:
            data = bytearray(path.read_bytes())
            data[at // 8] ^= 1 << at % 8
            path.write_bytes(data)
            return f"{path.name}+{at}"
        at -= bits
    raise AssertionError


def flipped(scene, folder, flips, rng, left=killed):
    """How often the outcome was the same, refused, different, a crash; and what the bad ones were."""
    before = left(scene, folder)
    expected = outcome(scene, copied(before, folder / "copy"))
    assert expected.startswith("same"), expected
    told = {"same": 0, "refused": 0}
    bad = []
    for _ in range(flips):
        place = copied(before, folder / "copy")
        where = flip(place, rng)
        seen = outcome(scene, place)
        word = seen.partition(" ")[0]
        if word not in told or (word == "same" and seen != expected):
            bad.append((where, seen))
        else:
            told[word] += 1
    return told, bad


@pytest.mark.slow
@pytest.mark.parametrize("left", [killed, closed])
@pytest.mark.parametrize("name", SCENES)
def test_a_flipped_bit_changes_nothing_in_silence(name, left, tmp_path):
    told, bad = flipped(SCENES[name], tmp_path, -(-FLIPS // (2 * len(SCENES))), random.Random(19), left)
    print(name, left.__name__, told)  # noqa: T201
    assert not bad
    assert told["refused"] > 0


@pytest.mark.slow
def test_without_digests_flips_go_unnoticed(tmp_path, monkeypatch):
    """The planted bug: rows are believed as they are."""
    monkeypatch.setattr(integrity.Seal, "check", lambda *_: None)
    _, bad = flipped(SCENES["stream"], tmp_path, 60, random.Random(19), closed)
    assert bad


def test_an_empty_file_is_damage_and_not_a_new_store(tmp_path):
    (tmp_path / "store.db").touch()
    with pytest.raises(StateError, match="empty") as caught:
        Store.open(tmp_path / "store.db")
    assert "store restore" in caught.value.hint


def test_the_same_person_is_the_same_in_every_batch():
    assert people(5, 3).slice(1, 1).to_pylist() == people(6, 20).slice(0, 1).to_pylist()
