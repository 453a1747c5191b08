"""Closed lists: what a release may contain besides its tables. Anything else is refuted by name.

Guarantee: if the findings hold, the folder has only the files of its manifest, and the manifest has only known keys. What it
    explains about a table are counts and settings, never cells and nothing about single suppressed records. So an attacker
    finds no hidden message there.
Not covered: digits of figures that cannot be recomputed.
Cost: reads names only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reticent.policy import Policy
from reticent.verify.folder.metadata import ENTRY_FORMS, check_metadata, finding_of_names, is_count, is_figure
from reticent.verify.published import Published
from reticent.verify.result import Finding, none_of

_STORE = ("publisher", "epoch", "number", "digest", "predecessor")
_MANIFEST = {*ENTRY_FORMS, "method", *(f"store.{name}" for name in _STORE)}
_EXPLAIN_NUMBERS = (
    *("suppressed", "score", "classes", "optimal", "bound", "candidates", "f_measure", "combinations", "persons"),
    *("linked_suppressed", "suppressed_further_records", "groups", "cells", "stopped", "apart"),
)
METHODS = ("local", "mondrian", "optimal")
_METHOD_FIGURES = ("sets", "weighed", "whole_persons", "loss", "score", "suppressed", "stopped")
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
    *("omission_rate", "alarm", "sau", "sau_limit", "groups", "open_groups", "retired_groups", "forced_open_rate"),
    *("pending", "clusters", "reusable_clusters", "average_wait"),
)
_MAX_METHODS, _MAX_LEVELS = 10, 256
"""Limits: five methods for a table, with and without weights; no hierarchy has so many levels."""
_ATTRIBUTE = ("level", "height", "loss", "records_per_level", "exact_records")


def check_closed_lists(release: Published, policy: Policy) -> list[Finding]:
    """Check the files, the manifest keys, `explain` and the metrics against closed lists."""
    findings = [finding_of_names("the folder contains only files that the manifest lists", release.unlisted_files)]
    findings += [
        finding_of_names("the manifest has only known entries", sorted(set(release.manifest_keys) - _MANIFEST))
    ]
    findings += [finding_of_names("every file is in its canonical form", release.noncanonical_files)]
    findings += [
        none_of("no column name occurs twice in a table", release.duplicate_columns),
        *check_metadata(release, policy),
    ]
    if release.shape != "linked":  # its verifier has a list of its own
        forms = _table_explain_forms(release, policy) if _is_table_release(release) else _EXPLAIN_FORMS
        unknown = [
            key for key, value in release.explain.items() if key not in forms or not _has_form(forms[key], value)
        ]
        findings.append(finding_of_names("explain contains only counts and settings", unknown))
    unknown = [key for key, value in release.metrics.items() if key not in _METRICS or not is_figure(value)]
    findings.append(finding_of_names("metrics contains only numbers", unknown))
    return findings


def _has_form(form: Callable[[Any], bool], value: Any) -> bool:
    try:
        return form(value)
    except (KeyError, TypeError):  # counts are missing or malformed in the manifest
        return False


def _is_table_release(release: Published) -> bool:
    return release.shape == "generalized" or (release.kind == "table" and release.shape == "anatomy")


def _tally_form(*names: str) -> Callable[[Any], bool]:
    return lambda value: _has_only_keys(value, names) and all(map(_is_number, value.values()))


def _is_number(value: Any) -> bool:
    return isinstance(value, bool) or is_figure(value)


def _table_explain_forms(release: Published, policy: Policy) -> Mapping[str, Callable[[Any], bool]]:
    """Return the allowed form of each `explain` entry of a table; lists are bounded so that they cannot carry messages."""
    quasi, counts = policy.quasi, release.counts
    by_policy = release.explain.get("suppressed_further_records", 0)

    def batches(value: Any) -> bool:
        named = [name for batch in value for name in batch] if _is_list_of_lists(value) else [None]
        return sorted(map(str, named)) == sorted(quasi) and all(value)

    return {
        **dict.fromkeys(_EXPLAIN_NUMBERS, _is_number),
        "suppressed": lambda value: (
            is_count(value) and is_count(by_policy) and value + by_policy == counts["suppressed"]
        ),
        "loss": lambda value: value in _LOSSES,
        "cuts": lambda value: value in ("strict", "relaxed"),
        "nodes": _tally_form(*_NODES),
        "attributes": lambda value: (
            _has_only_keys(value, quasi)
            and all(_is_attribute_entry(one, counts["published"]) for one in value.values())
        ),
        "utility": lambda value: (
            isinstance(value, dict)
            and len(value) <= len(quasi) + 1
            and all(_is_ordered_subset(key, quasi) for key in value)
            and all(map(_is_number, value.values()))
        ),
        "tried": lambda value: (
            isinstance(value, list) and len(value) <= _MAX_METHODS and all(map(_is_method_entry, value))
        ),
        "batches": batches,
    }


def _is_list_of_lists(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, list) for one in value)


def _is_ordered_subset(words: str, names: Iterable[str]) -> bool:
    """Return whether the words are a subset of the names, in order; names may contain blanks."""
    rests = {f"{words} " if words else ""}
    for name in names:
        rests |= {rest.removeprefix(f"{name} ") for rest in rests}
    return "" in rests


def _has_only_keys(value: Any, known: Iterable[str]) -> bool:
    return isinstance(value, dict) and set(value) <= set(known)


def _is_method_entry(value: Any) -> bool:
    """Return whether the value has the figures of one method of the method selection."""
    if not _has_only_keys(value, {"method", *_METHOD_FIGURES}) or value.get("method") not in METHODS:
        return False
    return all(_is_number(number) for name, number in value.items() if name != "method")


def _is_attribute_entry(value: Any, published: int) -> bool:
    if not _has_only_keys(value, _ATTRIBUTE):
        return False
    figures = {name: number for name, number in value.items() if name != "records_per_level"}
    return all(map(_is_number, figures.values())) and _has_valid_levels(value, published)


def _has_valid_levels(value: Mapping[str, Any], published: int) -> bool:
    """Return whether records per level has a count for each level, and sums to the published records."""
    levels = value.get("records_per_level")
    if levels is None:
        return "records_per_level" not in value
    valid = isinstance(levels, list) and all(map(is_count, levels))
    return valid and sum(levels) == published and len(levels) == value.get("height", -1) + 1 <= _MAX_LEVELS


_EXPLAIN_FORMS: Mapping[str, Callable[[Any], bool]] = {  # for a veil, an evolving table, a series or a stream
    **dict.fromkeys(
        (
            "strata",
            "values",
            "publication",
            "suppressed_further_records",
            "release",
            "groups",
            "share_in_skewed_classes",
        ),
        _is_number,
    ),
    "label": lambda value: value == "safe for one publication only",
    "changes": _tally_form("inserted", "left", "returned", "sensitive", "quasi"),
    "withheld": _tally_form(*_WITHHELD_REASONS),
    "risk": _tally_form("0%", "25%", "50%", "75%", "95%", "99%", "100%"),
    "updates": _tally_form("closed", "stayed"),
}
