"""How much a release still tells: information loss, class sizes, stream uncertainty and query error."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.utility.classes import average_class_size, discernibility, discernibility_star
    from reticent.utility.entropy import attribute_entropy
    from reticent.utility.loss import attribute_loss, geometric_mean
    from reticent.utility.metrics import Metrics, measure
    from reticent.utility.ncp import information_loss, interval_loss, node_loss, usefulness
    from reticent.utility.recoding import Recoding
    from reticent.utility.stream import sau, sau_limit, stream_information_loss
    from reticent.utility.workload import relative_error

_HOME = {
    "Metrics": "metrics",
    "Recoding": "recoding",
    "attribute_entropy": "entropy",
    "attribute_loss": "loss",
    "average_class_size": "classes",
    "discernibility": "classes",
    "discernibility_star": "classes",
    "geometric_mean": "loss",
    "information_loss": "ncp",
    "interval_loss": "ncp",
    "measure": "metrics",
    "node_loss": "ncp",
    "relative_error": "workload",
    "sau": "stream",
    "sau_limit": "stream",
    "stream_information_loss": "stream",
    "usefulness": "ncp",
}

__all__ = [
    "Metrics",
    "Recoding",
    "attribute_entropy",
    "attribute_loss",
    "average_class_size",
    "discernibility",
    "discernibility_star",
    "geometric_mean",
    "information_loss",
    "interval_loss",
    "measure",
    "node_loss",
    "relative_error",
    "sau",
    "sau_limit",
    "stream_information_loss",
    "usefulness",
]


if not TYPE_CHECKING:  # a checker knows every name already, and must not take a wrong one for right

    def __getattr__(name: str) -> Any:
        """Loads a name when it is first used: an engine needs one of them, not all."""
        if name in _HOME:
            return getattr(import_module(f"reticent.utility.{_HOME[name]}"), name)
        raise AttributeError(f"module 'reticent.utility' has no attribute {name!r}")
