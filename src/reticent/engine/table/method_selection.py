"""Method selection: run several searches of one table within one time limit and keep the best outcome.

Guarantee: that of the selected search, against the same attacker. No other search loses less in its share of the time.
Not covered: what a search would find with all of the time. Each search gets an equal share of the remaining time.
Cost: the sum of the searches, at most the time limit of the policy plus the last step of each search.
Reference: none.
Differences from the paper: none; this is our own method.
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
"""Most nodes of a lattice that method selection searches for the optimum."""


@dataclass(frozen=True, repr=False)
class SearchMethod:
    """One search: its name, its function, and its weights of the quasi-identifiers if they differ from the policy's.

    `keeps_persons_whole`: it never splits the records of a person. `only_better`: it may give up on worse scores.
    A pilot run sets the first size of linked classes (`linked_k`), the expected `seconds`, and the `favorite`.
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
    """The outcome of a search, its metrics, and its score (lower is better)."""

    method: SearchMethod
    outcome: Outcome
    metrics: Metrics
    score: float

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of this search for the explanation of a release."""
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
    """Run all methods; return the best result (the first of equals) and all results, or refuse if none meets the policy."""
    results: list[SearchResult] = []
    refusal: GuaranteeError | None = None
    linked_k = encoded.linked_k
    for place, method in enumerate(methods):
        if encoded.cancellation.cancelled:
            raise WorkCancelledError("The search was cancelled; nothing was published.")
        if results and method.seconds > (
            math.inf if encoded.cancellation.seconds_left is None else encoded.cancellation.seconds_left
        ):
            continue  # a search that runs out of time finds little and takes the time of the others
        least = min((result.score for result in results), default=math.inf) if method.only_better else math.inf
        share = 1 if method.favorite else len(methods) - place
        first_k, small_steps = method.linked_k or linked_k, method.linked_k > 0
        task = replace(
            encoded.with_time_share(share),
            emphasis=method.emphasis,
            linked_k=first_k,
            small_steps=small_steps,
            loss_limit=least,
        )
        try:
            outcome = search_classes(task, method.find)
        except GuaranteeError as error:
            refusal = error
            continue
        # Linked records need classes of about the same size under every method, so later searches begin there.
        if not method.keeps_persons_whole and not outcome.explain.get("stopped"):
            linked_k = max(linked_k, int(outcome.explain.get("apart", 0)))
        metrics = measure_outcome(encoded, outcome)
        encoded.cancellation.report_loss(metrics.loss)
        results.append(SearchResult(method, outcome, metrics, score(outcome, metrics)))
    if not results:
        raise refusal or GuaranteeError("No method can release this table; nothing was published.")
    return min(results, key=lambda result: result.score), results


def loss_scorer(encoded: EncodedTable) -> Callable[[Outcome, Metrics], float]:
    """Return a function that scores an outcome by the policy's loss; outcomes without this loss come last."""
    name = encoded.policy.table.loss

    def score(_: Outcome, metrics: Metrics) -> float:
        return float(metrics.to_dict().get(name, float("inf")))

    return score
