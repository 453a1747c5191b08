"""Engines of the kind evolving; one algorithm per file."""
