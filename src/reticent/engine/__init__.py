"""The engines: one package per kind of release, one algorithm per module. `publisher` builds any of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from reticent.engine.rng import Rng
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.spec import unknown_word_message

if TYPE_CHECKING:
    from reticent.engine.base import Publisher

# (kind, method) -> module and class, imported on use, so that a command loads only what it runs.
PUBLISHERS: dict[tuple[str, str], str] = {
    ("table", "veil"): "reticent.engine.table.veil:Veil",
    ("table", "anatomy"): "reticent.engine.table.anatomy:Anatomy",
    ("table", "auto"): "reticent.engine.table.auto:Auto",
    ("table", "optimal"): "reticent.engine.table.optimal:Optimal",
    ("table", "local"): "reticent.engine.table.local:Local",
    ("table", "mondrian"): "reticent.engine.table.mondrian:Mondrian",
    ("table", "supervised"): "reticent.engine.table.supervision:Supervised",
    ("stream", "veil"): "reticent.engine.stream.veil:Veil",
    ("stream", "delay-free"): "reticent.engine.stream.delay_free:DelayFree",
    ("stream", "castle"): "reticent.engine.stream.castle:Castle",
    ("evolving", "veil"): "reticent.engine.evolving.veil:Veil",
    ("evolving", "indexed"): "reticent.engine.evolving.indexed:Indexed",
    ("evolving", "enc"): "reticent.engine.evolving.enc:Enc",
    ("evolving", "encc"): "reticent.engine.evolving.encc:Encc",
    ("evolving", "eac"): "reticent.engine.evolving.eac:Eac",
    ("evolving", "red"): "reticent.engine.evolving.red:Red",
    ("series", "veil"): "reticent.engine.series.veil:Veil",
    ("series", "m-distinct"): "reticent.engine.series.m_distinct:MDistinct",
    ("series", "m-distinct*"): "reticent.engine.series.m_distinct_star:MDistinctStar",
    ("series", "m-invariance"): "reticent.engine.series.m_invariance:MInvariance",
    ("series", "l-diversity"): "reticent.engine.series.l_diversity:LDiversity",
}


def publisher_class(kind: str, method: str) -> type[Publisher]:
    """Return the class of an engine by kind and method."""
    target = PUBLISHERS.get((kind, method))
    if target is None:
        known = [name for each, name in PUBLISHERS if each == kind]
        raise PolicyError(f"{kind}: {unknown_word_message(method, known)}")
    module, _, name = target.partition(":")
    return cast("type[Publisher]", getattr(import_module(module), name))


def publisher(policy: Policy, kind: str, method: str, *, rng: Rng) -> Publisher:
    """Return an engine that is ready to take batches."""
    return publisher_class(kind, method)(policy, rng=rng)
