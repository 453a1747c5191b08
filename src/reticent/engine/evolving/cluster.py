"""Base class of the paper's methods: classes with at least l distinct values, published by Anatomy.

Guarantee: at least l distinct sensitive values in every class, against an attacker who sees one publication.
Not covered: a second publication. An attacker who compares two publications learns the values of inserted and deleted
    records.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import Int32s, UInt32s
from reticent.encode import Dictionary
from reticent.engine.base import Members, refuse_group_column
from reticent.engine.evolving.base import EvolvingPublisher
from reticent.engine.evolving.change import Change
from reticent.engine.evolving.records import NO_CLASS
from reticent.engine.rng import Rng
from reticent.engine.table.anatomy import sensitive_table
from reticent.engine.table.people import row_keys
from reticent.errors import InternalError
from reticent.policy import Policy
from reticent.policy.spec import HierarchySpec
from reticent.release import Guarantee, Release
from reticent.release.wording import AGAINST, EVOLVING, exclusions

NOT_COVERED = exclusions(*EVOLVING)


class ClusterPublisher(EvolvingPublisher):
    """Maintains classes in the native core, by the method in `method`."""

    uses_distance: ClassVar[bool] = False
    """Whether the method uses the distance between values."""

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        refuse_group_column(policy)
        super().__init__(policy, rng=rng)
        self._withheld = 0
        self._new_core()

    def _new_core(self) -> None:
        scale = [_scale(self.policy.columns[name].hierarchy) for name in self.policy.quasi]
        self._core = _core.evolving.Classes(self.method, l=self.l, scale=scale)

    def _insert_rows(self, rows: UInt32s, notes: Any = None) -> tuple[UInt32s, Change]:  # noqa: ARG002 - signature of the base class
        return self._apply_core_change(
            self._core.insert(rows, self.records.values(rows), self._quasi_codes(rows), key=self._key("insert"))
        )

    def _delete_rows(self, rows: UInt32s) -> tuple[UInt32s, Change]:
        try:
            return self._apply_core_change(self._core.delete(rows, key=self._key("delete")))
        except RuntimeError as error:
            raise InternalError(f"A row has no class (deletion of {len(rows):,} rows).") from error

    def _update_rows(self, rows: UInt32s, codes: Int32s, notes: Any) -> tuple[UInt32s, Change]:
        """Delete the rows and insert them again, as in the paper."""
        moved, change = self._delete_rows(rows)
        self.records.put(rows, codes)
        self.records.classes[rows] = NO_CLASS
        self._hash_persons(rows, notes)
        again, later = self._insert_rows(rows)
        return np.union1d(moved, again), change.then(later)

    def _apply_core_change(self, core_change: _core.evolving.Change) -> tuple[UInt32s, Change]:
        rows = core_change.rows
        self.records.classes[rows] = core_change.classes
        self._withheld = core_change.withheld
        return rows, Change(
            touched=core_change.touched,
            dissolved=core_change.dissolved,
            relocated=core_change.relocated,
            withheld=core_change.withheld,
        )

    def _quasi_codes(self, rows: UInt32s) -> Int32s:
        codes = np.ascontiguousarray(self.records.codes[rows, : len(self.policy.quasi)])
        if self.uses_distance:
            for i, name in enumerate(self.policy.quasi):
                if _scale(self.policy.columns[name].hierarchy):
                    codes[:, i] = _rounded_values(self.records.words[name].values)[codes[:, i]]
        return codes

    def _count_withheld_records(self) -> int:
        return self._withheld

    def _reload(self, withheld: int) -> None:
        self._new_core()
        rows = self.records.rows()
        self._withheld = withheld
        self._core.load(rows, self.records.values(rows), self._quasi_codes(rows), self.records.classes[rows])

    def _method_guarantee(self) -> Guarantee:
        return Guarantee({"l": {"distinct": self.l}, "publications": 1}, AGAINST["evolving"], NOT_COVERED)

    def _publish(self, rows: UInt32s) -> Release:
        _, groups = np.unique(self.records.classes[rows], return_inverse=True)
        # Class numbers would disclose the age of a class, so every publication renumbers them: by the text of their
        # rows, as Anatomy does, and at random where that is equal.
        groups = _core.random.permutation(int(groups.max()) + 1, key=self._key("groups"))[groups]
        shown = self._published_codes(rows)
        keys = row_keys([(codes, words.values) for codes, words in shown.values()], len(rows))
        arranged = _core.table.arrange_rows(keys, groups)
        order, groups = arranged.order, arranged.numbers[groups[arranged.order]]
        self._members = Members(self.records.hashes[rows[order], 0], groups)
        columns = {name: words.decode(codes[order]) for name, (codes, words) in shown.items()}
        qit = pa.table({"group": groups, **columns})
        st = sensitive_table(groups, self.records.values(rows[order]), self.records.words[self.sensitive])
        sizes = np.bincount(groups)
        # The sensitive table is sorted by group.
        starts = np.flatnonzero(np.diff(st.column("group").to_numpy(), prepend=-1))
        top = np.maximum.reduceat(st.column("count").to_numpy(), starts) / sizes
        skewed = sizes[top > 1 / self.l].sum() / len(rows)
        return self._to_release(
            (qit, st),
            {"average_class_size": float(sizes.mean()), "max_risk": float(top.max())},
            {"groups": len(sizes), "share_in_skewed_classes": float(skewed), "label": "safe for one publication only"},
        )

    def _published_codes(self, rows: UInt32s) -> dict[str, tuple[Int32s, Dictionary]]:
        """Return the codes and dictionaries of the columns that are published unchanged."""
        names, records = [*self.policy.quasi, *self.policy.plain], self.records
        return {name: (records.codes[rows, records.columns.index(name)], records.words[name]) for name in names}


def _scale(spec: HierarchySpec | None) -> float:
    """Return one over the widest interval of a numeric attribute; 0 for a categorical one, which has no distance."""
    if spec is None or not spec.intervals:
        return 0.0
    widths = [max(step) - min(step) if isinstance(step, tuple) else step for step in spec.intervals]
    return 1 / (max(widths) or 1.0)


def _rounded_values(words: pa.Array) -> Int32s:
    """Return the rounded values of a numeric column by code; a column that is not numeric keeps its codes."""
    try:
        values = words.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return np.arange(len(words), dtype=np.int32)
    rounded: Int32s = np.clip(np.rint(values), -(2**30), 2**30).astype(np.int32)
    return rounded
