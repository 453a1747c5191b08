"""Tools for the recipient: estimates with intervals from a release; they need only the published files."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.read.answer import Answer
    from reticent.read.draws import Pooled, pool
    from reticent.read.received import Received

__all__ = ["Answer", "Pooled", "Received", "pool"]
_HOME = {"Answer": "answer", "Pooled": "draws", "Received": "received", "pool": "draws"}


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name in _HOME:
        return getattr(import_module(f"reticent.read.{_HOME[name]}"), name)
    raise AttributeError(f"module 'reticent.read' has no attribute {name!r}")


class _Callable(ModuleType):
    """Makes the package callable: `reticent.read(...)` opens a release."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return import_module("reticent.read.received").read(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
