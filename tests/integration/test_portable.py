"""Commands where `fcntl` is missing, as on Windows; and nothing but one module calls what is POSIX by name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import reticent

SOURCE = Path(reticent.__file__).parent
PORTABLE = Path(__file__).parent.parent / "portable"
POSIX = r"\bfcntl\b|os\.(nice|fsync|fdatasync|p(?:read|write)v?|chmod|f?chown|fchmod|lockf|geteuid|getuid|fork|mkfifo|posix_\w+)\b|\.rename\(|\b0o[67]00\b|O_CLOEXEC|O_DIRECTORY"


def reticent_without_fcntl(*words, cwd):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "reticent", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(PORTABLE)},
    )
    assert done.returncode == 0, done.stderr
    return done


def test_what_is_posix_is_called_in_one_module():
    # The files of keys, folders and reports flush what they opened themselves, which every system can.
    flushing = {"engine/keys.py", "release/folder.py", "report/page.py"}
    for file in SOURCE.rglob("*.py"):
        place = file.relative_to(SOURCE).as_posix()
        words = re.findall(POSIX, re.sub(r'""".*?"""|#.*', "", file.read_text(), flags=re.DOTALL))
        if place == "disk.py" or (place in flushing and set(words) <= {"fsync"}):
            continue
        assert not words, place


@pytest.mark.slow
def test_tables_evolving_tables_streams_and_the_verifier_run_without_fcntl(tmp_path):
    def run(*words):
        return reticent_without_fcntl(*words, cwd=tmp_path)

    run("datasets", "hospital", "-n", "400", "--seed", "1", "-o", "h.csv")
    run("anonymize", "h.csv", "-p", "h.policy.yaml", "-o", "out", "--seed", "1")
    run("verify", "out", "-p", "h.policy.yaml")
    run("evolve", "init", "h.db", "-p", "h.policy.yaml", "--seed", "1")
    run("evolve", "insert", "h.db", "h.csv")
    run("evolve", "publish", "h.db", "-o", "first")
    run("verify", "first", "-p", "h.policy.yaml")
    run("keys", "new", "veil.keys")
    run("datasets", "feed", "-n", "300", "--seed", "3", "-o", "feed.ndjson")
    run("stream", "feed.ndjson", "-p", "feed.policy.yaml", "--store", "s.db", "--to", "released.ndjson", "--seed", "1")
    run("verify", "released.ndjson", "-p", "feed.policy.yaml")
    assert not list(tmp_path.glob("*.lock")) or not any(path.stat().st_size for path in tmp_path.glob("*.lock"))
