"""Locks between processes, by the means of this system and by those of Windows, played on them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reticent import disk

PORTABLE = Path(__file__).parent.parent / "portable"
HOLD = """
import sys
from pathlib import Path
from reticent.disk import file_lock
with file_lock(Path(sys.argv[1]), 0, 0):
    print("held", flush=True)
    sys.stdin.read()
print("free", flush=True)
"""
TRY = """
import sys
from pathlib import Path
from reticent.disk import file_lock
try:
    with file_lock(Path(sys.argv[1]), float(sys.argv[2]), 0.001):
        print("held")
except TimeoutError:
    print("taken")
"""


@pytest.fixture(params=["here", "without fcntl"])
def environment(request):
    if request.param == "here":
        return dict(os.environ)
    folders = [str(PORTABLE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(folders)}


@pytest.fixture
def holder(environment, tmp_path):
    command = [sys.executable, "-c", HOLD, tmp_path / "x.lock"]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with process:
        yield process
        process.kill()


def attempt(environment, tmp_path, wait):
    command = [sys.executable, "-c", TRY, tmp_path / "x.lock", str(wait)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_a_lock_is_of_one_process_until_it_lets_go(environment, holder, tmp_path):
    assert attempt(environment, tmp_path, 0) == "taken"
    holder.stdin.close()
    assert holder.stdout.readline() == "free\n"
    assert attempt(environment, tmp_path, 0) == "held"


def test_a_lock_vanishes_with_a_killed_process(environment, holder, tmp_path):
    holder.kill()
    holder.wait()
    assert attempt(environment, tmp_path, 60) == "held"


def test_the_file_of_a_lock_is_its_owners_alone_and_empty(environment, holder, tmp_path):
    about = (tmp_path / "x.lock").stat()
    assert about.st_size == 0
    assert os.name == "nt" or about.st_mode & 0o077 == 0


@pytest.fixture
def scanner(monkeypatch):
    """As on Windows, where somebody else has a new file open for a while."""
    refusals = []
    rename = Path.replace

    def replace(self, target):
        if refusals:
            raise refusals.pop()
        return rename(self, target)

    monkeypatch.setattr(disk, "WINDOWS", True)
    monkeypatch.setattr(disk, "_RETRY_SECONDS", (0.0,) * 3)
    monkeypatch.setattr(Path, "replace", replace)
    return refusals


def test_what_is_open_elsewhere_for_a_moment_is_moved_after_it(scanner, tmp_path):
    (tmp_path / "draft").write_text("new")
    (tmp_path / "target").write_text("old")
    scanner += [PermissionError(13, "sharing violation")] * 3
    disk.move(tmp_path / "draft", tmp_path / "target")
    assert (tmp_path / "target").read_text() == "new"
    assert not (tmp_path / "draft").exists()


def test_what_stays_open_elsewhere_is_not_moved(scanner, tmp_path):
    (tmp_path / "draft").write_text("new")
    scanner += [PermissionError(13, "sharing violation")] * 9
    with pytest.raises(PermissionError):
        disk.move(tmp_path / "draft", tmp_path / "target")
    assert (tmp_path / "draft").exists()


def test_bytes_are_written_and_read_wherever_the_position_is(tmp_path):
    handle = disk.open_private(tmp_path / "x", os.O_RDWR | os.O_CREAT)
    try:
        os.write(handle, b"abcdef")
        os.lseek(handle, 1, os.SEEK_SET)
        disk.write_at(handle, b"XY", 3)
        assert disk.read_at(handle, 4, 2) == b"cXYf"
        assert os.lseek(handle, 0, os.SEEK_CUR) == 1
    finally:
        os.close(handle)
