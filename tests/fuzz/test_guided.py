"""Fuzzing led by coverage, for a bounded number of inputs, where atheris can be installed."""

import importlib.util
import resource
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "guided.py"
SEEDS = {
    "policy": b"version: 1\ncolumns: {age: {role: quasi, hierarchy: {intervals: [5, 10]}}, ill: sensitive}\nprivacy: {k: 5, l: 2}\n",
    "files": b'age;sex\n24;"f"\n30;m\n',
    "lines": b'{"patient_id": "p1", "sex": "f", "diagnosis": "J45"}\n',
    "core": bytes(range(64)),
}


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris is not installed: pip install --group fuzz"
)
@pytest.mark.parametrize("target", SEEDS)
def test_no_input_of_many_breaks_it(target, tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "seed").write_bytes(SEEDS[target])
    # A process begins with the peak of memory of the one that started it, here a test worker; what is bounded is the rest.
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    limit = f"-rss_limit_mb={inherited + 2048}"
    bounds = ["1500", limit, "-max_len=400", "-seed=1", "-timeout=60", "-verbosity=0", f"-artifact_prefix={tmp_path}/"]
    command = [sys.executable, str(SCRIPT), target, *bounds, str(tmp_path / "corpus")]
    try:
        done = _run(command, tmp_path)
    except subprocess.TimeoutExpired:
        # The fuzzer itself can stand still. With a fixed seed a standstill of ours comes back, and then fails.
        done = _run(command, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def _run(command, folder):
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=120)
