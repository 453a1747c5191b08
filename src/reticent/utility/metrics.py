"""All measures of one generalized release, per attribute and overall, under the names of the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.arrays import Bools, Int64s
from reticent.encode.dictionary import pack_codes
from reticent.utility.measures import (
    EVEN,
    Balance,
    attribute_entropy,
    attribute_loss,
    average_class_size,
    discernibility,
    discernibility_star,
    geometric_mean,
    information_loss,
    usefulness,
)

if TYPE_CHECKING:
    from reticent.utility.recoding import Recoding


@dataclass(frozen=True)
class Metrics:
    """The information loss of a release; lower is better in every field.

    Attributes:
        loss: see `reticent.utility.measures`. ncp: equations (3) to (5). entropy: bits lost, summed over attributes.
        usefulness: UM, NCP averaged over classes instead of records (Loukides, Shao 2007).
        discernibility: DM. discernibility_star: DM*. average_class_size: records per class.
        precision: mean share of the hierarchy climbed (Sweeney's Prec is 1 minus this).
        height: sum of the levels. Both None when published values are not nodes of a hierarchy.
        attributes: per attribute its own loss, ncp, entropy, precision and height.
    """

    loss: float
    ncp: float
    discernibility: float
    discernibility_star: float
    average_class_size: float
    precision: float | None
    height: float | None
    entropy: float
    usefulness: float = 0.0
    attributes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, float]:
        """Return the overall figures that apply, by name."""
        names = ("loss", "ncp", "discernibility", "average_class_size", "precision", "height", "entropy")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def measure(
    recodings: Mapping[str, Recoding],
    *,
    suppressed: Bools | None = None,
    counts: Int64s | None = None,
    weights: Mapping[str, float] | None = None,
    balance: Balance = EVEN,
) -> Metrics:
    """Measure a generalized release.

    Args:
        recodings: the quasi-identifiers, by name; entries are records or distinct combinations of values.
        suppressed: which entries are suppressed; none by default.
        counts: the number of records per entry; one by default.
        weights: the weight of each attribute in `loss`; equal by default.
        balance: the weights of suppression and generalization in loss, precision, entropy and average class size.
    """
    rows = len(next(iter(recodings.values())).source) if recodings else 0
    skip = np.zeros(rows, dtype=np.bool_) if suppressed is None else np.asarray(suppressed, dtype=np.bool_)
    times = np.ones(rows, dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
    attributes = {name: _attribute(recoding, times, skip, balance) for name, recoding in recodings.items()}
    key = pack_codes([(recoding.node, int(recoding.node.max(initial=0)) + 1) for recoding in recodings.values()])
    (sizes, first), (outliers, _) = _sizes(key[~skip], times[~skip]), _sizes(key[skip], times[skip])
    lost = int(outliers.sum())
    return Metrics(
        loss=geometric_mean(
            [a["loss"] for a in attributes.values()], [weights[n] for n in attributes] if weights else None
        ),
        ncp=information_loss([recoding.ncp for recoding in recodings.values()], times, skip),
        discernibility=discernibility(sizes, lost),
        discernibility_star=discernibility_star(sizes, outliers),
        average_class_size=average_class_size(int(times.sum()), len(sizes), lost, balance),
        precision=_combine(attributes, "precision", np.mean),
        height=_combine(attributes, "height", np.sum),
        entropy=sum(a["entropy"] for a in attributes.values()),
        usefulness=usefulness([recoding.ncp[~skip][first] for recoding in recodings.values()]),
        attributes=attributes,
    )


def _attribute(recoding: Recoding, counts: Int64s, suppressed: Bools, balance: Balance) -> dict[str, float]:
    figures = {
        "loss": attribute_loss(recoding.share, recoding.size, counts, suppressed, balance),
        "ncp": information_loss([recoding.ncp], counts, suppressed),
        "entropy": attribute_entropy(recoding.source, recoding.node, counts, suppressed, balance),
    }
    if recoding.level is None:
        return figures
    rows = max(1, int(counts.sum()))
    steps = recoding.level / max(1, recoding.height)
    climbed = np.where(suppressed, balance.suppressed, balance.general * steps)
    # The height ignores suppression; for local recoding it is the mean level.
    return figures | {
        "precision": float((climbed * counts).sum() / rows),
        "height": float((recoding.level * counts).sum() / rows),
    }


def _sizes(key: Int64s, counts: Int64s) -> tuple[Int64s, Int64s]:
    """Return the number of records and the first entry of every class."""
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return np.bincount(inverse, weights=counts).astype(np.int64), first


def _combine(attributes: Mapping[str, Mapping[str, float]], name: str, how: Any) -> float | None:
    values = [figures[name] for figures in attributes.values() if name in figures]
    return float(how(values)) if values and len(values) == len(attributes) else None
