"""Random walks of an evolving table: insertions, deletions, updates, each step checked against the reference.

A walk has one to eight quasi-identifiers with domains of 2 to 10,000 values. Small domains matter as much as large ones:
records then differ in little but their number.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import evolving_reference as reference
import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.errors import GuaranteeError
from reticent.policy import Policy

METHODS = ("indexed", "enc", "encc", "eac", "red")
WIDTH = 64  # a power of two: its inverse is exact, so that ties are ties in the core and in the reference


class Walk:
    """One table under one method, and what the reference implementation expects of it."""

    def __init__(self, method: str, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.method, self.l = method, int(self.random.integers(2, 6))
        self.values = self.l + int(self.random.integers(0, 8))
        self.domains = np.rint(2 * 5000 ** self.random.random(self.random.integers(1, 9))).astype(int).tolist()
        self.numeric = (self.random.random(len(self.domains)) < 0.5).tolist()
        self.scale = [1 / WIDTH if numeric else 0.0 for numeric in self.numeric]
        self.engine = publisher(self._policy(), "evolving", method, rng=Rng.from_seed(seed))
        self.live: dict[int, tuple[list[int], int]] = {}  # id -> quasi-identifiers, value
        self.following = 0

    def _policy(self) -> Policy:
        quasi = {
            f"q{i}": {"role": "quasi", "hierarchy": {"intervals": [WIDTH]}} if numeric else "quasi"
            for i, numeric in enumerate(self.numeric)
        }
        return Policy.from_dict(
            {
                "version": 1,
                "person": "id",
                "columns": {"id": "identifier", **quasi, "ill": "sensitive"},
                "evolving": {"method": self.method, "l": self.l},
            }
        )

    def _record(self) -> tuple[list[int], int]:
        return [int(self.random.integers(d)) for d in self.domains], int(self.random.integers(self.values))

    def _batch(self, ids) -> pa.Table:
        columns = {
            f"q{i}": pa.array([self.live[p][0][i] if numeric else f"z{self.live[p][0][i]}" for p in ids])
            for i, numeric in enumerate(self.numeric)
        }
        ill = pa.array([f"v{self.live[p][1]:02d}" for p in ids])
        return pa.table({"id": pa.array([str(p) for p in ids]), **columns, "ill": ill})

    # -- steps -----------------------------------------------------------------------------------------------------

    def insert(self) -> None:
        count = int(self.random.integers(1, 30))
        ids = list(range(self.following, self.following + count))
        self.following += count
        self.live |= {p: self._record() for p in ids}
        before = self._classes()
        self.engine.insert(self._batch(ids))
        self._expect(self._inserted(before, self._rows(ids)), "insert")

    def delete(self) -> None:
        ids = self._some()
        rows, before, values = self._rows(ids), self._classes(), self._values()
        quasi = self._codes()
        self.engine.delete([str(p) for p in ids])
        for p in ids:
            del self.live[p]
        self._expect(self._deleted(before, values, quasi, rows), "delete")

    def update(self) -> None:
        ids = self._some()
        rows, before, values = self._rows(ids), self._classes(), self._values()
        quasi = self._codes()
        self.live |= {p: self._record() for p in ids}
        self.engine.update(self._batch(ids))
        self._expect(self._inserted(self._deleted(before, values, quasi, rows), rows), "update")

    def restart(self) -> None:
        before = self._classes()
        self.engine = type(self.engine).restore(self.engine.policy, self.engine.snapshot())
        self._expect(before, "restart")

    def _some(self) -> list[int]:
        share = self.random.random() ** 2
        return [p for p in self.live if self.random.random() < share] or [next(iter(self.live))]

    # -- the reference ---------------------------------------------------------------------------------------------

    def _rows(self, ids) -> list[int]:
        return [self.engine.records.rows_of_person(str(p))[0] for p in ids]

    def _classes(self) -> dict[int, int]:
        rows = self.engine.records.rows()
        return dict(zip(rows.tolist(), self.engine.records.classes[rows].tolist(), strict=True))

    def _values(self) -> dict[int, int]:
        rows = self.engine.records.rows()
        return dict(zip(rows.tolist(), self.engine.records.values(rows).tolist(), strict=True))

    def _codes(self) -> dict[int, list[int]]:
        rows = self.engine.records.rows()
        return dict(zip(rows.tolist(), self.engine._quasi_codes(rows).tolist(), strict=True))

    def _anatomy(self, purpose):
        def group(codes, domain, l):
            column = np.array(codes, dtype=np.int32)
            grouped = _core.table.anatomize(column, domain=domain, l=l, key=self.engine._key(purpose))
            return grouped.groups.tolist(), grouped.count

        return group

    def _inserted(self, classes, fresh) -> dict[int, int]:
        anatomy, values = self._anatomy("insert"), self._values()
        if self.method == "eac":
            return reference.eac_insert(classes, values, fresh, self.l, anatomy, self._codes(), self.scale)
        if self.method == "red":
            return reference.enc_insert({}, values, sorted([*classes, *fresh]), self.l, anatomy)
        return reference.enc_insert(classes, values, fresh, self.l, anatomy)

    def _deleted(self, classes, values, quasi, rows) -> dict[int, int]:
        if self.method == "eac":
            return reference.eac_delete(classes, values, rows, self.l, quasi, self.scale)
        if self.method == "red":
            left = sorted(classes.keys() - set(rows))
            return reference.enc_insert({}, values, left, self.l, self._anatomy("delete"))
        return reference.enc_delete(classes, values, rows, self.l)

    # -- what must hold --------------------------------------------------------------------------------------------

    def _expect(self, classes: dict[int, int], step: str) -> None:
        assert self._classes() == classes, f"{step} differs from the reference"
        withheld = sum(c == -1 for c in classes.values())
        assert self.engine.counts.withheld == withheld, f"{step}: {self.engine.counts.withheld}, not {withheld}"

    def publish(self) -> None:
        """Looks at the published tables alone: l values in every group, and every record that is not withheld."""
        try:
            (release,) = self.engine.cut(again=True)
        except GuaranteeError:
            # Only red looks at all records again; the others form classes of withheld records when new ones come.
            assert set(self._classes().values()) <= {-1}
            assert self.method != "red" or len({value for _, value in self.live.values()}) < self.l
            return
        qit, ill = release.tables["qit"], release.tables["st"]
        values = defaultdict(set)
        for group, value in zip(ill.column("group").to_pylist(), ill.column("value").to_pylist(), strict=True):
            values[group].add(value)
        assert min(map(len, values.values())) >= self.l, "a published group has fewer than l values"
        assert set(qit.column("group").to_pylist()) == set(values)
        offered = Counter(dict.fromkeys([], 0))
        for value, count in zip(ill.column("value").to_pylist(), ill.column("count").to_pylist(), strict=True):
            offered[value] += count
        assert offered <= Counter(f"v{value:02d}" for _, value in self.live.values())
        assert offered.total() == qit.num_rows == len(self.live) - release.records.withheld

    def run(self) -> None:
        self.insert()
        for _ in range(int(self.random.integers(3, 9))):
            steps = [self.insert, self.delete, self.delete, self.update, self.restart, self.publish]
            step = steps[self.random.integers(len(steps))] if self.live else self.insert
            step()
        self.publish()


def walk(method: str, seed: int) -> None:
    """Takes one walk; an error names the method and the seed, which are enough to take it again."""
    try:
        Walk(method, seed).run()
    except Exception as error:
        raise AssertionError(f"walk({method!r}, {seed}): {error}") from error
