"""The durable stream runner: source, publisher, store and sink as one loop that may die at any instruction."""

from reticent.connectors.runner.runner import StreamRunner, Summary

__all__ = ["StreamRunner", "Summary"]
