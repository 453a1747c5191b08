"""Engines of the kind table; one algorithm per file."""
