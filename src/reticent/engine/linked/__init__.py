"""Release several tables of the same persons together: their rows, the classes of persons, and the published tables."""

from reticent.engine.linked.release import METHOD, LinkedRelease, release_tables

__all__ = ["METHOD", "LinkedRelease", "release_tables"]
