"""The 140 optima of Adult that another tool found; a synthetic census stands in where the data is not there.

That tool compares entropies in doubles without tolerance and refuses classes that lie exactly on the boundary, such as
(2, 2, 2) for l = 3. `ROUNDED` lists the cases where this changes the optimum; each is shown to be reached with the
rounded rule and to be beaten with the exact one.

Two of them look odd next to the formulas (the test of listed scores) and are not: the node listed for #148 has no
class on the boundary, another node becomes better with the exact rule; the one listed for #164 has four of them, but
DM* counts a class the same whether it is kept or not, so the optimum stays what it was.
"""

from __future__ import annotations

import csv
import json
import math
import os
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from reticent import _core
from reticent.policy import HierarchySpec
from reticent.policy.hierarchy import build_levels as rungs_of
from reticent.utility.metrics import measure
from reticent.utility.recoding import Recoding

ADULT = Path(os.environ.get("RETICENT_DATA") or Path(__file__).parents[3] / "shared" / "data") / "adult"
NAMES = {
    "loss": "loss",
    "height": "height",
    "precision": "precision",
    "aecs": "average_class_size",
    "non_uniform_entropy": "entropy",
    "DM": "discernibility",
    "DM*": "discernibility-star",
}
ROUNDED = {"gen-adult#148", "gen-adult#154", "gen-adult#162", "gen-adult#166"}
needs_adult = pytest.mark.skipif(not (ADULT / "known_optima.json").exists(), reason="Adult is not shipped")


def known():
    path = ADULT / "known_optima.json"
    return json.loads(path.read_text()) if path.exists() else {"cases": []}


def columns():
    with (ADULT / "adult_30162.csv").open(encoding="utf-8") as file:
        head, *rows = list(csv.reader(file, delimiter=";"))
    return {name: [row[i] for row in rows] for i, name in enumerate(head)}


def read_hierarchy(name, values):
    with (ADULT / f"adult_hierarchy_{name}.csv").open(encoding="utf-8") as file:
        lines = list(csv.reader(file, delimiter=";"))
    path = {line[0]: line for line in lines}
    tables, leaves = [], []
    for level in range(len(lines[0])):
        ids: dict[str, int] = {}
        tables.append(np.array([ids.setdefault(path[v][level], len(ids)) for v in values], dtype=np.int32))
        below = [sum(line[level] == label for line in lines) for label in ids]
        leaves.append(np.array(below, dtype=np.int64))
    return tables, leaves, len(lines)


@pytest.fixture(scope="module")
def adult():
    table, optima = columns(), known()
    codes, hierarchies = [], []
    for name in [*optima["qi_order"], optima["sensitive"]]:
        values = sorted(set(table[name]))
        place = {v: i for i, v in enumerate(values)}
        codes.append(np.array([place[v] for v in table[name]], dtype=np.int32))
        hierarchies.append(read_hierarchy(name, values))
    sensitive = (codes[-1], len(hierarchies[-1][0][0]), hierarchies[-1][0])
    return (
        codes[:-1],
        hierarchies[:-1],
        sensitive,
        _core.table.CollapsedTable(codes[:-1], hierarchies[:-1], [sensitive]),
    )


def model_of(case):
    made = {}
    for part in case["models"]:
        name = part["model"]
        if name == "k-anonymity":
            made["k"] = part["k"]
        elif name == "distinct-l-diversity":
            made["l"] = ("distinct", [part["l"]])
        elif name == "entropy-l-diversity":
            made["l"] = ("entropy", [int(part["l"]), 1])
        elif name == "recursive-cl-diversity":
            made["l"] = ("recursive", [int(part["c"]), 1, part["l"]])
        else:
            made["t"] = (part["distance"], round(part["t"] * 10), 10)
    return _core.table.Model(**made)


def loss_of(case):
    return NAMES[case["loss"].get("variant") or case["loss"]["name"]]


@needs_adult
@pytest.mark.parametrize("case", known()["cases"], ids=lambda case: case["id"])
def test_a_known_optimum_is_reached(case, adult):
    codes, _, _, collapsed = adult
    limit = int(case["suppression_limit"] * len(codes[0]))
    found = collapsed.search(model_of(case), loss=loss_of(case), weights=[1.0] * len(codes), limit=limit)
    expected = case["expected"]["information_loss"]
    assert found["complete"]
    if case["id"] in ROUNDED:
        assert found["score"] < expected
    else:
        assert found["score"] == pytest.approx(expected, rel=1e-9)


def classes_at(levels, adult):
    """Class of each record at a node, and the sensitive histogram of each class."""
    codes, hierarchies, (values, domain, _), _ = adult
    keys = np.zeros(len(values), dtype=np.int64)
    for column, (tables, leaves, _), level in zip(codes, hierarchies, levels, strict=True):
        keys = keys * len(leaves[level]) + tables[level][column]
    _, owner = np.unique(keys, return_inverse=True)
    histograms = np.zeros((owner.max() + 1, domain), dtype=np.int64)
    np.add.at(histograms, (owner, values), 1)
    return owner, histograms.tolist()


def in_doubles(counts, l):
    """Entropy l-diversity of a class as the other tool computes it."""
    f, n = [c for c in counts if c], sum(counts)
    return n * (math.log(n) - math.log(l)) >= sum(c * math.log(c) for c in f) and len(f) >= l


def count_at(levels, adult, l=3):
    """Per rule (exact, in doubles): records suppressed and classes left at a node, under entropy l-diversity."""
    found = {"exact": [0, 0], "doubles": [0, 0], "boundary": 0}
    for counts in classes_at(levels, adult)[1]:
        n, rounded = sum(counts), in_doubles(counts, l)
        need, have = l**n * math.prod(c**c for c in counts if c), n**n
        found["boundary"] += have == need and not rounded
        for rule, holds in (("exact", have >= need), ("doubles", rounded)):
            found[rule][0 if not holds else 1] += n if not holds else 1
    return found


@needs_adult
@pytest.mark.parametrize(
    "case", [c for c in known()["cases"] if c["expected"]["solution"]], ids=lambda case: case["id"]
)
def test_the_listed_optimum_has_the_listed_score_by_our_formulas(case, adult):
    codes, _, _, collapsed = adult
    expected = case["expected"]
    owner, histograms = classes_at(expected["transformation"], adult)
    kept = collapsed.classes(model_of(case), expected["transformation"]) >= 0
    entropies = [part["l"] for part in case["models"] if part["model"] == "entropy-l-diversity"]
    if entropies:
        kept &= np.array([in_doubles(counts, entropies[0]) for counts in histograms])[owner]
    recodings = {
        name: Recoding.from_levels(column, rungs(name), level)
        for name, column, level in zip(known()["qi_order"], codes, expected["transformation"], strict=True)
    }
    metrics = measure(recodings, suppressed=~kept)
    assert int((~kept).sum()) == expected["suppressed_records"]
    assert len(np.unique(owner[kept])) == expected["equivalence_classes_excl_outliers"]
    assert getattr(metrics, loss_of(case).replace("-", "_")) == pytest.approx(expected["information_loss"], rel=1e-9)


@cache
def rungs(name):
    values = pa.array(sorted(set(columns()[name])))
    return rungs_of(HierarchySpec(file=f"adult_hierarchy_{name}.csv"), values, column=name, base=ADULT)


@needs_adult
@pytest.mark.parametrize("case", [c for c in known()["cases"] if c["id"] in ROUNDED], ids=lambda case: case["id"])
def test_the_difference_is_classes_on_the_entropy_boundary(case, adult):
    """Doubles give the other tool's count at its node; at ours they refuse boundary classes, and it is no longer better."""
    codes, _, _, collapsed = adult
    rows, expected = len(codes[0]), case["expected"]
    limit = int(case["suppression_limit"] * rows)
    theirs = count_at(expected["transformation"], adult)
    assert theirs["doubles"][0] == expected["suppressed_records"]
    found = collapsed.search(model_of(case), loss=loss_of(case), weights=[1.0] * len(codes), limit=limit)
    ours = count_at(found["levels"], adult)
    assert ours["exact"] == [found["suppressed"], found["classes"]]
    assert ours["boundary"] > 0
    assert ours["doubles"][0] > ours["exact"][0]
    same_node = found["levels"] == expected["transformation"]
    refused = ours["doubles"][0] > limit
    fewer = loss_of(case) == "average_class_size" and rows / (ours["doubles"][1] + 1) >= expected["information_loss"]
    assert same_node or refused or fewer


def synthetic(rows=3000, seed=5):
    """A small census: skewed, correlated, with trees of up to four levels."""
    rng = np.random.default_rng(seed)
    age = np.minimum(rng.gamma(3, 12, rows).astype(int), 59)
    job = (age // 12 + rng.geometric(0.4, rows)) % 8
    raw = [
        age,
        rng.integers(0, 2, rows),
        rng.geometric(0.5, rows).clip(max=6),
        (age // 20 + rng.geometric(0.6, rows)) % 5,
    ]
    steps = [(1, 5, 20, 60), (1, 2), (1, 3, 7), (1, 5)]
    codes, hierarchies = [], []
    for column, widths in zip(raw, steps, strict=True):
        domain = int(column.max()) + 1
        tables = [np.arange(domain, dtype=np.int32) // w for w in widths[:-1]] + [np.zeros(domain, dtype=np.int32)]
        codes.append(column.astype(np.int32))
        hierarchies.append(
            ([t.astype(np.int32) for t in tables], [np.bincount(t).astype(np.int64) for t in tables], domain)
        )
    tree = [np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32) // 3, np.zeros(8, dtype=np.int32)]
    return codes, hierarchies, (job.astype(np.int32), 8, tree)


@pytest.mark.parametrize("share", [0.0, 0.02, 1.0])
@pytest.mark.parametrize("loss", sorted(NAMES.values()))
@pytest.mark.parametrize(
    "model",
    [
        {"k": 5},
        {"k": 5, "l": ("distinct", [3])},
        {"l": ("entropy", [3, 1])},
        {"k": 5, "t": ("equal", 1, 5)},
        {"k": 4, "t": ("hierarchical", 1, 5)},
    ],
    ids=str,
)
def test_the_census_optimum_is_the_best_of_all_nodes(model, loss, share):
    """The version that always runs: every node of a mid-sized lattice evaluated one by one."""
    codes, hierarchies, sensitive = synthetic()
    collapsed = _core.table.CollapsedTable(codes, hierarchies, [sensitive])
    rules, limit, weights = _core.table.Model(**model), int(share * len(codes[0])), [1.0] * len(codes)
    found = collapsed.search(rules, loss=loss, weights=weights, limit=limit)
    best = math.inf
    for levels in np.ndindex(*(len(t) for t, _, _ in hierarchies)):
        node = collapsed.evaluate(rules, list(levels), loss=loss, weights=weights)
        best = min(best, node.score if node.suppressed <= limit else math.inf)
    assert found.get("score", math.inf) == pytest.approx(best, rel=1e-12)
    again = collapsed.search(rules, loss=loss, weights=weights, limit=limit)
    assert again == found
