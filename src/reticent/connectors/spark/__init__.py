"""Anonymize tables and streams on Spark, with the guarantees of one machine. Needs the extra `spark`."""

from reticent.connectors.spark.rows import SparkRelease
from reticent.connectors.spark.streams import Stream, lines_to
from reticent.connectors.spark.tables import anonymize, release, verify

__all__ = ["SparkRelease", "Stream", "anonymize", "lines_to", "release", "verify"]
