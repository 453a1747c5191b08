"""Connectors: read input data from files, databases and brokers, and write releases to them."""
