"""Verifiers of releases under the veil, one module per question."""
