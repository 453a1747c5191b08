"""Counts from releases that hide who has what: one channel per file, each inverted exactly."""
