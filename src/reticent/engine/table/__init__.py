"""Engines of one kind; one algorithm per file."""
