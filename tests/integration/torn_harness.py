"""Cuts the power in the middle of a write: what was synced is there, of what was being written any beginning, perhaps with rubbish.

A process of its own: it forks, and must have no threads.

    python torn_harness.py FOLDER CUTS SEED
"""

import json
import random
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "twins"))
from store_scenes import StreamScene, copied, killed, outcome

LOG = "store.db-wal"


def steps(scene, folder):
    """The store's folder after each commit: what a disk that keeps its promises holds at least."""
    taken = []

    def keep():
        taken.append(folder / f"step_{len(taken)}")
        shutil.copytree(folder / "work", taken[-1])
        (taken[-1] / "store.db-shm").unlink(missing_ok=True)

    scene.after = keep
    killed(scene, folder)
    return sorted(folder.glob("step_*"))


def torn(scene, folder, cuts, rng):
    """How many cuts left exactly the last commit, and the outcomes of those that did not."""
    kept = steps(scene, folder)
    expected = [outcome(scene, copied(step, folder / "copy")) for step in kept]
    assert all(said.startswith("same") for said in expected), expected
    assert len(set(expected)) == len(expected)
    fine, bad = 0, []
    for _ in range(cuts):
        at = rng.randrange(len(kept) - 1)
        before, after = ((step / LOG).read_bytes() for step in kept[at : at + 2])
        assert after.startswith(before)  # the log only grew
        size = rng.randrange(len(before), len(after))
        rubbish = rng.choice([b"", bytes(len(after) - size), rng.randbytes(len(after) - size)])
        place = copied(kept[at], folder / "copy")
        (place / LOG).write_bytes(after[:size] + rubbish)
        if outcome(scene, place) == expected[at]:
            fine += 1
        else:
            bad.append((at, size))
    return fine, bad


if __name__ == "__main__":
    place, cuts, seed = sys.argv[1:]
    json.dump(torn(StreamScene(), Path(place), int(cuts), random.Random(int(seed))), sys.stdout)
