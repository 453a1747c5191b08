"""Databases: a query of PostgreSQL, SQLite, DuckDB or MySQL as a table, and releases into tables of the first two.

A source is a URL, `postgresql://host/database`, `sqlite:///file.db`, `duckdb:///file.db` or `mysql://host/database`. The query stands in the policy (`sql:`), or in the
URL as `?query=SELECT ...` or `?table=name`. Reading happens in a read-only session.
"""
