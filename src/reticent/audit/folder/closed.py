"""Closed lists: what a release may hold besides its tables. What is not on a list may be anything, and is refuted by name.

Guarantee: a folder holds the files of its manifest and nothing else; the manifest has the keys it may have; what a table's
    release says of its making are counts and settings, never cells, and nothing about single suppressed records.
Not covered: digits of figures that cannot be recomputed.
Cost: reads names only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reticent.audit.folder.papers import FORMS, check_metadata, is_count, is_figure, named
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
_WITHHELD_REASONS = (
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
_MOST_TRIED, _MOST_LEVELS = 10, 256
"""Five ways to make a table, with and without emphasis; no hierarchy is as high."""
_ATTRIBUTE = ("level", "height", "loss", "records_per_level", "exact_records")


def check_lists(release: Published, policy: Policy) -> list[Finding]:
    """Files, manifest keys, and for releases of one table what is explained."""
    findings = [named("only files of the release lie in the folder", release.strays)]
    findings += [named("only known entries stand in the manifest", sorted(set(release.keys) - _MANIFEST))]
    findings += [named("every file is written in the one way", release.odd)]
    findings += [none_of("every column has a name of its own", release.doubled), *check_metadata(release, policy)]
    if release.shape != "linked":  # whose judge has a list of its own
        forms = _table_explain_forms(release, policy) if _faithful_table(release) else _EXPLAIN_FORMS
        odd = [key for key, value in release.explain.items() if key not in forms or not _fits(forms[key], value)]
        findings.append(named("explain tells counts and settings only", odd))
    odd = [key for key, value in release.metrics.items() if key not in _METRICS or not is_figure(value)]
    findings.append(named("metrics are numbers", odd))
    return findings


def _fits(form: Callable[[Any], bool], value: Any) -> bool:
    try:
        return form(value)
    except (KeyError, TypeError):  # counts that the manifest lacks, or that are none
        return False


def _faithful_table(release: Published) -> bool:
    return release.shape == "generalised" or (release.kind == "table" and release.shape == "anatomy")


def _tally(*names: str) -> Callable[[Any], bool]:
    return lambda value: _mapping(value, names) and all(map(_number, value.values()))


def _number(value: Any) -> bool:
    return isinstance(value, bool) or is_figure(value)


def _table_explain_forms(release: Published, policy: Policy) -> Mapping[str, Callable[[Any], bool]]:
    """What `explain` of a table may hold, in which form, and how much of it: a list without an end has room for anything."""
    quasi, counts = policy.quasi, release.counts
    left_out = release.explain.get("left_out", 0)

    def batches(value: Any) -> bool:
        named = [name for batch in value for name in batch] if _lists(value) else [None]
        return sorted(map(str, named)) == sorted(quasi) and all(value)

    return {
        **dict.fromkeys(_NUMBERS, _number),
        "suppressed": lambda value: is_count(value) and is_count(left_out) and value + left_out == counts["suppressed"],
        "loss": lambda value: value in _LOSSES,
        "cuts": lambda value: value in ("strict", "relaxed"),
        "nodes": _tally(*_NODES),
        "attributes": lambda value: (
            _mapping(value, quasi) and all(_attribute(one, counts["published"]) for one in value.values())
        ),
        "utility": lambda value: (
            isinstance(value, dict)
            and len(value) <= len(quasi) + 1
            and all(_is_ordered_subset(key, quasi) for key in value)
            and all(map(_number, value.values()))
        ),
        "tried": lambda value: isinstance(value, list) and len(value) <= _MOST_TRIED and all(map(_method, value)),
        "batches": batches,
    }


def _lists(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, list) for one in value)


def _is_ordered_subset(words: str, names: Iterable[str]) -> bool:
    """Whether the words are some of the names, each once and in their order; names may have blanks."""
    rests = {f"{words} " if words else ""}
    for name in names:
        rests |= {rest.removeprefix(f"{name} ") for rest in rests}
    return "" in rests


def _mapping(value: Any, known: Iterable[str]) -> bool:
    return isinstance(value, dict) and set(value) <= set(known)


def _method(value: Any) -> bool:
    """The figures of one method among those that were tried."""
    if not _mapping(value, {"method", *_TRIED}) or value.get("method") not in METHODS:
        return False
    return all(_number(number) for name, number in value.items() if name != "method")


def _attribute(value: Any, published: int) -> bool:
    if not _mapping(value, _ATTRIBUTE):
        return False
    figures = {name: number for name, number in value.items() if name != "records_per_level"}
    return all(map(_number, figures.values())) and _levels(value, published)


def _levels(value: Mapping[str, Any], published: int) -> bool:
    """Records by level: a number for each level of the hierarchy, all records together."""
    levels = value.get("records_per_level")
    if levels is None:
        return "records_per_level" not in value
    counted = isinstance(levels, list) and all(map(is_count, levels))
    return counted and sum(levels) == published and len(levels) == value.get("height", -1) + 1 <= _MOST_LEVELS


_EXPLAIN_FORMS: Mapping[str, Callable[[Any], bool]] = {  # of a veil, an evolving table, a series or a stream
    **dict.fromkeys(
        ("rows_of_the_prior", "values", "publication", "left_out", "release", "groups", "share_in_skewed_classes"),
        _number,
    ),
    "label": lambda value: value == "safe for one publication only",
    "changes": _tally("inserted", "left", "returned", "sensitive", "quasi"),
    "held": _tally(*_WITHHELD_REASONS),
    "risk": _tally("0%", "25%", "50%", "75%", "95%", "99%", "100%"),
    "updates": _tally("closed", "stayed"),
}
