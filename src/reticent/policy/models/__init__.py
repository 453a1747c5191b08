"""Privacy models, one per file: frozen values that answer whether a group of records may be published."""

from reticent.policy.models.base import Histograms, Model
from reticent.policy.models.frequency import FrequencyL
from reticent.policy.models.k_anonymity import KAnonymity
from reticent.policy.models.l_diversity import DistinctL, EntropyL, RecursiveL
from reticent.policy.models.t_closeness import EqualT, HierarchicalT, OrderedT

__all__ = [
    "DistinctL",
    "EntropyL",
    "EqualT",
    "FrequencyL",
    "HierarchicalT",
    "Histograms",
    "KAnonymity",
    "Model",
    "OrderedT",
    "RecursiveL",
]
