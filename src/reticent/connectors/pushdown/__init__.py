"""Anonymize tables by counts: Spark or DuckDB counts the rows, the search runs here."""
