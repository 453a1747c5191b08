"""Tables that are counted where they lie, on Spark or in DuckDB, and thought about here."""
