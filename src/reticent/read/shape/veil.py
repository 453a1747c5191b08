"""Veiled records: a set of candidates each, and `veil.json` that says how sets come about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int64s
from reticent.errors import DataError, PolicyError
from reticent.read.draws import draw_veil_values
from reticent.read.estimate.calibration import Cells, NoisyCounts
from reticent.read.estimate.channel import SLOT_LENGTH, normalize_rows
from reticent.read.estimate.persons import KernelStep
from reticent.read.estimate.veil import Counts, Records, Veil, cells, counts, excess, scores
from reticent.read.question import Question, combine_bounds
from reticent.read.shape.labels import codes


@dataclass(frozen=True, repr=False)
class Veiled:
    """Records with their candidates.

    Attributes:
        table: the records: fields, `row`, `event`, perhaps `person`, and `candidates`.
        document: what `veil.json` says.
        candidates: names of the columns of candidates.
        correction: later events are corrections, which never stay.
    """

    table: pa.Table
    metadata: Mapping[str, Any]
    candidates: tuple[str, ...]
    correction: bool = False

    @cached_property
    def domain(self) -> tuple[str, ...]:
        """The values that can be offered."""
        return tuple(str(label) for label in self.metadata["domain"])

    @property
    def bounded(self) -> bool:
        """Values are hidden: intervals."""
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """Which records an answer rests on, where not on all."""
        size = self.table.num_rows
        left = size - int(self.counted.sum())
        if not left:
            return ()
        if self._persons is None:
            why = "without a pseudonym of the person (`link` in the policy) only first sights can be."
        elif self._kernel_step is None:
            why = "without a kernel only first sights can be."
        else:
            why = (
                "the first sets of their persons stand in earlier releases. Ask all releases together, in their order."
            )
        return (f"{left:,} later events are not counted: {why} This is about the other {size - left:,} records.",)

    @cached_property
    def veil(self) -> Veil:
        """What the release publishes of its veil."""
        document, rows = self.metadata, np.asarray(self.metadata["segments"], dtype=np.uint64)
        if int(document.get("slot_length", SLOT_LENGTH)) != SLOT_LENGTH:
            raise DataError("The veil's line has another unit than this version reads.", hint="Update Reticent.")
        eta = np.asarray(document.get("omission_rate") or np.zeros(len(rows)), dtype=np.float64)
        # The noise is that of a share of persons, who are as many as first sights.
        first = self._events == 0
        size = np.bincount(self._strata[first] if first.any() else self._strata, minlength=len(rows))
        noise = _noise_variance(document.get("omission_rate_epsilon")) / np.maximum(size, 1) ** 2
        orders = np.asarray(document["permutations"], dtype=np.int64)
        veil = Veil(
            self.domain,
            rows,
            orders,
            eta,
            np.where(size > 0, noise, 0.0),
            self._noisy_counts,
            stratum_sizes=size.astype(np.float64),
        )
        if not eta.any() or not first.any():
            return veil
        whole = replace(veil, excess=excess(veil, self._strata[first], self._candidate_sets[first]))
        whole.reuse_channels(veil)
        return whole

    @property
    def _noisy_counts(self) -> NoisyCounts | None:
        stated = self.metadata.get("counts")
        if not stated:
            return None
        return NoisyCounts(np.asarray(stated["counts"], dtype=np.float64), _noise_variance(stated["epsilon"]))

    @cached_property
    def _strata(self) -> Int64s:
        return np.asarray(self.table.column("stratum").to_numpy(), dtype=np.int64)

    @cached_property
    def _events(self) -> Int64s:
        return np.asarray(self.table.column("event").to_numpy(), dtype=np.int64)

    @cached_property
    def _candidate_sets(self) -> Int64s:
        sets = np.stack([codes(self.table.column(name), self.domain) for name in self.candidates], axis=1)
        if (sets < 0).any():
            raise DataError(
                f"{int((sets < 0).any(axis=1).sum())} records have candidates that the veil's domain does not list.",
                hint="Take the release again: its files do not belong together.",
            )
        return sets

    @cached_property
    def _persons(self) -> Int64s | None:
        if "person" not in self.table.column_names:
            return None
        _, persons = np.unique(self.table.column("person").to_numpy(zero_copy_only=False), return_inverse=True)
        return persons.reshape(-1).astype(np.int64)

    @cached_property
    def _first_record(self) -> Int64s:
        """Record of the same person's first event; -1 where it is not here."""
        first = np.where(self._events == 0, np.arange(len(self._events)), -1)
        if self._persons is None or not (self._events > 0).any():
            return first
        sight = np.full(int(self._persons.max(initial=-1)) + 1, -1)
        at = np.flatnonzero(self._events == 0)
        sight[self._persons[at]] = at
        return np.where(self._events == 0, first, sight[self._persons])

    @cached_property
    def counted(self) -> Bools:
        """Records that can be counted: first sights, and later events whose person's first set and kernel are known."""
        return np.asarray((self._events == 0) | ((self._first_record >= 0) & (self._kernel_step is not None)))

    @cached_property
    def _kernel_step(self) -> Any:
        return kernel_step(self.metadata.get("kernel"), self.veil.shares, correction=self.correction)

    def counts(self, question: Question) -> Counts:
        """HT2; where cells are coarse, between those that surely match and those that may."""
        whole = self._release_cells(question.target)
        perhaps = self._counts(question, question.match.perhaps, whole)
        if question.match.exact:
            return perhaps
        point = question.sums(question.match.share * self.scores(question.target))
        return combine_bounds(point, self._counts(question, question.match.sure, whole), perhaps)

    def _counts(self, question: Question, flags: Bools, whole: Cells | None) -> Counts:
        at = np.flatnonzero(flags & self.counted)
        records = replace(self._records(at), groups=question.groups[at])
        return counts(
            self.veil,
            records,
            question.target,
            groups=question.size,
            level=question.level,
            step=self._kernel_step,
            whole=whole,
        )

    def _release_cells(self, target: Floats) -> Cells | None:
        """All first sights, where the release says how many of them have which value."""
        if self._noisy_counts is None:
            return None
        records = self._records(np.flatnonzero(self._events == 0))
        none = np.zeros(len(records.strata), dtype=np.int64)
        return cells(self.veil, records.strata, scores(self.veil, records, target), none, 1)

    def _records(self, at: Int64s) -> Records:
        persons = None if self._persons is None else self._persons[at]
        later = bool(self._events[at].any())
        return Records(
            self._strata[at],
            self._candidate_sets[at],
            persons=persons,
            events=self._events[at] if later else None,
            first=self._candidate_sets[self._first_record[at]] if later else None,
        )

    def scores(self, target: Floats) -> Floats:
        """What each record adds to an estimate; nothing where it cannot be counted."""
        at, out = np.flatnonzero(self.counted), np.zeros(len(self.counted))
        each = scores(self.veil, self._records(at), target, step=self._kernel_step)
        out[at] = each.value - self.veil.omission_rate[self._strata[at]] * each.omitted_mean
        return out

    def shares(self, target: Floats) -> Floats:
        """Share of the target among the candidates."""
        return np.asarray(target[self._candidate_sets].mean(axis=1) * self.counted)

    def values(self, strata: Int64s, draws: int, rng: np.random.Generator) -> list[Int64s]:
        """Values drawn from what the candidates and the records of the same stratum say."""
        if self._events.any():
            raise PolicyError(
                "Completed data sets are drawn from first events only.", hint='Ask for them with where="event=0".'
            )
        return draw_veil_values(self.veil, self._strata, self._candidate_sets, strata, draws, rng)


def _noise_variance(epsilon: float | None) -> float:
    """Variance of a count with two-sided geometric noise of scale 2 / epsilon."""
    if not epsilon:
        return 0.0
    q = float(np.exp(-epsilon / 2))
    return 2 * q / (1 - q) ** 2


def kernel_step(kernel: Mapping[str, Any] | None, shares: Floats, *, correction: bool = False) -> KernelStep | None:
    """The step of a `veil.json`, under a prior of rows x values; None where it has no kernel.

    The kernel is a sparse matrix (`starts`, `targets`, `weights`), or few numbers (`stay`, `within`, `parents`); a correction changes the value.
    """
    if not kernel:
        return None

    @cache
    def matrix(stratum: int) -> Floats:
        dense = (
            _sparse_matrix(kernel, shares.shape[1]) if "starts" in kernel else _compact_matrix(kernel, shares[stratum])
        )
        return _without_diagonal(dense) if correction else dense

    return lambda row, goal: np.asarray(matrix(row) @ goal)


def _sparse_matrix(kernel: Mapping[str, Any], size: int) -> Floats:
    starts, weights = np.asarray(kernel["starts"], dtype=np.int64), np.asarray(kernel["weights"], dtype=np.float64)
    dense = np.zeros((size, size))
    np.add.at(dense, (np.repeat(np.arange(size), np.diff(starts)), np.asarray(kernel["targets"])), weights)
    return normalize_rows(dense)


def _compact_matrix(kernel: Mapping[str, Any], shares: Floats) -> Floats:
    """Stay; of the changes a share within the parent, the rest anywhere, both as the row's prior says."""
    stay, within = np.asarray(kernel["stay"], dtype=np.float64) / SLOT_LENGTH, float(kernel["within"]) / SLOT_LENGTH
    parents = np.asarray(kernel["parents"])
    anywhere = np.tile(shares, (len(shares), 1))
    np.fill_diagonal(anywhere, 0)
    near = anywhere * (parents[:, None] == parents)
    moves = normalize_rows(anywhere)
    moves = np.where(near.any(axis=1)[:, None], within * normalize_rows(near) + (1 - within) * moves, moves)
    stay = np.where(moves.any(axis=1), stay, 1.0)
    return np.asarray(np.diag(stay) + (1 - stay)[:, None] * moves)


def _without_diagonal(matrix: Floats) -> Floats:
    moves = matrix.copy()
    np.fill_diagonal(moves, 0)
    return normalize_rows(moves)
