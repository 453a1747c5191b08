"""Turns single bits of a store and says what came of it. A process of its own: it forks, and must have no threads.

python flip_harness.py FOLDER SCENE killed|closed FLIPS SEED [believing]
"""

import json
import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from store_scenes import SCENES, closed, copied, killed, outcome

from reticent.store import integrity


def flip(folder, rng):
    """Turns one bit of what is written: most of a file is room that was never used, or was erased."""
    files = {path: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".lock"}
    written = [(path, at) for path, data in files.items() for at in np.flatnonzero(np.frombuffer(data, np.uint8))]
    path, at = rng.choice(written)
    data = bytearray(files[path])
    data[at] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return f"{path.name}+{at}"


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
        integrity.Seal.open_row = lambda _, __, row: row
    ways = {"killed": killed, "closed": closed}
    json.dump(flipped(SCENES[name], Path(place), int(flips), random.Random(int(seed)), ways[left]), sys.stdout)
