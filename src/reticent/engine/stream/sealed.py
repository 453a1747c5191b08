"""Sealed streams: zero delay, with a posterior of at most 1/l against a reader who knows the algorithm.

The design prior is split into classes of l values such that, given its class, a record is equally likely to have any of
them. A record draws its class from its own value and its person alone; inside the class it joins a random open group
whose slot for its value is free and that lacks its quasi-identifiers, or opens one whose candidates are the class.

Guarantee: posterior at most 1/l for every record, relative to the stated design prior, records of different persons
    independent given it, and a person's records either all of one value or linked by nobody; against a reader who knows
    the algorithm, the design, every quasi-identifier and the order of arrival. Given the class all slots are equally
    likely, and grouping uses slots only through equality, so nothing that is published tells one from another
    (tests/attack/test_stream_adversary.py enumerates all inputs of small streams).
Not covered: priors that depend on the quasi-identifiers; readers who know other persons' values (`provision` blunts
    them); a person known to have several different values, whose classes together tell that they differ: for two
    different classes that share s of their l values the bound becomes l / (l*l - s).
Cost: O(1) per record; at most one class per value. The class of a (person, value) pair is a keyed function, so nothing
    is kept per person but sixteen bits that tell the epoch of the pair's first record. Memory: open groups, these bits.
Reference: ours; the group process is that of S. Kim, M. K. Sung, Y. D. Chung, Journal of Biomedical Informatics 50, 2014.
Differences from the paper: classes and the memo; epochs with a prior from the past; groups older than `retire_after`
    are closed; a person's pair stays in the classes of its first epoch for good.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent import _core
from reticent.engine.stream.contract import Groups
from reticent.engine.stream.design import Label, Plan, Prior, blurred, check_possible, plan, widened
from reticent.engine.stream.immediate import Immediate, sau_limit
from reticent.engine.stream.records import Records
from reticent.errors import GuaranteeError
from reticent.release import Guarantee

if TYPE_CHECKING:
    import numpy.typing as npt

LOG = logging.getLogger(__name__)

AGAINST = (
    "a reader who knows the algorithm, the design prior, everyone's quasi-identifiers and the order of arrival; "
    "records of different persons independent given the prior"
)
NOT_COVERED = (
    "priors that depend on the quasi-identifiers",
    "a reader who knows other persons' values",
    "a person known to come back with different values",
    "whether a person is in the stream",
)
# A filter smaller than this saves nothing.
_FEWEST = 4_096
# An epoch's first windows fill empty groups: their rate says nothing about drift.
_SETTLING = 3


class Sealed(Immediate):
    """The default method for streams."""

    method = "sealed"

    def _domain(self) -> list[Label]:
        settings = self.policy.stream
        if self.prior.source != "domain":
            check_possible(self.prior.counts, self.l)
        self._counts = widened(self.prior, settings.other)
        return sorted(self._counts, key=lambda label: label or "")

    def _start(self) -> None:
        settings = self.policy.stream
        self._core = _core.stream.Sealed(
            key=self._key,
            shard=self.shard,
            width=self.l * settings.copies,
            retire_after=settings.retire_after,
            provision=settings.provision,
        )
        self._size = len(self.values)
        self._in_window = 0
        self._forced = 0
        self._rates: list[float] = []
        self.alarms = 0
        self.epoch = 0
        self._before: npt.NDArray[np.uint64] = np.zeros(len(self.values), dtype=np.uint64)
        self._plan: Plan | None = None
        self._begin(self._counts)

    def _begin(self, counts: dict[Label, int]) -> None:
        """Starts an epoch with the design of these counts; it keeps as much of the last design as it can."""
        settings = self.policy.stream
        coded = {self.values.code(label): n for label, n in counts.items() if n}
        self._plan = plan(coded, self.l, copies=settings.copies, rank=self.values.rank, last=self._plan)
        expected = min(settings.persons, max(self._look_at - self._rows, _FEWEST))
        self._core.begin(
            self._plan.classes,
            self._plan.weights,
            domain=len(self.values),
            other=self.values.code(settings.other),
            marks=expected,
        )

    def _put(self, records: Records) -> Groups:
        if len(self.values) > self._size:
            self._core.grow(len(self.values))
            self._size = len(self.values)
        placed = Groups.of(self._core.push(records.seqs, records.qis, records.persons, records.codes))
        self._in_window += len(records)
        if self._in_window >= self.policy.stream.window:
            self._watch()
        return placed

    def _room(self) -> int:
        return self.policy.stream.window - self._in_window

    def _watch(self) -> None:
        """After a window: has the forced-open rate risen so far that the design no longer fits?

        Everything that is looked at is published anyway, so the moment of a new epoch tells nothing.
        """
        forced = self._core.totals()[4]
        self._rates.append((forced - self._forced) / self.policy.stream.window)
        self._forced, self._in_window = forced, 0
        settled = self._rates[_SETTLING:]
        if len(settled) < 2 or settled[-1] <= self.policy.stream.drift * max(min(settled[:-1]), self._ideal()):
            return
        self.alarms += 1
        LOG.warning("the stream drifts: %.4f of the records had to open a group (epoch %d)", settled[-1], self.epoch)
        self._rates = []
        if self.policy.stream.epochs == "auto":
            seen = self._core.seen()
            fresh = seen.copy()
            fresh[: len(self._before)] -= self._before
            self._redesign({label: int(fresh[code]) for code, label in enumerate(self.values.labels)})

    def _ideal(self) -> float:
        return 1 / (self.l * self.policy.stream.copies)

    def _renew(self) -> None:
        self._redesign(self._known(self._core.seen()))

    def _redesign(self, counts: dict[Label, int]) -> None:
        """Starts an epoch for these counts; keeps the old design when l cannot be met with them."""
        noisy = blurred(counts, self.rng.key("stream prior"), self.epoch)
        try:
            check_possible(noisy, self.l)
            self._begin(widened(Prior(noisy, "epoch"), self.policy.stream.other))
        except GuaranteeError:
            LOG.warning("l = %d cannot be met with the prior seen so far; the old design stays in use", self.l)
            return
        self._before = self._core.seen()
        self.epoch += 1

    def _moment(self) -> tuple[Any, ...]:
        return self._core.totals(), self._rates[-1] if self._rates else None, self.alarms, self.epoch

    def _figures(self, moment: tuple[Any, ...]) -> dict[str, float]:
        """SAU beside its limit, groups, the forced-open rate, alarms, and the information loss of (6) and (7)."""
        (tuples, groups, open_groups, retired, forced, top), rate, alarms, epoch = moment
        width = self.l * self.policy.stream.copies
        figures = {
            "sau": 1 - tuples / (groups * width) if groups else 0.0,
            "sau_limit": sau_limit(self.l, top / tuples if tuples else 0.0),
            "groups": groups,
            "open_groups": open_groups,
            "retired_groups": retired,
            "forced_open_rate": (forced / tuples if tuples else 0.0) if rate is None else rate,
            "alarms": alarms,
            "epoch": epoch,
        }
        if self.policy.stream.copies == 1:
            figures["information_loss"] = (self.l - 1) / self.l / (len(self._reader.quasi) + 1)
        return figures

    def _claims(self) -> Guarantee:
        claims = {"l": {"distinct": self.l, "frequency": self.l}, "posterior": 1 / self.l}
        not_covered: tuple[str, ...] = NOT_COVERED
        if self.prior.source == "domain":
            not_covered += ("priors other than the uniform one over the domain, which the first epoch is designed for",)
        if self.policy.person is None:
            not_covered += ("persons who come back: the policy names no person column",)
        return Guarantee(claims, AGAINST, not_covered)

    def _more(self) -> dict[str, Any]:
        return {
            "in_window": self._in_window,
            "forced": self._forced,
            "rates": self._rates,
            "alarms": self.alarms,
            "epoch": self.epoch,
            "before": self._before.tolist(),
            "classes": self._plan.classes.tolist() if self._plan else [],
            "weights": self._plan.weights.tolist() if self._plan else [],
        }

    def _core_state(self) -> bytes:
        return self._core.snapshot()

    def _load(self, more: dict[str, Any], core: bytes) -> None:
        self._core.restore(core)
        self._size = len(self.values)
        self._core.grow(self._size)
        self._plan = Plan(np.array(more["classes"], dtype=np.int32), np.array(more["weights"], dtype=np.uint64))
        self._in_window, self._forced = more["in_window"], more["forced"]
        self._rates, self.alarms, self.epoch = more["rates"], more["alarms"], more["epoch"]
        self._before = np.array(more["before"], dtype=np.uint64)
