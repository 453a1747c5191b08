"""Reticent: releases health data that keeps changing, without telling who has what."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.audit import verify
    from reticent.engine import publisher
    from reticent.engine.base import Publisher
    from reticent.engine.rng import Rng
    from reticent.errors import ReticentError
    from reticent.policy import Policy
    from reticent.release import Release
    from reticent.tables import anonymize

_HOME = {
    "Policy": "reticent.policy",
    "Publisher": "reticent.engine.base",
    "Release": "reticent.release",
    "ReticentError": "reticent.errors",
    "Rng": "reticent.engine.rng",
    "anonymize": "reticent.tables",
    "publisher": "reticent.engine",
    "verify": "reticent.audit",
}

__all__ = ["Policy", "Publisher", "Release", "ReticentError", "Rng", "anonymize", "publisher", "verify"]


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first used, so that the command line answers at once."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'reticent' has no attribute {name!r}")
