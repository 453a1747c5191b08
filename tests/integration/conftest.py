"""Real services for the integration tests; started when a test first asks for one."""

from services import kafka, spark

__all__ = ["kafka", "spark"]
