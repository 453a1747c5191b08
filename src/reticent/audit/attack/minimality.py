"""Minimality: the algorithm publishes the finest safe table, so every finer table was unsafe; this discloses values.

The attacker knows everybody's quasi-identifiers and tries each recoding that is one step finer. If it is still
k-anonymous, it must break l-diversity somewhere. The attacker samples random worlds (values shuffled within each
published class), keeps the worlds in which the finer table breaks l-diversity, and counts each person's values there.

Guarantee: the attacker's posterior is estimated by sampling; guesses are scored against the true values.
Not covered: local recodings, which differ from record to record.
Cost: worlds x rows per quasi-identifier.
Reference: R. Wong, A. Fu, K. Wang, J. Pei, "Minimality attack in privacy preserving data publishing", VLDB 2007.
Differences from the paper: worlds are sampled, so any number of classes and values is possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Bools, Floats, Int64s
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.homogeneity import homogeneity
from reticent.audit.attack.outcome import Outcome
from reticent.policy import Policy
from reticent.verify.groups import Groups, codes, normalize_rows, number_rows
from reticent.verify.labels.coverage import levels
from reticent.verify.requirements import Requirement, diversity, policy_requirements, requirements

QUESTION = (
    "Knows everybody's quasi-identifiers, and that the algorithm publishes the finest safe table. "
    "Concludes that the next finer table was not safe."
)
WORLD_COUNT = 200
_ROWS = 100_000  # in larger tables a violation somewhere says nothing about a single class


@dataclass(frozen=True, repr=False)
class _FinerTable:
    """The class of each original row, in the published table and in a finer recoding."""

    row_class: Int64s
    row_part: Int64s
    value: Int64s
    values: tuple[str | None, ...]


def minimality(evidence: Evidence) -> Outcome | None:
    """Attack a full-domain generalized release; the attacker knows the quasi-identifiers of the original."""
    release, policy, original = evidence.releases[-1], evidence.policy, evidence.original
    rule = next((r for r in requirements(release.claims) + policy_requirements(policy) if r.model == "l"), None)
    data = release.tables.get("data")
    if release.shape != "generalized" or data is None or original is None or rule is None:
        return None
    if not policy.sensitive or original.num_rows > _ROWS:
        return None
    inferences = [_infer(finer, rule, evidence.rng) for finer in _finer_tables(original, policy, data)]
    if not inferences:
        return None
    posterior, right = max(inferences, key=lambda inference: float(inference[0].mean()))
    plain = homogeneity(evidence)
    return Outcome.from_posterior(
        "minimality",
        QUESTION,
        posterior,
        evidence.key,
        right=float(right.sum()),
        counted=True,
        claim=float(1 / rule.numbers[0]) if rule.kind == "frequency" else None,
        notes=("The rule itself allows the share of the most frequent value in a class.",),
        figures={"without_the_argument": plain.accuracy if plain else 0.0},
    )


def _finer_tables(original: pa.Table, policy: Policy, data: pa.Table) -> list[_FinerTable]:
    """Return every recoding that is one step finer in one column and still k-anonymous."""
    k = max([int(r.numbers[0]) for r in policy_requirements(policy) if r.model == "k"], default=1)
    steps = {
        name: _level_columns(original[name], policy, data, name) for name in policy.quasi if name in data.column_names
    }
    if not all(steps.values()):
        return []
    base = pa.table({name: cells[-1] for name, cells in steps.items()})
    row_class, _ = number_rows(base, base.column_names)
    value, values = codes(original[policy.sensitive[0]])
    out = []
    for name in (name for name, cells in steps.items() if len(cells) > 1):
        finer = base.set_column(base.column_names.index(name), name, steps[name][-2])
        row_part, size = number_rows(finer, finer.column_names)
        if np.bincount(row_part, minlength=size).min() >= k:
            out.append(_FinerTable(row_class, row_part, value, values))
    return out


def _level_columns(column: pa.ChunkedArray, policy: Policy, data: pa.Table, name: str) -> list[pa.Array]:
    """Return the original's values at every level up to the published one; an empty list if levels are mixed."""
    code, values = codes(column)
    shown, cells = set(codes(data[name])[1]), list[pa.Array]()
    for nodes, names in levels(pa.array(values, pa.string()), policy, name):
        cells.append(names.take(pa.array(nodes[code])))
        if shown <= set(pc.unique(cells[-1]).to_pylist()):
            return cells
    return []


def _infer(finer: _FinerTable, rule: Requirement, rng: np.random.Generator) -> tuple[Floats, Bools]:
    """Return, per person, the posterior of the best guess and whether the guess is right."""
    classes, parts, width = int(finer.row_class.max()) + 1, int(finer.row_part.max()) + 1, len(finer.values)
    class_of_part = np.zeros(parts, dtype=np.int64)
    class_of_part[finer.row_part] = finer.row_class
    by_class = np.argsort(finer.row_class, kind="stable")
    broken, worlds = [], []
    for _ in range(WORLD_COUNT):
        shuffled = np.lexsort((rng.random(len(by_class)), finer.row_class))
        value = np.empty_like(finer.value)
        value[by_class] = finer.value[shuffled]
        world = Groups.from_records(finer.row_part, value, parts, finer.values)
        broken.append(np.bincount(class_of_part[~diversity(world, rule)[1]], minlength=classes) > 0)
        worlds.append(world)
    weight = _weights(np.array(broken))
    tally = np.zeros((parts, width))
    for world, own in zip(worlds, weight, strict=True):
        tally[world.group, world.value] += world.count * own[class_of_part[world.group]]
    shares = normalize_rows(tally)
    guess = shares.argmax(axis=1)
    return shares.max(axis=1)[finer.row_part], guess[finer.row_part] == finer.value


def _weights(broken: Bools) -> Floats:
    """Return, per world and class, the chance that the finer table broke somewhere, given this class."""
    fine = np.log(np.clip(1 - broken.mean(axis=0), 0.5 / len(broken), 1))
    elsewhere = 1 - np.exp(fine.sum() - fine)
    return np.asarray(np.where(broken, 1.0, np.maximum(elsewhere, 1e-12)))
