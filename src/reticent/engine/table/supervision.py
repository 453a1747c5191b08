"""Utility supervision: generalize first the attributes that a classifier needs least.

Guarantee: every class satisfies the k, l and t of the policy, against the same attacker as in `optimal`. Supervision
only chooses among releases that satisfy the policy.

Not covered: as `optimal`. The order of attributes is learned from the data and published with the release.

The utility tree ranks the attributes by sequential backward selection, from all attributes down to none: each step
evaluates every set with one attribute removed and continues with the best set. The attributes outside the best set of a
(sub)tree form the next batch to generalize. If time runs out, the last scores decide the order of the remaining
attributes.

Cost: the utility tree trains O(m^2) support vector machines on a sample, for m quasi-identifiers, in at most a third of
the time limit; the rest is a walk along one path of the lattice.

Reference: L. Wu, H. He, O. Zaiane, "Utility enhancement for privacy preserving health data publishing", ADMA 2013
(Algorithm 1); sequential backward selection on the F-measure of an SVM under three-fold cross-validation.

Differences from the paper: in local recoding a group may leave the rest only if the rest still satisfies the policy;
suppression up to the policy's limit; macro F-measure for more than two classes. `recoding: optimal` is our own: the
order of the tree weights the losses of the exhaustive search, and the optimum with the best F-measure is released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Int64s
from reticent.encode import Dictionary
from reticent.engine.rng import Rng
from reticent.engine.table.base import TablePublisher
from reticent.engine.table.classifier import CrossValidation, Scores, features, positive_class
from reticent.engine.table.encoded_table import EncodedTable, attributes_at_levels
from reticent.engine.table.generalized import Outcome, publish
from reticent.engine.table.levels import Levels
from reticent.engine.table.optimal import full_domain, search
from reticent.engine.table.people import search_classes
from reticent.errors import GuaranteeError, PolicyError
from reticent.release import Release

LOSSES = ("loss", "height", "entropy")
SCORING_SHARES = 3
"""Shares of the time, each as long as one search, that are reserved for scoring the outcomes."""
CLASSES = 16
"""Most values of the target that are predicted, the most frequent first: one machine is trained per pair of values.

All values share one sample, so more values cost little up to this number.
"""
POWERS = (0, 1, 2)
"""Powers of an attribute's rank that weight the losses of `recoding: optimal`."""


class Supervised(TablePublisher):
    """Utility supervision of one table."""

    method = "supervised"

    def release(self, table: pa.Table) -> Release:
        """Learn the order of attributes from a sample, then generalize in that order."""
        encoded = self.encode(table)
        scorer = make_scorer(encoded, table, self.rng)
        # The searches and the scoring of their outcomes take the rest of the time.
        limit = encoded.with_time_share(3).cancellation
        tree = utility_tree(encoded.quasi, scorer.f_measure_of, is_late=lambda: limit.is_late)
        recoding = self.policy.table.supervision.recoding

        def find(task: EncodedTable) -> Outcome:
            return (
                generalize_optimally(task, tree, scorer)
                if recoding == "optimal"
                else generalize(task, tree.batches(), recoding)
            )

        outcome = search_classes(encoded, find)
        scores = {names: score for names, score in zip(tree.sets, tree.scores, strict=True) if score != NOT_EVALUATED}
        figures = {"utility": {" ".join(names): score for names, score in scores.items()}, "stopped": limit.stopped}
        explain = {**outcome.explain, **figures, "batches": [list(batch) for batch in tree.batches()]}
        release, self._source_rows = publish(
            encoded, table, Outcome(self.method, outcome.attributes, outcome.suppressed, explain), self.rng
        )
        return release


@dataclass(frozen=True, repr=False)
class UtilityScorer:
    """Stage 1: a sample of the table, and a classifier that scores published attributes on it."""

    encoded: EncodedTable
    target_codes: Int64s
    rows: Int64s
    classifier: CrossValidation

    def scores(self, attributes: Sequence[Levels], suppressed: Bools | None = None) -> Scores:
        """Return how well published attributes predict the target."""
        rows = self.rows if suppressed is None else self.rows[~suppressed[self.rows]]
        return self.classifier.scores(
            features(attributes, rows), self.target_codes[rows], positive_class(self.target_codes)
        )

    def f_measure_of(self, names: tuple[str, ...]) -> float:
        """Return the F-measure of the original values of some attributes."""
        return self.scores(
            [Levels(self.encoded.hierarchies[name], self.encoded.codes(name), 0) for name in names]
        ).f_measure


def make_scorer(encoded: EncodedTable, table: pa.Table, rng: Rng) -> UtilityScorer:
    """Draw the sample for supervision and return its scorer."""
    settings = encoded.policy.table.supervision
    target = settings.target or next(iter(encoded.policy.sensitive), None)
    if target is None or target not in table.column_names or target in encoded.quasi:
        raise PolicyError(
            "Supervision needs a column to predict that is not a quasi-identifier.",
            hint="Give a column the role sensitive, or name one in table.supervision.target.",
        )
    codes = Dictionary().encode(table.column(target)).astype(np.int64)
    rows = sample(codes, settings.sample, settings.folds, rng)
    return UtilityScorer(encoded, codes, rows, CrossValidation(settings.folds, settings.kernel))


def sample(target: Int64s, size: int, folds: int, rng: Rng) -> Int64s:
    """Draw random rows with equal shares of the frequent values, without values too rare for the folds."""
    generator = np.random.default_rng(int.from_bytes(rng.key("supervision sample")[:8], "big"))
    counts = np.bincount(target)
    frequent = np.argsort(-counts, kind="stable")[:CLASSES]
    usable = np.sort(frequent[counts[frequent] >= folds])
    if len(usable) < 2:
        raise GuaranteeError(
            "The column to predict has fewer than two values that are frequent enough for training.",
            hint="Name another column in table.supervision.target, or use --method optimal.",
        )
    share = max(folds, size // len(usable))
    picks = [generator.permutation(np.flatnonzero(target == value))[:share] for value in usable]
    return np.sort(np.concatenate(picks))


def lattice_path(encoded: EncodedTable, batches: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the lattice nodes of Algorithm 1: a batch climbs level by level to the top before the next batch starts."""
    heights = {name: encoded.hierarchies[name].height for name in encoded.quasi}
    levels = dict.fromkeys(encoded.quasi, 0)
    nodes = [list(levels.values())]
    for batch in batches:
        while any(levels[name] < heights[name] for name in batch):
            for name in batch:
                levels[name] = min(levels[name] + 1, heights[name])
            nodes.append(list(levels.values()))
    return nodes


def generalize(encoded: EncodedTable, batches: Sequence[Sequence[str]], recoding: str) -> Outcome:
    """Stages 3 and 4: generalize in the given order until every class satisfies the policy."""
    nodes = lattice_path(encoded, batches)
    return _generalize_globally(encoded, nodes) if recoding == "global" else _generalize_locally(encoded, nodes)


def generalize_optimally(encoded: EncodedTable, tree: UtilityTree, scorer: UtilityScorer) -> Outcome:
    """Return the optimum with the best F-measure among several losses, weighted by the order of the tree."""
    rank = {name: (i + 1) / len(tree.removal) for i, name in enumerate(tree.removal)}
    nodes: dict[tuple[int, ...], dict[str, Any]] = {}
    searches = list(product(LOSSES, POWERS))
    for at, (loss, power) in enumerate(searches):
        weights = [rank[name] ** power for name in encoded.quasi]
        node = search(encoded.with_time_share(len(searches) - at + SCORING_SHARES), weights=weights, loss=loss)
        nodes.setdefault(tuple(node["levels"]), node)
    outcomes = [full_domain(encoded, node, "supervised") for node in nodes.values()]
    scores = [
        scorer.scores([a for a in o.attributes.values() if isinstance(a, Levels)], o.suppressed) for o in outcomes
    ]
    best = max(range(len(outcomes)), key=lambda i: (scores[i].f_measure, -i))
    figures = {"candidates": len(outcomes), "f_measure": scores[best].f_measure}
    return replace(outcomes[best], explain={**outcomes[best].explain, **figures})


def _generalize_globally(encoded: EncodedTable, nodes: list[list[int]]) -> Outcome:
    for checked, levels in enumerate(nodes, start=1):
        node = encoded.collapsed.evaluate(
            encoded.model, levels, loss=encoded.policy.table.loss, weights=encoded.weights
        )
        if node.suppressed <= encoded.limit and node.suppressed < encoded.rows:
            figures: dict[str, Any] = {
                "levels": levels,
                "score": node.score,
                "classes": node.classes,
                "checked": checked,
            }
            return full_domain(encoded, {**figures, "complete": False, "bound": 0.0}, "supervised")
    raise _refusal(encoded)


def _generalize_locally(encoded: EncodedTable, nodes: list[list[int]]) -> Outcome:
    recoding = encoded.collapsed.localize(
        encoded.model,
        loss=encoded.policy.table.loss,
        weights=encoded.weights,
        limit=encoded.limit,
        path=nodes,
        cancellation=encoded.cancellation,
    )
    levels, suppressed = recoding.levels, recoding.suppressed
    lost = int(suppressed.sum())
    if lost > encoded.limit or lost == encoded.rows:
        raise _refusal(encoded)
    return Outcome("supervised", attributes_at_levels(encoded, levels), suppressed, {"nodes": {"path": len(nodes)}})


def _refusal(encoded: EncodedTable) -> GuaranteeError:
    return GuaranteeError(
        f"No step of the supervised generalization meets the policy with at most {encoded.limit:,} of "
        f"{encoded.rows:,} records suppressed; nothing was published.",
        hint="Allow more suppression, lower k or l, or raise t.",
    )


NOT_EVALUATED = -1.0
"""F-measure of a set that was not evaluated: below every other, so that these sets come last, one by one."""


@dataclass(frozen=True)
class UtilityTree:
    """The main path of the tree: nested attribute sets, from all to none, with their F-measures.

    Evaluated siblings have no higher F-measure than the chosen set, so no search ever returns them.
    """

    sets: tuple[tuple[str, ...], ...]
    scores: tuple[float, ...]
    evaluated: int

    @property
    def removal(self) -> tuple[str, ...]:
        """Return the attributes in the order of their removal."""
        pairs = zip(self.sets, self.sets[1:], strict=False)
        return tuple(next(iter(set(larger) - set(smaller))) for larger, smaller in pairs)

    def batches(self) -> list[tuple[str, ...]]:
        """Return the batches of attributes to generalize: outside the best set, then outside the best set below it, ...

        >>> UtilityTree((("a", "b", "c"), ("a", "b"), ("a",), ()), (0.8, 0.7, 0.75, 0.5), 6).batches()
        [('b', 'c'), ('a',)]
        """
        batches, root = [], 0
        while root + 1 < len(self.sets):
            # Earlier sets are larger: the larger of equal sets wins.
            best = max(range(root + 1, len(self.sets)), key=lambda i: (self.scores[i], -i))
            batches.append(tuple(name for name in self.sets[root] if name not in self.sets[best]))
            root = best
        return batches


def utility_tree(
    attributes: Sequence[str],
    f_measure: Callable[[tuple[str, ...]], float],
    is_late: Callable[[], bool] = lambda: False,
) -> UtilityTree:
    """Build the tree until `is_late` returns True; the order of the attributes breaks ties."""
    current = tuple(attributes)
    sets, scores, evaluated = [current], [f_measure(current)], 1
    without = dict.fromkeys(current, NOT_EVALUATED)
    while current:
        values: dict[str, float] = {}
        for removed in current:
            if is_late():
                break
            values[removed] = f_measure(tuple(name for name in current if name != removed))
        evaluated, without = evaluated + len(values), without | values
        complete = len(values) == len(current)
        best = max(current, key=lambda name: (without[name], -current.index(name)))
        current = tuple(name for name in current if name != best)
        sets.append(current)
        scores.append(without[best] if complete else NOT_EVALUATED)
    return UtilityTree(tuple(sets), tuple(scores), evaluated)
