"""Worlds, releases, questions and bounds for `bench.read`."""
