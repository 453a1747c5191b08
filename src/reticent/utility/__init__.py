"""Utility measures of a release: information loss, class sizes, stream uncertainty and query error."""
