"""Linked tables: their verifier, the comparison with their input, and the check of shifted dates."""
