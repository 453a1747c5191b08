"""Turns single bits of a store and says what came of it. A process of its own: it forks, and must have no threads.

python flip_harness.py FOLDER SCENE killed|closed FLIPS SEED [believing]
"""

import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "twins"))
from store_scenes import SCENES, closed, copied, killed, outcome

from reticent.store import integrity


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


if __name__ == "__main__":
    place, name, left, flips, seed, *bug = sys.argv[1:]
    if bug:  # the planted bug: rows are believed as they are
        integrity.Seal.opened = lambda _, __, row: row
    ways = {"killed": killed, "closed": closed}
    json.dump(flipped(SCENES[name], Path(place), int(flips), random.Random(int(seed)), ways[left]), sys.stdout)
