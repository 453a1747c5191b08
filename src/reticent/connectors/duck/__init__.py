"""DuckDB: tables larger than memory on one machine. Needs the extra `duckdb`."""

from reticent.connectors.duck.tables import anonymize

__all__ = ["anonymize"]
