"""How much a release still tells: information loss, class sizes, stream uncertainty and query error."""

from reticent.utility.classes import average_class_size, discernibility, discernibility_star
from reticent.utility.entropy import attribute_entropy
from reticent.utility.loss import attribute_loss, geometric_mean
from reticent.utility.metrics import Metrics, measure
from reticent.utility.ncp import information_loss, interval_loss, node_loss, usefulness
from reticent.utility.recoding import Recoding
from reticent.utility.stream import sau, sau_limit, stream_information_loss
from reticent.utility.workload import relative_error

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
