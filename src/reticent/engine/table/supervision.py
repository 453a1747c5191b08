"""Utility supervision: generalise first what a classifier can best do without.

Guarantee: every class satisfies the k, l and t of the policy, as in `optimal`; supervision only chooses among releases
that do.

Not covered: as `optimal`. The order of attributes is learned from the data and published with the release.

The utility tree says which attributes a classifier can best do without, by sequential backward selection. From all attributes down to none:
each step evaluates every set with one attribute removed and goes on from the best. The attributes outside the best set of a (sub)tree form
the next batch to generalise. Where time runs out, the attributes that are left are given up in the order of what their sets scored last.

Cost: the utility tree trains O(m^2) support vector machines on a sample, for m quasi-identifiers, in at most a third of the time
limit; the rest is a walk along one path of the lattice.

Reference: L. Wu, H. He, O. Zaiane, "Utility enhancement for privacy preserving health data publishing", ADMA 2013
(Algorithm 1); sequential backward selection on the F-measure of an SVM under three-fold cross-validation.

Differences from the paper: the rest left at the end of local recoding stays satisfied because a group may leave it only
if it does; suppression up to the policy's limit; macro F for more than two classes. `recoding: optimal` is ours: the order
of the tree weighs the losses of the exhaustive search, and of the optima it finds the one with the best F is released.
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
"""Shares of the time, each as long as a search, that are left for the scores of what the searches find."""
CLASSES = 16
"""Values of the target beyond the most frequent ones are not predicted: machines are trained for every pair of them.

They share one sample, so that up to here more of them cost little: Adult has 14, and takes 11.4 s with all where it took 10.9 with ten.
"""
POWERS = (0, 1, 2)
"""Candidates of `recoding: optimal`: the optimum of each loss, attributes weighed by each power of their rank."""


class Supervised(TablePublisher):
    """Utility supervision of one table."""

    method = "supervised"

    def release(self, table: pa.Table) -> Release:
        """Learns the order of attributes from a sample, then generalises in that order."""
        encoded = self.encode(table)
        critic = make_scorer(encoded, table, self.rng)
        # The searches and the scores of what they find take the rest.
        part = encoded.with_time_share(3).cancellation
        tree = utility_tree(encoded.quasi, critic.f_measure_of, is_late=lambda: part.is_late)
        recoding = self.policy.table.supervision.recoding

        def find(asked: EncodedTable) -> Outcome:
            return (
                generalize_optimally(asked, tree, critic)
                if recoding == "optimal"
                else generalize(asked, tree.batches(), recoding)
            )

        outcome = search_classes(encoded, find)
        scored = {names: score for names, score in zip(tree.sets, tree.scores, strict=True) if score != NOT_EVALUATED}
        account = {"utility": {" ".join(names): score for names, score in scored.items()}, "stopped": part.stopped}
        explain = {**outcome.explain, **account, "batches": [list(batch) for batch in tree.batches()]}
        release, self._source_rows = publish(
            encoded, table, Outcome(self.method, outcome.attributes, outcome.suppressed, explain), self.rng
        )
        return release


@dataclass(frozen=True, repr=False)
class UtilityScorer:
    """Stage 1: a sample of the table, and a classifier that scores what is left of it."""

    encoded: EncodedTable
    target_codes: Int64s
    rows: Int64s
    classifier: CrossValidation

    def scores(self, attributes: Sequence[Levels], suppressed: Bools | None = None) -> Scores:
        """How well the target is predicted from published attributes."""
        rows = self.rows if suppressed is None else self.rows[~suppressed[self.rows]]
        return self.classifier.scores(
            features(attributes, rows), self.target_codes[rows], positive_class(self.target_codes)
        )

    def f_measure_of(self, names: tuple[str, ...]) -> float:
        """F-measure of the original values of some attributes."""
        return self.scores(
            [Levels(self.encoded.hierarchies[name], self.encoded.codes(name), 0) for name in names]
        ).f_measure


def make_scorer(encoded: EncodedTable, table: pa.Table, rng: Rng) -> UtilityScorer:
    """Draws the sample that supervision learns from."""
    settings = encoded.policy.table.supervision
    target = settings.target or next(iter(encoded.policy.sensitive), None)
    if target is None or target not in table.column_names or target in encoded.quasi:
        raise PolicyError(
            "Supervision needs a column to predict that is no quasi-identifier.",
            hint="Give a column the role sensitive, or name one in table.supervision.target.",
        )
    goal = Dictionary().encode(table.column(target)).astype(np.int64)
    rows = sample(goal, settings.sample, settings.folds, rng)
    return UtilityScorer(encoded, goal, rows, CrossValidation(settings.folds, settings.kernel))


def sample(goal: Int64s, size: int, folds: int, rng: Rng) -> Int64s:
    """Random rows, an equal share of each of the frequent classes where there are enough; too rare to fold: left out."""
    generator = np.random.default_rng(int.from_bytes(rng.key("supervision sample")[:8], "big"))
    counts = np.bincount(goal)
    frequent = np.argsort(-counts, kind="stable")[:CLASSES]
    usable = np.sort(frequent[counts[frequent] >= folds])
    if len(usable) < 2:
        raise GuaranteeError(
            "The column to predict has fewer than two values that occur often enough to learn from.",
            hint="Name another column in table.supervision.target, or use --method optimal.",
        )
    share = max(folds, size // len(usable))
    picks = [generator.permutation(np.flatnonzero(goal == value))[:share] for value in usable]
    return np.sort(np.concatenate(picks))


def lattice_path(encoded: EncodedTable, batches: Sequence[Sequence[str]]) -> list[list[int]]:
    """The nodes Algorithm 1 walks through: a batch climbs level by level to its top before the next one starts."""
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
    """Stages 3 and 4: generalise in the given order until every class satisfies the policy."""
    nodes = lattice_path(encoded, batches)
    return _generalize_globally(encoded, nodes) if recoding == "global" else _generalize_locally(encoded, nodes)


def generalize_optimally(encoded: EncodedTable, tree: UtilityTree, scorer: UtilityScorer) -> Outcome:
    """Of the optima under several losses, weighed by the order of the tree, the one that leaves the most utility."""
    rank = {name: (i + 1) / len(tree.removal) for i, name in enumerate(tree.removal)}
    nodes: dict[tuple[int, ...], dict[str, Any]] = {}
    tries = list(product(LOSSES, POWERS))
    for at, (loss, power) in enumerate(tries):
        weights = [rank[name] ** power for name in encoded.quasi]
        node = search(encoded.with_time_share(len(tries) - at + SCORING_SHARES), weights=weights, loss=loss)
        nodes.setdefault(tuple(node["levels"]), node)
    outcomes = [full_domain(encoded, node, "supervised") for node in nodes.values()]
    scored = [
        scorer.scores([a for a in o.attributes.values() if isinstance(a, Levels)], o.suppressed) for o in outcomes
    ]
    best = max(range(len(outcomes)), key=lambda i: (scored[i].f_measure, -i))
    candidates = {"candidates": len(outcomes), "f_measure": scored[best].f_measure}
    return replace(outcomes[best], explain={**outcomes[best].explain, **candidates})


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
    levels, gone = recoding.levels, recoding.suppressed
    lost = int(gone.sum())
    if lost > encoded.limit or lost == encoded.rows:
        raise _refusal(encoded)
    return Outcome("supervised", attributes_at_levels(encoded, levels), gone, {"nodes": {"path": len(nodes)}})


def _refusal(encoded: EncodedTable) -> GuaranteeError:
    return GuaranteeError(
        f"No step of the supervised order meets the policy with at most {encoded.limit:,} of {encoded.rows:,} records suppressed; "
        "nothing was published.",
        hint="Allow more suppression, lower k or l, or raise t.",
    )


NOT_EVALUATED = -1.0
"""Stands for the F-measure of a set that was not evaluated: below every other, so that these sets come last, one by one."""


@dataclass(frozen=True)
class UtilityTree:
    """The spine of the tree: nested attribute sets, from all to none, with their F-measures.

    Siblings that were evaluated and not chosen have lower F than the chosen one, so no search ever returns them.
    """

    sets: tuple[tuple[str, ...], ...]
    scores: tuple[float, ...]
    evaluated: int

    @property
    def removal(self) -> tuple[str, ...]:
        """Attributes in the order in which they were given up."""
        pairs = zip(self.sets, self.sets[1:], strict=False)
        return tuple(next(iter(set(larger) - set(smaller))) for larger, smaller in pairs)

    def batches(self) -> list[tuple[str, ...]]:
        """Attributes to generalise, batch after batch: outside the best set, then outside the best set below it, ...

        >>> UtilityTree((("a", "b", "c"), ("a", "b"), ("a",), ()), (0.8, 0.7, 0.75, 0.5), 6).batches()
        [('b', 'c'), ('a',)]
        """
        batches, root = [], 0
        while root + 1 < len(self.sets):
            # Earlier is larger: among equals the larger set wins.
            best = max(range(root + 1, len(self.sets)), key=lambda i: (self.scores[i], -i))
            batches.append(tuple(name for name in self.sets[root] if name not in self.sets[best]))
            root = best
        return batches


def utility_tree(
    attributes: Sequence[str],
    f_measure: Callable[[tuple[str, ...]], float],
    is_late: Callable[[], bool] = lambda: False,
) -> UtilityTree:
    """Builds the tree; ties are broken by the order of the attributes. `late` says when time is up."""
    current = tuple(attributes)
    sets, scores, evaluated = [current], [f_measure(current)], 1
    without = dict.fromkeys(current, NOT_EVALUATED)
    while current:
        values: dict[str, float] = {}
        for gone in current:
            if is_late():
                break
            values[gone] = f_measure(tuple(name for name in current if name != gone))
        evaluated, without = evaluated + len(values), without | values
        whole = len(values) == len(current)
        best = max(current, key=lambda name: (without[name], -current.index(name)))
        current = tuple(name for name in current if name != best)
        sets.append(current)
        scores.append(without[best] if whole else NOT_EVALUATED)
    return UtilityTree(tuple(sets), tuple(scores), evaluated)
