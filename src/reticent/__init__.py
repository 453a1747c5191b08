"""Reticent releases health data that keeps changing, without disclosing who has what."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.api import anonymize, audit, draft, risk, verify
    from reticent.connectors.stream import Stream
    from reticent.errors import (
        ConnectorError,
        DataError,
        GuaranteeError,
        InternalError,
        PolicyError,
        ReticentError,
        StateError,
    )
    from reticent.policy import Policy
    from reticent.read.draws import pool
    from reticent.read.received import Received, read
    from reticent.release import Release
    from reticent.stateful import EvolvingTable, Series

    __version__: str

_NAMES = {
    "reticent.api": "anonymize audit draft risk verify",
    "reticent.connectors.stream": "Stream",
    "reticent.errors": "ConnectorError DataError GuaranteeError InternalError PolicyError ReticentError StateError",
    "reticent.policy": "Policy",
    "reticent.read.draws": "pool",
    "reticent.read.received": "Received read",
    "reticent.release": "Release",
    "reticent.stateful": "EvolvingTable Series",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "ConnectorError",
    "DataError",
    "EvolvingTable",
    "GuaranteeError",
    "InternalError",
    "Policy",
    "PolicyError",
    "Received",
    "Release",
    "ReticentError",
    "Series",
    "StateError",
    "Stream",
    "anonymize",
    "audit",
    "draft",
    "pool",
    "read",
    "risk",
    "verify",
]


if not TYPE_CHECKING:  # otherwise a type checker would accept every name

    def __getattr__(name: str) -> Any:
        """Load a public name on first use, so that the command line starts fast."""
        if name in _HOME:
            return getattr(import_module(_HOME[name]), name)
        if name == "__version__":
            from importlib.metadata import version

            return version("reticent")
        raise AttributeError(f"module 'reticent' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, "__version__"]
