"""Engines for the same persons published again; one algorithm per file."""
