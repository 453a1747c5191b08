"""Addresses of topics: `kafka://broker:9092/topic?security.protocol=SSL`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from reticent.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, repr=False)
class Address:
    """Brokers, a topic, and settings of librdkafka.

    Example:
        >>> Address.parse("kafka://one:9092,two:9092/admissions")
        kafka://one:9092,two:9092/admissions
    """

    brokers: str
    topic: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, url: str) -> Address:
        """Reads an address; several brokers are separated by commas."""
        parts = urlsplit(url)
        topic = parts.path.strip("/")
        if parts.scheme != "kafka" or not parts.netloc or not topic or "/" in topic:
            raise PolicyError("This is not the address of a topic.", hint="Write kafka://broker:9092/topic.")
        return cls(parts.netloc, topic, dict(parse_qsl(parts.query)))

    @property
    def client(self) -> dict[str, Any]:
        """Settings of a client.

        A broker that comes back is tried every second. Handles of brokers that went away are kept: giving them up makes
        the client forget who coordinates a group; whoever starts afresh takes the addresses given here anyway.
        """
        steady = {"reconnect.backoff.max.ms": 1000, "metadata.recovery.strategy": "none"}
        return {"bootstrap.servers": self.brokers, **steady, **self.settings}

    def __repr__(self) -> str:
        return f"kafka://{self.brokers}/{self.topic}"  # settings may hold a password
