"""The judge: reads releases from the side and shares no code with the engines that made them."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from reticent.audit.verdict import Finding, VerificationResult
from reticent.audit.verify import verify

__all__ = ["Finding", "VerificationResult", "verify"]


class _CallableModule(ModuleType):
    """The package has the name of the verb: `reticent.audit(...)` calls the front door."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return import_module("reticent.api").audit(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
