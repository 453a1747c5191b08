"""Utility supervision: generalise first what a classifier can best do without.

Guarantee: every class satisfies the k, l and t of the policy, as in `optimal`; supervision only chooses among releases
that do.

Not covered: as `optimal`. The order of attributes is learned from the data and published with the release.

Cost: the utility tree trains O(m^2) support vector machines on a sample, for m quasi-identifiers; the rest is a walk along
one path of the lattice.

Reference: L. Wu, H. He, O. Zaiane, "Utility enhancement for privacy preserving health data publishing", ADMA 2013
(Algorithm 1); sequential backward selection on the F-measure of an SVM under three-fold cross-validation.

Differences from the paper: the rest left at the end of local recoding stays satisfied because a group may leave it only
if it does; suppression up to the policy's limit; macro F for more than two classes. `recoding: optimal` is ours: the
order of the tree as weights of the exhaustive search, so that it minimises the loss of useful attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.encode import Dictionary
from reticent.engine.table.base import TablePublisher
from reticent.engine.table.classifier import Judge, features
from reticent.engine.table.generalised import Outcome, publish
from reticent.engine.table.levels import Levels
from reticent.engine.table.optimal import full_domain, search
from reticent.engine.table.subject import Subject, by_levels, subject
from reticent.engine.table.utility_tree import UtilityTree, utility_tree
from reticent.errors import GuaranteeError, PolicyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from reticent.engine.rng import Rng
    from reticent.release import Release


class Supervised(TablePublisher):
    """Utility supervision of one table."""

    method = "supervised"

    def release(self, table: pa.Table) -> Release:
        """Learns the order of attributes from a sample, then generalises in that order."""
        given = subject(self.policy, table)
        tree = learn(given, table, self.rng)
        outcome = generalise(given, tree.batches(), tree, self.policy.table.supervision.recoding)
        said = {"utility": {" ".join(names): score for names, score in zip(tree.sets, tree.scores, strict=True)}}
        explain = {**outcome.explain, **said, "batches": [list(batch) for batch in tree.batches()]}
        return publish(given, table, Outcome(self.method, outcome.attributes, outcome.suppressed, explain), self.rng)


def learn(given: Subject, table: pa.Table, rng: Rng) -> UtilityTree:
    """Stages 1 and 2: a sample, and the utility tree of its attributes."""
    settings = given.policy.table.supervision
    target = settings.target or next(iter(given.policy.sensitive), None)
    if target is None or target not in table.column_names or target in given.quasi:
        raise PolicyError(
            "Supervision needs a column to predict that is no quasi-identifier.",
            hint="Give a column the role sensitive, or name one in table.supervision.target.",
        )
    goal = Dictionary().encode(table.column(target)).astype(np.int64)
    rows = sample(goal, settings.sample, settings.folds, rng)
    raw = {name: Levels(given.ladders[name], given.codes(name), 0) for name in given.quasi}
    judge = Judge(settings.folds, settings.kernel)

    def f_measure(names: tuple[str, ...]) -> float:
        return judge.scores(features([raw[name] for name in names], rows), goal[rows]).f_measure

    return utility_tree(given.quasi, f_measure)


def sample(goal: npt.NDArray[np.int64], size: int, folds: int, rng: Rng) -> npt.NDArray[np.int64]:
    """Random rows, as many of each class as there are (at most an equal share); classes too rare to fold are left out."""
    generator = np.random.default_rng(int.from_bytes(rng.key("supervision sample")[:8], "big"))
    counts = np.bincount(goal)
    usable = np.flatnonzero(counts >= folds)
    if len(usable) < 2:
        raise GuaranteeError(
            "The column to predict has fewer than two values that occur often enough to learn from.",
            hint="Name another column in table.supervision.target, or use --method optimal.",
        )
    share = max(folds, size // len(usable))
    picks = [generator.permutation(np.flatnonzero(goal == value))[:share] for value in usable]
    return np.sort(np.concatenate(picks))


def path(given: Subject, batches: Sequence[Sequence[str]]) -> list[list[int]]:
    """The nodes Algorithm 1 walks through: a batch climbs level by level to its top before the next one starts."""
    heights = {name: given.ladders[name].height for name in given.quasi}
    levels = dict.fromkeys(given.quasi, 0)
    nodes = [list(levels.values())]
    for batch in batches:
        while any(levels[name] < heights[name] for name in batch):
            for name in batch:
                levels[name] = min(levels[name] + 1, heights[name])
            nodes.append(list(levels.values()))
    return nodes


def generalise(given: Subject, batches: Sequence[Sequence[str]], tree: UtilityTree | None, recoding: str) -> Outcome:
    """Stages 3 and 4: generalise in the given order until every class satisfies the policy."""
    if recoding == "optimal" and tree is not None:
        return full_domain(given, search(given, weights=weights(given, tree)), "supervised")
    nodes = path(given, batches)
    return _globally(given, nodes) if recoding == "global" else _locally(given, nodes)


def weights(given: Subject, tree: UtilityTree) -> list[float]:
    """Importance by the order of removal: what was given up last matters most."""
    place = {name: i + 1 for i, name in enumerate(tree.removal)}
    return [
        given_weight * place[name] / len(place) for name, given_weight in zip(given.quasi, given.weights, strict=True)
    ]


def _globally(given: Subject, nodes: list[list[int]]) -> Outcome:
    for checked, levels in enumerate(nodes, start=1):
        score, suppressed, classes = given.collapsed.evaluate(
            given.model, levels, loss=given.policy.table.loss, weights=given.weights
        )
        if suppressed <= given.limit and suppressed < given.rows:
            found: dict[str, Any] = {"levels": levels, "score": score, "classes": classes, "checked": checked}
            return full_domain(given, {**found, "complete": False, "bound": 0.0}, "supervised")
    raise _refusal(given)


def _locally(given: Subject, nodes: list[list[int]]) -> Outcome:
    levels, gone = given.collapsed.localize(
        given.model, loss=given.policy.table.loss, weights=given.weights, limit=given.limit, order=nodes
    )
    lost = int(gone.sum())
    if lost > given.limit or lost == given.rows:
        raise _refusal(given)
    return Outcome("supervised", by_levels(given, levels), gone, {"nodes": {"path": len(nodes)}})


def _refusal(given: Subject) -> GuaranteeError:
    return GuaranteeError(
        f"No step of the supervised order meets the policy with at most {given.limit:,} of {given.rows:,} records suppressed; "
        "nothing was published.",
        hint="Allow more suppression, lower k or l, or raise t.",
    )
