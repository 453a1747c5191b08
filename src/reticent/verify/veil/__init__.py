"""Releases under the veil: their judges, one file per question."""
