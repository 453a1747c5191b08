"""Delay-free anonymisation with late validation, as published.

A record joins a random open group that still waits for its value and does not hold its quasi-identifiers; if there is
none, it opens a group with l candidate values. Both are released at once.

Guarantee: every group offers at least l distinct candidates, none above 1/l of the total (Definition 3), and holds no
    quasi-identifier twice (Definition 5). A reader who knows a person's quasi-identifiers, and not how groups come
    about, finds l candidates of equal share.
Not covered: a reader who knows the algorithm. Whether a record joins or opens tells of its value; persons who come back
    are soon left with one candidate. Use `sealed` where that matters.
Cost: O(1) per record, O(l log domain) per opened group; memory of the open groups.
Reference: S. Kim, M. K. Sung, Y. D. Chung, "A framework to preserve the privacy of electronic health data streams",
    Journal of Biomedical Informatics 50, 2014.
Differences from the paper: candidates are l distinct values of count 1, drawn from a pool (`matched` by default), since
    the paper's generation practically never stops when a value's share nears 1/l, and its counts give the true value away;
    it remains as `generation: literal`. Candidates are published sorted. Groups older than `retire_after` are closed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent import _core
from reticent.engine.stream.contract import Groups
from reticent.engine.stream.design import Label
from reticent.engine.stream.immediate import Immediate, sau_limit
from reticent.engine.stream.pools import weights
from reticent.engine.stream.records import Records
from reticent.errors import GuaranteeError
from reticent.release import Guarantee
from reticent.release.wording import not_covered

AGAINST = "a reader who knows everyone's quasi-identifiers but not how groups come about"
NOT_COVERED = not_covered(
    "a reader who knows the algorithm: joining or opening a group tells of the value",
    "a person who comes back with the same value",
)


class DelayFree(Immediate):
    """The paper's method."""

    method = "delay-free"

    def _domain(self) -> list[Label]:
        return sorted(self.prior.counts, key=lambda label: label or "")

    def _start(self) -> None:
        settings = self.policy.stream
        self._counts = [self.prior.counts[label] for label in self.values.labels]
        self._core = _core.stream.DelayFree(
            key=self._key,
            shard=self.shard,
            l=self.l,
            pool=settings.pool,
            weights=weights(settings.pool, self._counts, self.l),
            rank=self.values.rank,
            retire_after=settings.retire_after,
            literal=settings.draw_limit if settings.generation == "literal" else 0,
        )
        self._size = len(self.values)

    def _put(self, records: Records) -> Groups:
        # A value is in the pool from its first record on, however the input is cut into batches.
        self._grow(int(records.codes.max(initial=-1)) + 1)
        try:
            return Groups.of(self._core.push(records.seqs, records.qis, records.codes))
        except RuntimeError:
            raise GuaranteeError(
                f"The literal generation found no l-diverse candidates within {self.policy.stream.draw_limit:,} draws; "
                "nothing of this batch was published.",
                hint="Write generation: distinct, or lower l.",
            ) from None

    def _grow(self, size: int) -> None:
        if size > self._size:
            self._core.grow(self.values.rank_of(size))
            self._size = size

    def _room(self) -> int:
        return 1 << 62

    def _renew(self) -> None:
        """The pool follows what has been seen; the paper, too, takes it from the past of the stream."""
        self._weigh(list(self._known(self._core.seen()).values()))

    def _weigh(self, counts: list[int]) -> None:
        self._counts = counts
        self._core.reweigh(weights(self.policy.stream.pool, counts, self.l))

    def _moment(self) -> tuple[Any, ...]:
        return (self._core.totals(),)

    def _figures(self, moment: tuple[Any, ...]) -> dict[str, float]:
        """SAU beside its limit, groups, and the information loss of equations (6) and (7)."""
        (totals,) = moment
        tuples = totals.tuples
        figures = {
            "sau": 1 - tuples / totals.offered if totals.offered else 0.0,
            "sau_limit": sau_limit(self.l, totals.top / tuples if tuples else 0.0),
            "groups": totals.groups,
            "open_groups": totals.open,
            "retired_groups": totals.retired,
            "forced_open_rate": totals.groups / tuples if tuples else 0.0,
        }
        if self.policy.stream.generation == "distinct":
            figures["information_loss"] = (self.l - 1) / self.l / (len(self._reader.quasi) + 1)
        return figures

    def _claims(self) -> Guarantee:
        return Guarantee({"l": {"distinct": self.l, "frequency": self.l}}, AGAINST, NOT_COVERED)

    def _more(self) -> dict[str, Any]:
        return {"counts": self._counts}

    def _core_state(self) -> bytes:
        return self._core.snapshot()

    def _load(self, more: dict[str, Any], core: bytes) -> None:
        self._grow(len(self.values))
        counts = more["counts"]
        if len(counts) == self._size:
            self._weigh(counts)
        else:  # values met after the pool was last weighed have no weight of their own yet
            self._counts = counts
            fixed = weights(self.policy.stream.pool, counts, self.l)
            self._core.reweigh(np.concatenate([fixed, np.zeros(self._size - len(counts), dtype=np.uint64)]))
        self._core.restore(core)
