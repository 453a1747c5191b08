"""Sealed: sticky classes, safe over any number of publications.

A record draws its class from its own value alone, by a keyed function of person and value: the same person with the same
value has the same class for life, also after it was deleted and came back. Each publication shows, per class, as many groups
as its most frequent value has records, each listing all l values of the class; seats without a record are the counterfeits.

Guarantee: posterior at most 1/l relative to the design prior, records independent given it, given all publications, against
    a reader who knows the method, the design, every quasi-identifier and every change.

Not covered: deletion that depends on the sensitive value; a reader who knows how a person's value changes over time (a new
    value is a new fact with a class of its own); readers who know other people's values; priors that depend on the
    quasi-identifiers; whether a person is in the table.

Cost: O(1) per changed record; O(n) per publication.

Reference: ours. The attack it answers: X. Xiao, Y. Tao, m-invariance, SIGMOD 2007.

The proof in short: given the class every slot is equally likely (see `engine/classes.py`) and independent of everything else.
Classes, seats and the number of groups use slots through equality only, so that permuting the slots of a class leaves the
probability of all publications unchanged; `tests/attack/test_evolving_adversary.py` enumerates it.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.engine.classes import Class, choices, design
from reticent.engine.evolving.base import AGAINST, EvolvingPublisher, Named
from reticent.engine.evolving.change import Change
from reticent.engine.evolving.records import NONE
from reticent.errors import GuaranteeError
from reticent.policy.prior import read_prior
from reticent.release import Guarantee

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy.typing as npt

    from reticent.engine.rng import Rng
    from reticent.policy import Policy
    from reticent.release import Release

    Rows = npt.NDArray[np.uint32]

NOT_COVERED = (
    "deletions that depend on the sensitive value",
    "a reader who knows how a person's sensitive value changes over time",
    "a reader who knows sensitive values of other persons in the same class",
    "priors that depend on the quasi-identifiers",
    "whether a person is in the table",
)
_FULL = 1 << 64


class Sealed(EvolvingPublisher):
    """Sticky classes with counterfeits; the default."""

    method = "sealed"
    safe_again = True

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        # One prior per epoch: value code -> weight. The classes follow from it.
        self.epochs: list[dict[int, int]] = []
        self.classes: list[Class] = []
        self._ways: dict[int, tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64]]] = {}
        self._waiting = 0
        # Persons whose value changed after it was published: stated with every release, since the claim leaves them out.
        self.revised = 0

    def _admit(self, rows: Rows) -> tuple[Rows, Change]:
        if not self.epochs and self._file is not None:
            self._open(self._prior())
        drawn = self._draw(rows)
        self.records.classes[rows] = drawn
        self._waiting += int(np.count_nonzero(drawn == NONE))
        return rows, Change(touched=len(np.unique(drawn[drawn != NONE])))

    def _dismiss(self, rows: Rows) -> tuple[Rows, Change]:
        left = self.records.classes[rows]
        self._waiting -= int(np.count_nonzero(left == NONE))
        return rows, Change(touched=len(np.unique(left[left != NONE])))

    def _revise(self, rows: Rows, codes: npt.NDArray[np.int32]) -> tuple[Rows, Change]:
        """Records whose value stays keep class and seat; the others are new facts."""
        changed = rows[self.records.values(rows) != codes[:, self.records.at_sensitive]]
        _, left = self._dismiss(changed)
        self.records.codes[rows] = codes
        if not len(changed):
            return rows, left
        self.revised += int(np.count_nonzero(self.records.seats[changed] != NONE))
        self.records.seats[changed] = NONE
        self.records.sign(changed, person_key=self.rng.key("person"), fact_key=self.rng.key("fact"))
        _, joined = self._admit(changed)
        return rows, left.then(joined)

    def _draw(self, rows: Rows) -> npt.NDArray[np.int32]:
        """The class of each row, by the keyed hash of its person and value; NONE when its value is in no design yet."""
        values, draws = self.records.values(rows), self.records.hashes[rows, 2]
        drawn = np.full(len(rows), NONE, dtype=np.int32)
        order = np.argsort(values, kind="stable")
        starts = np.flatnonzero(np.diff(values[order], prepend=NONE))
        for part in np.split(order, starts[1:]):
            way = self._ways.get(int(values[part[0]])) if len(part) else None
            if way is not None:
                drawn[part] = way[0][np.searchsorted(way[1], draws[part], side="right")]
        return drawn

    def _open(self, prior: dict[int, int]) -> None:
        """A new epoch: classes for values that had none."""
        made = design(prior, self.l)
        offset = len(self.classes)
        for value, ways in choices(made).items():
            numbers = np.array([offset + j for j, _ in ways], dtype=np.int32)
            self._ways[value] = numbers, _borders([p for _, p in ways])
        self.epochs.append(prior)
        self.classes.extend(made)

    @property
    def _file(self) -> str | None:
        return self.policy.prior.file if self.policy.prior is not None else None

    def _prior(self) -> dict[int, int]:
        """The prior of the policy: past counts per value; a value listed with 0 counts as seen once."""
        assert self._file is not None  # noqa: S101 - asked before
        counts = read_prior(self.policy.path(self._file), "prior")
        codes = self.records.words[self.sensitive].encode(pa.array(list(counts), pa.string()))
        return {int(code): max(1, count) for code, count in zip(codes, counts.values(), strict=True)}

    def _settle(self) -> Rows:
        """Opens an epoch for the values that wait, if they allow one, and seats everyone."""
        found = self._open_waiting()
        rows = self.records.rows()
        rows = rows[self.records.classes[rows] != NONE]
        before = self.records.seats[rows]
        values = self.records.values(rows)
        self.records.seats[rows] = _core.evolving.seat(
            self.records.classes[rows], values, before, key=self._key("seats")
        )
        moved: Rows = np.union1d(found, rows[self.records.seats[rows] != before])
        return moved

    def _open_waiting(self) -> Rows:
        rows: Rows = self.records.rows()
        rows = rows[self.records.classes[rows] == NONE]
        if not len(rows):
            return rows
        try:
            self._open(dict(sorted(Counter(self.records.values(rows).tolist()).items())))
        except GuaranteeError:
            if not self.epochs:
                raise
            return rows[:0]
        self.records.classes[rows] = self._draw(rows)
        self._waiting = 0
        return rows

    def _publish(self, rows: Rows) -> Release:
        classes, seats = self.records.classes[rows].astype(np.int64), self.records.seats[rows].astype(np.int64)
        pairs, groups = np.unique(np.stack([classes, seats]), axis=1, return_inverse=True)
        fresh = _core.random.permutation(pairs.shape[1], key=self._key("groups"))
        slots = np.array([c.values for c in self.classes], dtype=np.int32)
        st = self._st(np.repeat(fresh + 1, self.l), slots[pairs[0]].ravel())
        qit = self._qit(rows, fresh[groups.ravel()] + 1)
        offered = pairs.shape[1] * self.l
        return self._wrap(
            (qit, st),
            {
                "counterfeits": offered - len(rows),
                "average_class_size": len(rows) / pairs.shape[1],
                "max_risk": 1 / self.l,
                "sau": 1 - len(rows) / offered,
            },
            {
                "revised": self.revised,
                "groups": pairs.shape[1],
                "classes": len(self.classes),
                "epochs": len(self.epochs),
                "prior": self._source(),
            },
        )

    def _promise(self) -> Guarantee:
        # Rounded up, so that a share of exactly 1/l is within the claim.
        bound = math.ceil(1e6 / self.l) / 1e6
        claims = {"l": {"distinct": self.l, "frequency": self.l}, "posterior": bound}
        return Guarantee(claims, AGAINST + ", and all earlier publications", NOT_COVERED)

    def needs(self, change: pa.Table) -> Named:
        """The records that the change names, and no others."""
        return self.named(change)

    def _source(self) -> str:
        return "the records of the first publication" if self._file is None else "file of the policy"

    def _held(self) -> int:
        return self._waiting

    def extra(self) -> dict[str, Any]:
        """The priors of the epochs; the classes follow from them."""
        return super().extra() | {
            "revised": self.revised,
            "epochs": [list(map(list, prior.items())) for prior in self.epochs],
        }

    def resume(self, extra: dict[str, Any]) -> None:
        """Designs the epochs again, exactly."""
        for prior in extra["epochs"]:
            self._open({int(value): int(weight) for value, weight in prior})
        self.revised = int(extra["revised"])
        super().resume(extra)

    def _reload(self, held: int) -> None:
        self._waiting = held


def _borders(shares: list[Fraction]) -> npt.NDArray[np.uint64]:
    """Upper borders of all but the last choice on the scale of 64 random bits; exact to one part in 2^64."""
    total, borders = shares[0] * 0, []
    for share in shares[:-1]:
        total += share
        borders.append(min(_FULL - 1, int(total * _FULL)))
    return np.array(borders, dtype=np.uint64)
