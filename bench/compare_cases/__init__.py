"""What `bench.compare` measures under two versions: one file per kind, each with its `MEASURES` and the data they read.

The files run under both versions, so they use only what both have, and say where words differ.
"""
