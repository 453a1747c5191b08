"""The verifier: recomputes the claims of a release from its published bytes and shares no code with the engines."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from reticent.verify.result import Finding, VerificationResult
from reticent.verify.verify import verify

__all__ = ["Finding", "VerificationResult", "verify"]


class _Callable(ModuleType):
    """A module that can be called: `reticent.verify(...)` calls `reticent.api.verify`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return import_module("reticent.api").verify(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
