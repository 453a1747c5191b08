"""Worlds, releases, queries and bounds for `bench.read`."""
