"""Several searches of one table, one after the other within one budget; the best of what they find.

Guarantee: that of the search that wins; and no search, given its share of the time, loses less.
Not covered: what a search would find with all of the time; each gets an equal share of what the others left.
Cost: the sum of its searches, at most the time limit of the policy and the last step of each.
Reference: none.
Differences from the paper: ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reticent.engine.table.encoded_table import EncodedTable
from reticent.engine.table.generalized import Outcome, measure_outcome
from reticent.engine.table.people import search_classes
from reticent.errors import GuaranteeError, WorkCancelledError
from reticent.utility.metrics import Metrics

SMALL_LATTICE = 1 << 18
"""Lattices of more nodes are not searched for their optimum beside other methods."""


@dataclass(frozen=True, repr=False)
class SearchMethod:
    """One search: what it is called, how it is done, by which weights of the quasi-identifiers if not the policy's.

    `whole` says that it never parts the records of a person; `only_better` that it may give up on what scores more than the others.
    A rehearsal says with how many persons of linked classes to begin (`apart`), how many `seconds` it will take, and which is its `favourite`.
    """

    name: str
    find: Callable[[EncodedTable], Outcome]
    sets: bool = False
    emphasis: tuple[float, ...] | None = None
    keeps_persons_whole: bool = False
    only_better: bool = False
    linked_k: int = 0
    seconds: float = 0.0
    favorite: bool = False


@dataclass(frozen=True, repr=False)
class SearchResult:
    """What a search found, what it loses, and how it scores (less is better)."""

    method: SearchMethod
    outcome: Outcome
    metrics: Metrics
    score: float

    def to_dict(self) -> dict[str, Any]:
        """The entry for people who compare: figures only."""
        explain = self.outcome.explain
        return {
            "method": self.method.name,
            "sets": self.method.sets,
            "weighed": self.method.emphasis is not None,
            "whole_persons": self.method.keeps_persons_whole,
            "loss": self.metrics.loss,
            "score": self.score,
            "suppressed": int(self.outcome.suppressed.sum()),
            "stopped": bool(explain.get("stopped", False)),
        }


def select_method(
    encoded: EncodedTable, methods: Sequence[SearchMethod], score: Callable[[Outcome, Metrics], float]
) -> tuple[SearchResult, list[SearchResult]]:
    """Runs all parts; the best entry (the first of equals) and all of them. Refuses where no part meets the policy."""
    entries: list[SearchResult] = []
    refusal: GuaranteeError | None = None
    apart = encoded.linked_k
    for place, part in enumerate(methods):
        if encoded.cancellation.cancelled:
            raise WorkCancelledError("The search was cancelled; nothing was published.")
        if entries and part.seconds > (
            math.inf if encoded.cancellation.seconds_left is None else encoded.cancellation.seconds_left
        ):
            continue  # a search that is stopped finds little, and takes its time
        least = min((entry.score for entry in entries), default=math.inf) if part.only_better else math.inf
        share = 1 if part.favorite else len(methods) - place
        begin, near = part.linked_k or apart, part.linked_k > 0
        asked = replace(
            encoded.with_time_share(share), emphasis=part.emphasis, linked_k=begin, small_steps=near, loss_limit=least
        )
        try:
            outcome = search_classes(asked, part.find)
        except GuaranteeError as error:
            refusal = error
            continue
        # What links a person's records asks for classes of much the same size whatever forms them: later searches begin there.
        if not part.keeps_persons_whole and not outcome.explain.get("stopped"):
            apart = max(apart, int(outcome.explain.get("apart", 0)))
        metrics = measure_outcome(encoded, outcome)
        encoded.cancellation.report_loss(metrics.loss)
        entries.append(SearchResult(part, outcome, metrics, score(outcome, metrics)))
    if not entries:
        raise refusal or GuaranteeError("No method can release this table; nothing was published.")
    return min(entries, key=lambda entry: entry.score), entries


def loss_scorer(encoded: EncodedTable) -> Callable[[Outcome, Metrics], float]:
    """The loss of the policy; releases that it does not apply to come last."""
    name = encoded.policy.table.loss

    def score(_: Outcome, metrics: Metrics) -> float:
        return float(metrics.to_dict().get(name, float("inf")))

    return score
