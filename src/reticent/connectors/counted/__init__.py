"""Tables that are counted where they lie, on Spark or in DuckDB, and thought about here."""

from reticent.connectors.counted.judge import judge
from reticent.connectors.counted.rows import MOST_COMBINATIONS, Recoded, Rows, checked
from reticent.connectors.counted.tables import METHODS, Found, search_counts

__all__ = ["METHODS", "MOST_COMBINATIONS", "Found", "Recoded", "Rows", "checked", "judge", "search_counts"]
