"""Topic addresses: `kafka://broker:9092/topic?security.protocol=SSL`.

Every user of a machine can see command lines, so a secret does not belong there: `sasl.password=env:NAME` reads it from
the environment, `sasl.password=file:PATH` from a file. `config=PATH` reads all settings from a file of `name=value`
lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from reticent.errors import PolicyError

_SECRET = re.compile(r"password|secret|\.pem$|credentials", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Address:
    """Brokers, a topic, and librdkafka settings.

    Example:
        >>> Address.parse("kafka://one:9092,two:9092/admissions")
        kafka://one:9092,two:9092/admissions
    """

    brokers: str
    topic: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse an address; brokers are separated by commas."""
        parts = urlsplit(url)
        topic = parts.path.strip("/")
        if parts.scheme != "kafka" or not parts.netloc or not topic or "/" in topic:
            raise PolicyError("The Kafka address is malformed.", hint="Write it as kafka://broker:9092/topic.")
        return cls(parts.netloc, topic, dict(_settings(parse_qsl(parts.query))))

    @property
    def client(self) -> dict[str, Any]:
        """Return the librdkafka settings of a client.

        The client retries an unreachable broker every second. It keeps handles of lost brokers: without them, it would
        forget the coordinator of a group. A new client starts from the addresses given here anyway.
        """
        recovery = {"reconnect.backoff.max.ms": 1000, "metadata.recovery.strategy": "none"}
        return {"bootstrap.servers": self.brokers, **recovery, **self.settings}

    def __repr__(self) -> str:
        return f"kafka://{self.brokers}/{self.topic}"  # settings may contain a password


def _settings(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the settings with their secrets; refuse a secret in the address itself."""
    for name, value in pairs:
        if name == "config":
            yield from _lines(value)
        elif value.startswith("env:"):
            yield name, _variable(value.removeprefix("env:"))
        elif value.startswith("file:"):
            yield name, _read(value.removeprefix("file:")).strip()
        elif _SECRET.search(name):
            raise PolicyError(
                f"'{name}' is in the address, where every user of the machine can read it.",
                hint=f"Write {name}=env:VARIABLE, {name}=file:PATH, or config=PATH with all settings.",
            )
        else:
            yield name, value


def _lines(path: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(_read(path).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise PolicyError(f"{path}, line {number}: not a setting.", hint="Write name=value.")
        yield name.strip(), value.strip()


def _variable(name: str) -> str:
    if name not in os.environ:
        raise PolicyError(
            f"The environment variable {name} is not set.", hint="Set it, or read the secret from a file."
        )
    return os.environ[name]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise PolicyError(f"{path} cannot be read.", hint="Check the path and the permissions.") from None
