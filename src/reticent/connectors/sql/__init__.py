"""Databases: a query of PostgreSQL, SQLite, DuckDB or MySQL as a table, and releases into tables of the first two.

A source is a URL, `postgresql://host/database`, `sqlite:///file.db`, `duckdb:///file.db` or `mysql://host/database`. The query stands in the policy (`sql:`), or in the
URL as `?query=SELECT ...` or `?table=name`. Reading happens in a read-only session.
"""

from reticent.connectors.sql.read import NoRowsError, read_sql, read_sql_batches
from reticent.connectors.sql.url import SqlSource, is_sql, parse
from reticent.connectors.sql.write import write_release

__all__ = ["NoRowsError", "SqlSource", "is_sql", "parse", "read_sql", "read_sql_batches", "write_release"]
