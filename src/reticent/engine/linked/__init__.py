"""Several tables of the same persons, released together: rows, classes of persons, what is published of each."""

from reticent.engine.linked.release import METHOD, LinkedRelease, release_tables

__all__ = ["METHOD", "LinkedRelease", "release_tables"]
