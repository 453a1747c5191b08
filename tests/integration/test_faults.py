"""The disk fails or is full at any call, a kill falls on it, or the power fails: nothing is lost, doubled, regrouped or half there.

`faults.c` stands before libc: it lets the calls fail, or notes them so that a power cut is played at any of them: what was synced
is there, of every other write all, nothing, a beginning, or any of it; names keep their order. `RETICENT_FAULTS` says how many calls
fail per kind and at how many a kill falls (0: every one), `RETICENT_TORN` how often the power fails; `make stress` asks for every
call and a thousand cuts.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from store_harness import harness

FAULTS = int(os.environ.get("RETICENT_FAULTS", "4"))
TORN = int(os.environ.get("RETICENT_TORN", "12"))
SOURCE = Path(__file__).parents[1] / "reference" / "faults.c"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD"),
]


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.fail("no compiler") if os.environ.get("CI") == "true" else pytest.skip("no compiler")
    place = tmp_path_factory.mktemp("faults") / "faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", place, SOURCE, "-ldl"], check=True)
    return place


@pytest.mark.parametrize("name", ["stream", "evolving", "series", "table"])
def test_whatever_fails_at_whichever_call_harms_nothing(name, memory, faults):
    """An error once, a disk that stays full, a kill, a power cut: the next run ends as if nothing had been."""
    found = harness("fault_harness.py", memory, name, str(FAULTS), str(TORN // 4), "19", preload=faults)
    print(name, {way: told for way, (told, _) in found.items()})  # noqa: T201
    assert not any(bad for _, bad in found.values()), found
    assert found["power"][0]["done"] == TORN // 4
    assert found["errors"][0]["refused"] > 0
    kills = found["kills"][0]
    # A run may end before one of its last calls: threads decide how many there are.
    assert kills["killed"] + kills["done"] == kills["tried"]
    assert kills["killed"] > 0.9 * kills["tried"]


def test_commits_that_do_not_wait_for_the_disk_are_noticed(memory, faults):
    """The planted bug."""
    _, bad = harness("fault_harness.py", memory, "stream", "0", "15", "19", "hasty", preload=faults)["power"]
    assert bad
