"""`reticent reproduce supervision`: Tables 2 and 3 and Figure 3 of Wu, He, Zaiane (2013), with the paper's numbers.

Adult is used if its folder is given. IPUMS may not be redistributed. A synthetic census replaces it, with the paper's
attributes and a wage class that depends on education, weeks worked, sex and age.

In the paper's rows for the original data, accuracy is the mean of sensitivity and specificity, as with classes of equal
size; in the other rows it differs by up to 1.8 points. Our classes have equal size. The paper does not describe its
release "without supervision"; ours is Algorithm 1 without an order of attributes: all attributes are generalized
together. `optimal` is the exact search without supervision. `supervised` is Algorithm 1; `supervised, optimal` is our
exhaustive search with the same order. We add two measures that the paper names: UM and NCP.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from reticent.datasets import adult as adult_set
from reticent.datasets import census
from reticent.datasets.policies import policy_yaml
from reticent.engine.rng import Rng
from reticent.engine.table.encoded_table import EncodedTable
from reticent.engine.table.generalized import Outcome, measure_outcome
from reticent.engine.table.levels import Levels
from reticent.engine.table.optimal import full_domain, search
from reticent.engine.table.supervision import (
    UtilityScorer,
    generalize,
    generalize_optimally,
    make_scorer,
    sample,
    utility_tree,
)
from reticent.policy import Policy

SETTINGS: dict[str, dict[str, Any]] = {
    "k-anonymity": {"k": 4},
    "l-diversity": {"k": 4, "l": 2},
    "t-closeness": {"k": 4, "t": 0.2},
}
PAPER = {
    "adult": {
        "original": (0.880, 0.763, 0.821, 0.786, 0.833),
        "k-anonymity": (0.636, 0.556, 0.603, 0.589, 0.614),
        "l-diversity": (0.623, 0.535, 0.592, 0.563, 0.594),
        "t-closeness": (0.627, 0.532, 0.597, 0.541, 0.585),
    },
    "ipums": {
        "original": (0.796, 0.765, 0.779, 0.772, 0.788),
        "k-anonymity": (0.645, 0.615, 0.633, 0.621, 0.648),
        "l-diversity": (0.576, 0.562, 0.575, 0.588, 0.589),
        "t-closeness": (0.536, 0.551, 0.542, 0.554, 0.545),
    },
}
"""Tables 2 and 3: sensitivity, specificity, accuracy, precision, F, without supervision."""
MARGINS = {"k-anonymity": 0.07, "l-diversity": 0.07, "t-closeness": 0.05}
"""Accuracy gained by supervision on Adult, according to the paper's text."""


@dataclass(frozen=True, repr=False)
class Data:
    """A table and the roles of its columns; the target is the sensitive column."""

    name: str
    table: pa.Table
    columns: dict[str, Any]

    def encode_under(self, privacy: dict[str, Any], *, size: int) -> EncodedTable:
        """Encode the table for a policy with these privacy requirements."""
        section = {"supervision": {"sample": size}}
        rules = {"version": 1, "columns": self.columns, "privacy": privacy, "table": section}
        return EncodedTable.from_table(Policy.from_dict(rules), self.table)


def adult(folder: Path) -> Data:
    """Load Adult's seven quasi-identifiers and the salary class."""
    from reticent.connectors.files import read_table

    names = ("age", "workclass", "education", "sex", "race", "marital-status", "native-country")
    columns: dict[str, Any] = {
        name: {"role": "quasi", "hierarchy": {"file": str((folder / f"adult_hierarchy_{name}.csv").resolve())}}
        for name in names
    }
    columns["salary-class"] = "sensitive"
    return Data("adult", read_table(str(folder / "adult_30162.csv")).select(list(columns)), columns)


def synthetic(rows: int, seed: int) -> Data:
    """Generate the census with the attributes that the paper names for IPUMS, and its wage class."""
    table = census.generate(rows, seed, layout="ipums").drop_columns(["person_id"])
    columns = yaml.safe_load(policy_yaml("ipums"))["columns"]
    return Data("synthetic census", table, {name: columns[name] for name in table.column_names})


def run(
    out: Path,
    *,
    data: Path | None = None,
    quick: bool = False,
    seed: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run both tables and the figure, write `supervision.json` and the plots into `out`, and return the summary."""
    from reticent.reproduce.plots import draw_supervision as draw

    where = data or adult_set.data_folder("adult_30162.csv")
    sets = [synthetic(4_000 if quick else 30_000, seed)]
    if where is not None:
        sets.insert(0, adult(where))
    summary: dict[str, Any] = {"paper": PAPER, "margins": MARGINS, "data": {}}
    out.mkdir(parents=True, exist_ok=True)
    for dataset in sets:
        progress(f"{dataset.name}: {dataset.table.num_rows:,} records")
        summary["data"][dataset.name] = run_study(dataset, 400 if quick else 3_000, seed, progress)
        (out / "supervision.json").write_text(json.dumps(summary, indent=2) + "\n")
    draw(summary, out)
    for line in report(summary):
        progress(line)
    return summary


def run_study(data: Data, size: int, seed: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return the utility tree of one table, and the scores of every release."""
    encoded = data.encode_under({"k": 4}, size=size)
    scorer = make_scorer(encoded, data.table, Rng.from_seed(seed))
    tree = utility_tree(encoded.quasi, scorer.f_measure_of)
    progress(f"  batches: {' | '.join(', '.join(batch) for batch in tree.batches())}")
    fresh = UtilityScorer(
        encoded, scorer.target_codes, draw_test_rows(scorer, size, Rng.from_seed(seed + 1)), scorer.classifier
    )
    raw = [Levels(encoded.hierarchies[name], encoded.codes(name), 0) for name in encoded.quasi]
    figures: dict[str, Any] = {
        "tree": [[list(names), score] for names, score in zip(tree.sets, tree.scores, strict=True)],
        "batches": [list(batch) for batch in tree.batches()],
        "original": asdict(fresh.scores(raw)),
    }
    for name, privacy in SETTINGS.items():
        encoded_rules = data.encode_under(privacy, size=size)
        makers: dict[str, Callable[[], Outcome]] = {
            "global": partial(generalize, encoded_rules, [encoded_rules.quasi], "global"),
            "optimal": partial(_optimal, encoded_rules),
            "global, supervised": partial(generalize, encoded_rules, tree.batches(), "global"),
            "global, supervised, optimal": partial(generalize_optimally, encoded_rules, tree, scorer),
            "local": partial(generalize, encoded_rules, [encoded_rules.quasi], "local"),
            "local, supervised": partial(generalize, encoded_rules, tree.batches(), "local"),
        }
        figures[name] = {}
        for how, make in makers.items():
            outcome = make()
            attributes = [a for a in outcome.attributes.values() if isinstance(a, Levels)]
            cost = measure_outcome(encoded_rules, outcome)
            figures[name][how] = asdict(fresh.scores(attributes, outcome.suppressed)) | {
                "um": cost.usefulness,
                "ncp": cost.ncp,
                "levels": [
                    a.level if isinstance(a.level, int) else round(float(a.level.mean()), 3) for a in attributes
                ],
            }
        progress(f"  {name} done")
    figures["limit of t-closeness"] = closeness_limit(scorer.target_codes, SETTINGS["t-closeness"]["t"])
    return figures


def draw_test_rows(scorer: UtilityScorer, size: int, rng: Rng) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Draw a second sample with equal classes, disjoint from the records that the order was learned from."""
    rest = np.setdiff1d(np.arange(len(scorer.target_codes)), scorer.rows)
    return rest[sample(scorer.target_codes[rest], size, scorer.classifier.folds, rng)]


def _optimal(encoded_rules: EncodedTable) -> Outcome:
    """Run the exact search without supervision."""
    return full_domain(encoded_rules, search(encoded_rules, weights=encoded_rules.weights), "optimal")


def closeness_limit(goal: np.ndarray[Any, np.dtype[np.int64]], t: float) -> float | None:
    """Return the best accuracy on classes of equal size that a t-close release allows for a target of two values.

    In every group the share of the positive value is within t of its share p in the whole table. Two groups at p - t and
    p + t separate the values best; accuracy is the mean of sensitivity and specificity of a guess by group.
    """
    counts = np.bincount(goal)
    counts = counts[counts > 0]
    if len(counts) != 2:
        return None
    p = float(counts.min() / counts.sum())
    low, high = max(0.0, p - t), min(1.0, p + t)
    above = (p - low) / (high - low)
    return 0.5 + 0.5 * (above * high / p - above * (1 - high) / (1 - p))


def report(summary: dict[str, Any]) -> list[str]:
    """Return our accuracies next to the paper's, as lines for a terminal."""
    lines = []
    for name, figures in summary["data"].items():
        paper = PAPER["adult" if name == "adult" else "ipums"]
        lines.append(f"{name}: accuracy [paper, without supervision]")
        lines.append(f"  original {figures['original']['accuracy']:.1%} [{paper['original'][2]:.1%}]")
        for setting in SETTINGS:
            parts = [f"{how} {scores['accuracy']:.1%}" for how, scores in figures[setting].items()]
            lines.append(f"  {setting} [{paper[setting][2]:.1%}]: " + "; ".join(parts))
            lines.append(
                f"    gain of supervision: {accuracy_gains(figures[setting])} [paper on Adult +{MARGINS[setting]:.0%}]"
            )
        if figures["limit of t-closeness"] is not None:
            lines.append(
                f"  no t-close release allows more than {figures['limit of t-closeness']:.1%} on equal classes"
            )
    return lines


def accuracy_gains(scores: dict[str, dict[str, float]]) -> str:
    """Return the points of accuracy gained over the same recoding without supervision."""
    plain = {how.split(",")[0]: s["accuracy"] for how, s in scores.items() if "supervised" not in how}
    return ", ".join(
        f"{how} {100 * (s['accuracy'] - plain[how.split(',')[0]]):+.1f}"
        for how, s in scores.items()
        if "supervised" in how
    )
