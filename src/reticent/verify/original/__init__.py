"""Comparison of a release with its input: which record comes from which row, and claims about persons."""
