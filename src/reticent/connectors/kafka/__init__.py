"""Kafka: a stream from topic to topic, each partition a shard. Needs the extra `kafka`."""

from reticent.connectors.kafka.address import Address
from reticent.connectors.kafka.run import Summary, run_kafka
from reticent.connectors.kafka.worker import Settings, Worker

__all__ = ["Address", "Settings", "Summary", "Worker", "run_kafka"]
