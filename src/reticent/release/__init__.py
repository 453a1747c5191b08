"""Releases: data and its guarantee as one value, and the ledger of publications."""

from reticent.release.ledger import Ledger, LedgerEntry, person_hashes
from reticent.release.release import Counts, Guarantee, Kind, Release, Shape

__all__ = ["Counts", "Guarantee", "Kind", "Ledger", "LedgerEntry", "Release", "Shape", "person_hashes"]
