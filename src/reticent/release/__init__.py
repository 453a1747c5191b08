"""What leaves the house: data and its guarantee as one value, and the memory of what was seen."""

from reticent.release.release import Counts, Guarantee, Ledger, LedgerEntry, Release

__all__ = ["Counts", "Guarantee", "Ledger", "LedgerEntry", "Release"]
