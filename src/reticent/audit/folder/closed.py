"""Closed lists: what a release may hold besides its tables. What is not on a list may be anything, and is refuted by name.

Guarantee: a folder holds the files of its manifest and nothing else; the manifest has the keys it may have; what a table's
    release says of its making are counts and settings, never cells, and nothing about single suppressed records.
Not covered: digits of figures that cannot be recomputed.
Cost: reads names only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reticent.audit.folder.papers import FORMS, check_papers, is_figure, named
from reticent.audit.published import Published
from reticent.audit.verdict import Finding, none_of
from reticent.policy import Policy

_STORE = ("publisher", "generation", "number", "digest", "predecessor")
_MANIFEST = {*FORMS, "method", *(f"store.{name}" for name in _STORE)}
_NUMBERS = (
    *("suppressed", "score", "classes", "optimal", "bound", "candidates", "f_measure", "combinations", "persons"),
    *("linked_suppressed", "left_out", "groups", "cells", "stopped", "apart"),
)
METHODS = ("local", "mondrian", "optimal")
_TRIED = ("sets", "weighed", "whole_persons", "loss", "score", "suppressed", "stopped")
_NODES = ("lattice", "checked", "pruned", "not_checked", "used", "path")
_HELD = (
    "update outside the knowledge",
    "no legal place",
    "risk above the limit",
    "no design for the value",
    "came back after missing a release",
)
_LOSSES = ("loss", "ncp", "discernibility", "average_class_size", "precision", "height", "entropy")
_METRICS = (
    *(*_LOSSES, "information_loss", "rows_kept", "counterfeits", "counterfeits_per_group", "max_risk", "persons"),
    *("eta", "alarm", "sau", "sau_limit", "groups", "open_groups", "retired_groups", "forced_open_rate"),
    *("held", "clusters", "reusable_clusters", "average_wait"),
)
_ATTRIBUTE = ("level", "height", "loss", "records_per_level", "exact_records")


def check_lists(release: Published, policy: Policy) -> list[Finding]:
    """Files, manifest keys, and for releases of one table what is explained."""
    findings = [named("only files of the release lie in the folder", release.strays)]
    findings += [named("only known entries stand in the manifest", sorted(set(release.keys) - _MANIFEST))]
    findings += [named("every file is written in the one way", release.odd)]
    findings += [none_of("every column has a name of its own", release.doubled), *check_papers(release, policy)]
    if release.shape != "linked":  # whose judge has a list of its own
        forms = _told_of_tables(policy) if _faithful_table(release) else _TOLD
        odd = [key for key, value in release.explain.items() if key not in forms or not forms[key](value)]
        findings.append(named("explain tells counts and settings only", odd))
    odd = [key for key, value in release.metrics.items() if key not in _METRICS or not is_figure(value)]
    findings.append(named("metrics are numbers", odd))
    return findings


def _faithful_table(release: Published) -> bool:
    return release.shape == "generalised" or (release.kind == "table" and release.shape == "anatomy")


def _tally(*names: str) -> Callable[[Any], bool]:
    return lambda value: _mapping(value, names) and all(map(_number, value.values()))


def _number(value: Any) -> bool:
    return isinstance(value, bool) or is_figure(value)


def _told_of_tables(policy: Policy) -> Mapping[str, Callable[[Any], bool]]:
    """What `explain` of a table may hold, and in which form."""
    quasi = policy.quasi

    def names(batch: Any) -> bool:
        return isinstance(batch, list) and all(name in quasi for name in batch)

    words = {*" ".join(policy.quasi).split(), ""}
    return {
        **dict.fromkeys(_NUMBERS, _number),
        "loss": lambda value: value in _LOSSES,
        "cuts": lambda value: value in ("strict", "relaxed"),
        "nodes": _tally(*_NODES),
        "attributes": lambda value: _mapping(value, quasi) and all(map(_attribute, value.values())),
        "utility": lambda value: (
            isinstance(value, dict)
            and all(set(key.split(" ")) <= words for key in value)
            and all(map(_number, value.values()))
        ),
        "tried": lambda value: isinstance(value, list) and all(map(_method, value)),
        "batches": lambda value: isinstance(value, list) and all(map(names, value)),
    }


def _mapping(value: Any, known: Iterable[str]) -> bool:
    return isinstance(value, dict) and set(value) <= set(known)


def _method(value: Any) -> bool:
    """The figures of one method among those that were tried."""
    if not _mapping(value, {"method", *_TRIED}) or value.get("method") not in METHODS:
        return False
    return all(_number(number) for name, number in value.items() if name != "method")


def _attribute(value: Any) -> bool:
    if not _mapping(value, _ATTRIBUTE):
        return False
    levels = value.get("records_per_level", [])
    return isinstance(levels, list) and all(
        _number(number) for number in [*levels, *(v for k, v in value.items() if k != "records_per_level")]
    )


_TOLD: Mapping[str, Callable[[Any], bool]] = {  # of a veil, an evolving table, a series or a stream
    **dict.fromkeys(
        ("rows_of_the_prior", "values", "publication", "left_out", "release", "groups", "share_in_skewed_classes"),
        _number,
    ),
    "label": lambda value: value == "safe for one publication only",
    "changes": _tally("inserted", "left", "returned", "sensitive", "quasi"),
    "held": _tally(*_HELD),
    "risk": _tally("0%", "25%", "50%", "75%", "95%", "99%", "100%"),
    "updates": _tally("closed", "stayed"),
}
