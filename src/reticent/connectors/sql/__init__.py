"""Databases: read a query of PostgreSQL, SQLite or DuckDB as a table; write releases to PostgreSQL or SQLite.

A source is a URL: `postgresql://host/database`, `sqlite:///file.db` or `duckdb:///file.db`. The query is in the policy (`sql:`), or in the URL as `?query=SELECT ...` or `?table=name`. The session is read-only.
"""
