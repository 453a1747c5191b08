"""The disk fails or is full at any call, or the power at any write: nothing is lost, doubled, regrouped or half there.

`faults.c` stands before libc: it lets the calls fail, or notes them so that a power cut is played at any of them: what was synced
is there, of every other write all, nothing, a beginning, or any of it; names keep their order. `RETICENT_FAULTS` says how many calls
fail per kind (0: every one), `RETICENT_TORN` how often the power fails; `make storms` asks for every call and a thousand cuts.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from store_harness import harness

FAULTS = int(os.environ.get("RETICENT_FAULTS", "6"))
TORN = int(os.environ.get("RETICENT_TORN", "20"))
SOURCE = Path(__file__).parents[1] / "twins" / "faults.c"

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


@pytest.mark.parametrize("name", ["stream", "evolving"])
def test_a_call_that_fails_harms_nothing(name, memory, faults):
    """An error once, or a disk that stays full: the run is refused or done, and the next one ends as if nothing had been."""
    told, bad = harness("fault_harness.py", memory, name, "errors", str(FAULTS), "19", preload=faults)
    print(name, told)  # noqa: T201
    assert not bad
    assert told["refused"] > 0


@pytest.mark.parametrize("name", ["stream", "evolving"])
def test_power_that_fails_at_any_write_harms_nothing(name, memory, faults):
    told, bad = harness("fault_harness.py", memory, name, "power", str(TORN // 2), "19", preload=faults)
    print(name, told)  # noqa: T201
    assert not bad
    assert told["done"] == TORN // 2


def test_commits_that_do_not_wait_for_the_disk_are_noticed(memory, faults):
    """The planted bug."""
    _, bad = harness("fault_harness.py", memory, "stream", "power", "15", "19", "hasty", preload=faults)
    assert bad
