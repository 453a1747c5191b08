"""Cases of `bench.compare` for two versions: one file per kind, each with its `MEASURES` and its data.

The files run under both versions, so they use only what both have, and say where names differ.
"""
