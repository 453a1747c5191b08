"""The recipient's half: what a release says, estimated with intervals; needs nothing but what was published."""

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
    """Loads a public name when it is first used."""
    if name in _HOME:
        return getattr(import_module(f"reticent.read.{_HOME[name]}"), name)
    raise AttributeError(f"module 'reticent.read' has no attribute {name!r}")


class _Callable(ModuleType):
    """The package has the name of the verb: `reticent.read(...)` opens a release."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return import_module("reticent.read.received").read(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
