"""Releases: data and its guarantee as one value, and the ledger of publications."""

from reticent.release.ledger import Ledger, LedgerEntry, person_hashes
from reticent.release.release import Guarantee, Kind, RecordCounts, Release, Shape

__all__ = ["Guarantee", "Kind", "Ledger", "LedgerEntry", "RecordCounts", "Release", "Shape", "person_hashes"]
