"""Databases: read a query of PostgreSQL, SQLite, DuckDB or MySQL as a table; write releases to PostgreSQL or SQLite.

A source is a URL: `postgresql://host/database`, `sqlite:///file.db`, `duckdb:///file.db` or `mysql://host/database`.
The query is in the policy (`sql:`), or in the URL as `?query=SELECT ...` or `?table=name`. The session is read-only.
"""
