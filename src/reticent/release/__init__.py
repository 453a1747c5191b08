"""What leaves the house: data and its guarantee as one value, and the memory of what was seen."""

from reticent.release.ledger import Ledger, LedgerEntry
from reticent.release.release import Counts, Guarantee, Release

__all__ = ["Counts", "Guarantee", "Ledger", "LedgerEntry", "Release"]
