"""Minimality: had a finer table been safe, the algorithm would have published it; so it was not, and that tells.

The attacker knows everybody's quasi-identifiers and tries each next finer recoding. Where it would still be
k-anonymous, it must have broken l-diversity somewhere. He draws random worlds (values shuffled within each published
class), keeps those in which the finer table breaks the rule, and reads off who then has what.

Guarantee: a posterior by sampling; it is scored against the truth.
Not covered: recodings that differ from record to record.
Cost: worlds x rows per quasi-identifier.
Reference: R. Wong, A. Fu, K. Wang, J. Pei, "Minimality attack in privacy preserving data publishing", VLDB 2007.
Differences from the paper: worlds are sampled, so that any number of classes and values is allowed.
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
    "Knows that the algorithm publishes the finest table that is safe, and everybody's quasi-identifiers: "
    "asks why the next finer table was not published."
)
WORLD_COUNT = 200
_ROWS = 100_000  # beyond, one finer table has so many classes that its breaking tells nothing about any of them


@dataclass(frozen=True, repr=False)
class _FinerTable:
    """Rows of the original by published class and by the classes of a finer recoding."""

    row_class: Int64s
    row_part: Int64s
    value: Int64s
    values: tuple[str | None, ...]


def minimality(evidence: Evidence) -> Outcome | None:
    """Attack a full-domain generalised release, with the original's quasi-identifiers as the attacker's knowledge."""
    release, policy, original = evidence.releases[-1], evidence.policy, evidence.original
    rule = next((r for r in requirements(release.claims) + policy_requirements(policy) if r.model == "l"), None)
    data = release.tables.get("data")
    if release.shape != "generalized" or data is None or original is None or rule is None:
        return None
    if not policy.sensitive or original.num_rows > _ROWS:
        return None
    tried = [_infer(finer, rule, evidence.rng) for finer in _finer_tables(original, policy, data)]
    if not tried:
        return None
    posterior, right = max(tried, key=lambda one: float(one[0].mean()))
    plain = homogeneity(evidence)
    return Outcome.from_posterior(
        "minimality",
        QUESTION,
        posterior,
        evidence.key,
        right=float(right.sum()),
        counted=True,
        claim=float(1 / rule.numbers[0]) if rule.kind == "frequency" else None,
        notes=("The rule itself concedes the share of the most frequent value in a class.",),
        figures={"without_the_argument": plain.accuracy if plain else 0.0},
    )


def _finer_tables(original: pa.Table, policy: Policy, data: pa.Table) -> list[_FinerTable]:
    """Every recoding one step finer in one column that would still be k-anonymous."""
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
    """The original's values as every level shows them, up to the one published; none for mixed levels."""
    code, values = codes(column)
    shown, cells = set(codes(data[name])[1]), list[pa.Array]()
    for nodes, names in levels(pa.array(values, pa.string()), policy, name):
        cells.append(names.take(pa.array(nodes[code])))
        if shown <= set(pc.unique(cells[-1]).to_pylist()):
            return cells
    return []


def _infer(finer: _FinerTable, rule: Requirement, rng: np.random.Generator) -> tuple[Floats, Bools]:
    """Per person the posterior of the best guess, and whether it is right."""
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
    """Per world and class: how likely the finer table broke somewhere, given what happened in this class."""
    fine = np.log(np.clip(1 - broken.mean(axis=0), 0.5 / len(broken), 1))
    elsewhere = 1 - np.exp(fine.sum() - fine)
    return np.asarray(np.where(broken, 1.0, np.maximum(elsewhere, 1e-12)))
