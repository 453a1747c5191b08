"""Real services for the integration tests; started when a test first asks for one."""

import tempfile
from pathlib import Path

import pytest

from services import kafka, spark

__all__ = ["kafka", "spark"]


@pytest.fixture
def memory():
    """A folder in memory where there is one: thousands of small commits need not wait for a disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # noqa: S108
        yield Path(name)
