"""The audit attacks a release and measures its risk."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """Make the package callable: `reticent.audit(...)` calls `reticent.api.audit`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return import_module("reticent.api").audit(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
