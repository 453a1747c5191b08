"""Veiled records, each with a set of candidates, and `veil.json` with the parameters of the veil."""

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
        table: the records: fields, `row`, `event`, optionally `person`, and the candidates.
        metadata: the content of `veil.json`.
        candidates: names of the candidate columns.
        correction: later events are corrections, so the value always changes.
    """

    table: pa.Table
    metadata: Mapping[str, Any]
    candidates: tuple[str, ...]
    correction: bool = False

    @cached_property
    def domain(self) -> tuple[str, ...]:
        """The values that can be candidates."""
        return tuple(str(label) for label in self.metadata["domain"])

    @property
    def bounded(self) -> bool:
        """False: the values are hidden, so low and high are confidence intervals."""
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on records that are not counted."""
        size = self.table.num_rows
        uncounted = size - int(self.counted.sum())
        if not uncounted:
            return ()
        if self._persons is None:
            why = "this release does not link a person's records (`link` in the policy)."
        elif self._kernel_step is None:
            why = "this release has no transition kernel."
        else:
            why = "the first events of their persons are in earlier releases. Read all releases together, in order."
        return (
            f"{uncounted:,} later events are not counted: {why} The answer covers the other {size - uncounted:,} records.",
        )

    @cached_property
    def veil(self) -> Veil:
        """The published parameters of the veil."""
        document, segments = self.metadata, np.asarray(self.metadata["segments"], dtype=np.uint64)
        if int(document.get("slot_length", SLOT_LENGTH)) != SLOT_LENGTH:
            raise DataError("This version cannot read the slot length in veil.json.", hint="Update Reticent.")
        omission_rate = np.asarray(document.get("omission_rate") or np.zeros(len(segments)), dtype=np.float64)
        # The noise is in a share of persons; there are as many persons as first events.
        first = self._events == 0
        size = np.bincount(self._strata[first] if first.any() else self._strata, minlength=len(segments))
        noise = _noise_variance(document.get("omission_rate_epsilon")) / np.maximum(size, 1) ** 2
        permutations = np.asarray(document["permutations"], dtype=np.int64)
        veil = Veil(
            self.domain,
            segments,
            permutations,
            omission_rate,
            np.where(size > 0, noise, 0.0),
            self._noisy_counts,
            stratum_sizes=size.astype(np.float64),
        )
        if not omission_rate.any() or not first.any():
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
                f"{int((sets < 0).any(axis=1).sum())} records have candidates outside the domain in veil.json.",
                hint="Get the release again: its files do not belong together.",
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
        """Index of the record of the same person's first event; -1 if it is not in the table."""
        first = np.where(self._events == 0, np.arange(len(self._events)), -1)
        if self._persons is None or not (self._events > 0).any():
            return first
        first_of_person = np.full(int(self._persons.max(initial=-1)) + 1, -1)
        at = np.flatnonzero(self._events == 0)
        first_of_person[self._persons[at]] = at
        return np.where(self._events == 0, first, first_of_person[self._persons])

    @cached_property
    def counted(self) -> Bools:
        """Records that can be counted: first events, and later events if the first event and the kernel are known."""
        return np.asarray((self._events == 0) | ((self._first_record >= 0) & (self._kernel_step is not None)))

    @cached_property
    def _kernel_step(self) -> Any:
        return kernel_step(self.metadata.get("kernel"), self.veil.shares, correction=self.correction)

    def counts(self, question: Question) -> Counts:
        """Return HT2 estimates; for coarse cells, the interval runs from the sure matches to all possible matches."""
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
        """Return the sums over all first events, if the release has noisy counts; otherwise None."""
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
        """Return the contribution of each record to an estimate; 0 for records that cannot be counted."""
        at, out = np.flatnonzero(self.counted), np.zeros(len(self.counted))
        each = scores(self.veil, self._records(at), target, step=self._kernel_step)
        out[at] = each.value - self.veil.omission_rate[self._strata[at]] * each.omitted_mean
        return out

    def shares(self, target: Floats) -> Floats:
        """Return the share of the target among each record's candidates."""
        return np.asarray(target[self._candidate_sets].mean(axis=1) * self.counted)

    def values(self, strata: Int64s, draws: int, rng: np.random.Generator) -> list[Int64s]:
        """Draw values given the candidates and the other records of the same stratum."""
        if self._events.any():
            raise PolicyError(
                "Completed data sets can be drawn from first events only.", hint='Select them with where="event=0".'
            )
        return draw_veil_values(self.veil, self._strata, self._candidate_sets, strata, draws, rng)


def _noise_variance(epsilon: float | None) -> float:
    """Return the variance of two-sided geometric noise of scale 2 / epsilon."""
    if not epsilon:
        return 0.0
    q = float(np.exp(-epsilon / 2))
    return 2 * q / (1 - q) ** 2


def kernel_step(kernel: Mapping[str, Any] | None, shares: Floats, *, correction: bool = False) -> KernelStep | None:
    """Return the kernel step of a `veil.json` for a prior of strata x values; None if there is no kernel.

    The kernel is a sparse matrix (`starts`, `targets`, `weights`) or a few numbers (`stay`, `within`, `parents`). With
    `correction`, the value always changes.
    """
    if not kernel:
        return None

    @cache
    def matrix(stratum: int) -> Floats:
        dense = (
            _sparse_matrix(kernel, shares.shape[1]) if "starts" in kernel else _compact_matrix(kernel, shares[stratum])
        )
        return _without_diagonal(dense) if correction else dense

    return lambda stratum, goal: np.asarray(matrix(stratum) @ goal)


def _sparse_matrix(kernel: Mapping[str, Any], size: int) -> Floats:
    starts, weights = np.asarray(kernel["starts"], dtype=np.int64), np.asarray(kernel["weights"], dtype=np.float64)
    dense = np.zeros((size, size))
    np.add.at(dense, (np.repeat(np.arange(size), np.diff(starts)), np.asarray(kernel["targets"])), weights)
    return normalize_rows(dense)


def _compact_matrix(kernel: Mapping[str, Any], shares: Floats) -> Floats:
    """Build the kernel: stay, or change to a value of the same parent (share `within`) or any value, by the prior."""
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
