"""k-map: every published combination fits at least k people of a population that is given as a table.

Guarantee: against an attacker who has that table (a voters' register) and does not know who is in the release: at least
    k of its people fit every published record.
Not covered: an attacker who knows who is in the release (also require k); people who are missing in the table; sensitive
    values that the records of a class share.
Cost: classes times the distinct combinations of the population, for each quasi-identifier.
Reference: L. Sweeney, "Computational disclosure control", PhD thesis, MIT 2001; K. El Emam, F. Dankar, "Protecting privacy using
    k-anonymity", JAMIA 15(5), 2008.
Differences from the paper: none. A person fits where every label covers the person's value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from reticent.arrays import Bools, Int64s
from reticent.errors import PolicyError
from reticent.policy.cells import encode_cells, without_markers
from reticent.policy.hierarchy import ROOT, build_levels
from reticent.policy.policy import Policy
from reticent.policy.spec import HierarchySpec

_INTERVAL = re.compile(r"\[(.+), (.+)\]")
Labels = Sequence[str | None]


def count_fitting_people(
    people: pa.Table, classes: Mapping[str, Labels], specs: Mapping[str, HierarchySpec | None], base: Path
) -> Int64s:
    """Count the people of a population who fit each class, given their quasi-identifiers as text and the class labels."""
    names = list(classes)
    combined = people.select(names).group_by(names).aggregate([([], "count_all")])
    times = combined.column("count_all").to_numpy().astype(np.int64)
    size = len(next(iter(classes.values()))) if names else 0
    covers = {name: _LabelCoverage(combined.column(name), specs[name], name, base) for name in names}
    counts = np.zeros(size, dtype=np.int64)
    for at in range(size):
        fits = np.ones(len(times), dtype=bool)
        for name in names:
            fits &= covers[name].of(classes[name][at])
        counts[at] = times[fits].sum()
    return counts


def read_population(policy: Policy, file: str) -> pa.Table:
    """Read the quasi-identifiers of everybody in the file as text."""
    names = list(policy.quasi)
    options = pacsv.ConvertOptions(
        include_columns=names,
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        null_values=[""],
    )
    try:
        return without_markers(pacsv.read_csv(policy.path(file), convert_options=options), policy.missing)
    except (OSError, pa.ArrowException, KeyError):
        raise PolicyError(
            "privacy.k_map: cannot read the population file.",
            hint="Write a CSV file with commas and one column for each quasi-identifier.",
        ) from None


class _LabelCoverage:
    """Finds the combinations of the population that a label of one column covers; looks up each label once."""

    def __init__(self, column: pa.ChunkedArray, spec: HierarchySpec | None, name: str, base: Path) -> None:
        self._codes, values = encode_cells(column)
        self._values = values.to_pylist()
        self._all = np.ones(len(self._codes), dtype=bool)
        self._nodes: dict[Any, set[int]] = {}
        levels = build_levels(spec, values, column=name, base=base)
        for table, labels in zip(levels.node_ids, levels.labels, strict=True):
            names = labels.to_pylist()
            for code, node in enumerate(table.tolist()):
                self._nodes.setdefault(names[node], set()).add(code)
        self._known: dict[str | None, Bools] = {ROOT: self._all}

    def of(self, label: str | None) -> Bools:
        """Return which combinations have a value that the label covers."""
        if label not in self._known:
            inside = np.zeros(len(self._values), dtype=bool)
            inside[sorted(self._codes_of(label))] = True
            self._known[label] = inside[self._codes]
        return self._known[label]

    def _codes_of(self, label: str | None) -> set[int]:
        if label is None:  # a missing value has its own node on every level below the root
            return {code for code, value in enumerate(self._values) if value is None}
        if label in self._nodes:
            return {code for code in self._nodes[label] if self._values[code] is not None}
        if label.startswith("{") and label.endswith("}"):
            members = set(label[1:-1].split(", "))
            return {code for code, value in enumerate(self._values) if value in members}
        match = _INTERVAL.fullmatch(label)
        if match is None:
            return set()
        low, high = float(match[1]), float(match[2])
        return {code for code, value in enumerate(self._values) if value is not None and low <= float(value) <= high}
