"""Several tables of the same persons, released together: rows, classes of persons, what is published of each."""

from reticent.engine.linked.release import METHOD, Linked, release_tables

__all__ = ["METHOD", "Linked", "release_tables"]
