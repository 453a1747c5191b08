"""Compare `auto` with each of its methods on six tables, and measure what a classifier learns from its releases.

Adult is used if a copy is in `../shared/data/adult`; the other tables are synthetic. `python -m bench.auto` prints both
tables.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bench.table_data import ADULT, adult_policy
from reticent.connectors.files import read_table
from reticent.datasets import hospital
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.policy.hierarchy import read_tree
from reticent.reproduce.supervision import adult as adult_salary
from reticent.reproduce.supervision import synthetic as census_wage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reticent.release import Release

METHODS = {"auto": {}, "local": {}, "mondrian": {}, "mondrian, sets": {"sets": True}, "optimal": {}}
DRAWS = 3


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Return loss and seconds of every method on every table, and areas under the curve."""
    return {
        "methods": {name: compare(table, policy) for name, table, policy in tables(quick)},
        "models": {name: model(data.table, data.columns, target) for name, data, target in models(quick)},
    }


def tables(quick: bool) -> Iterator[tuple[str, pa.Table, Policy]]:  # noqa: FBT001
    """Yield the six tables with their policies."""
    rows = 2_000 if quick else 20_000
    if ADULT.exists():
        adult = read_table(str(ADULT / "adult_30162.csv"))
        yield "Adult, 8, k = 5", adult, adult_policy({"k": 5})
        yield "Adult, 8, k = 5, t = 0.2", adult, adult_policy({"k": 5, "t": 0.2})
    data = census_wage(rows, 1)
    yield "census, 6, k = 5", data.table, ruled(data.columns, {"k": 5})
    yield "hospital, 7, k = 5, l = 3", *stays(rows)
    for width in (20, 40):
        yield f"wide, {width}, k = 5", *wide(rows, width)


def stays(rows: int) -> tuple[pa.Table, Policy]:
    """Return the synthetic hospital: dates, codes and numbers, and a sensitive diagnosis."""
    table = hospital.generate(rows, 1).drop_columns(["patient_id", "name", "ward"])
    dates = {"role": "quasi", "hierarchy": {"dates": ["month", "quarter", "year", "decade"]}}
    columns: dict[str, Any] = dict.fromkeys(table.column_names, "quasi") | {
        "birth_date": dates,
        "admission_date": {"role": "quasi", "hierarchy": {"dates": ["month", "quarter", "year"]}},
        "postcode": {"role": "quasi", "hierarchy": {"prefix": 5}},
        "length_of_stay": {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8, 16]}},
        "diagnosis": "sensitive",
    }
    return table, ruled(columns, {"k": 5, "l": 3, "suppression": 0.02})


def wide(rows: int, width: int) -> tuple[pa.Table, Policy]:
    """Return numbers and categories that depend on a few hidden traits, as in a registry."""
    rng = np.random.default_rng(width)
    hidden = rng.normal(size=(rows, 5))
    table, columns = {}, {}
    for at in range(width):
        trait = hidden[:, at % 5] + rng.normal(size=rows)
        if at % 2:
            table[f"c{at}"] = pa.array([f"v{v}" for v in np.digitize(trait, [-1.5, -0.5, 0.5, 1.5])])
            columns[f"c{at}"] = "quasi"
        else:
            table[f"c{at}"] = pa.array(np.clip(np.round(50 + 15 * trait), 0, 99).astype(int))
            columns[f"c{at}"] = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}}
    return pa.table(table), ruled(columns, {"k": 5})


def ruled(columns: dict[str, Any], privacy: dict[str, Any], **table: Any) -> Policy:
    """Return a policy for the columns."""
    return Policy.from_dict({"version": 1, "columns": columns, "privacy": privacy, "table": table})


def compare(table: pa.Table, policy: Policy) -> dict[str, Any]:
    """Return loss, suppressed records and seconds of every method; None for a method that refuses."""
    figures: dict[str, Any] = {}
    for name, settings in METHODS.items():
        method = name.partition(",")[0]
        rules = policy.to_dict()
        rules["table"] = {**rules.get("table", {}), **settings, "method": method}
        start = time.perf_counter()
        try:
            release = released(table, Policy.from_dict(rules, base=policy.base))
        except GuaranteeError:
            continue
        figures[name] = {
            "loss": release.metrics["loss"],
            "suppressed": release.records.suppressed,
            "seconds": time.perf_counter() - start,
            "method": release.method,
        }
    return figures


def released(table: pa.Table, policy: Policy) -> Release:
    """Return the release of the policy's method."""
    engine = publisher(policy, "table", policy.table.method, rng=Rng.from_seed(1))
    engine.push(table)
    (release,) = engine.close()
    return release


def models(quick: bool) -> Iterator[tuple[str, Any, str]]:  # noqa: FBT001
    """Yield tables with a column for a classifier to predict."""
    if ADULT.exists():
        yield "Adult, salary", adult_salary(ADULT), "salary-class"
    yield "census, wage", census_wage(2_000 if quick else 30_000, 1), "wage"


def model(table: pa.Table, columns: dict[str, Any], target: str) -> dict[str, Any]:
    """Return areas under the curve on held-out original rows: learned from the original, and from releases at k = 5."""
    rng = np.random.default_rng(1)
    test_rows = rng.random(table.num_rows) < 0.3
    train, test = table.filter(pa.array(~test_rows)), table.filter(pa.array(test_rows))
    figures: dict[str, Any] = {"original": area([train], test, target)}
    for name, settings in {"auto": {}, "auto, for the model": {"purpose": "model", "target": target}}.items():
        start = time.perf_counter()
        policy = ruled(columns, {"k": 5}, **settings)
        release = released(train, policy)
        figures[f"{name}: seconds"] = time.perf_counter() - start
        draws = [completed(release.tables["data"], train, policy, rng) for _ in range(DRAWS)]
        figures[name] = area(draws, test, target)
        figures[f"{name}: method"] = release.method
    return figures


def completed(data: pa.Table, train: pa.Table, policy: Policy, rng: np.random.Generator) -> pa.Table:
    """Replace every generalized cell by one of its possible values, drawn by the column's exact frequencies."""
    columns = {}
    for name in data.column_names:
        cells = [str(cell) for cell in data[name].to_pylist()]
        if name not in policy.quasi:
            columns[name] = pa.array(cells)
            continue
        values = [str(value) for value in train[name].unique().to_pylist()]
        spec = policy.columns[name].hierarchy
        tree = read_tree(policy.base / str(spec.file), column=name) if spec and spec.file else None
        choices = {cell: inside(cell, values, tree) for cell in set(cells)}
        columns[name] = pa.array([str(rng.choice(choices[cell])) for cell in cells])
    return pa.table(columns)


def inside(cell: str, values: list[str], tree: Any) -> list[str]:
    """Return the possible values of a cell."""
    if cell in values:
        return [cell]
    if match := re.fullmatch(r"\[(-?[\d.]+), (-?[\d.]+)([\])])", cell):
        low, high = float(match[1]), float(match[2])
        return [v for v in values if low <= float(v) <= high and not (match[3] == ")" and float(v) == high)] or values
    if cell.startswith("{"):
        return cell[1:-1].split(", ")
    if tree is not None:
        return [v for v in values if cell in tree.path(v)] or values
    return [v for v in values if v.startswith(cell.rstrip("*"))] or values


def area(tables: list[pa.Table], test: pa.Table, target: str) -> float:
    """Return the area under the curve of gradient boosting that learns from all tables and predicts the test rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    train = pa.concat_tables([texts(table) for table in tables])
    test = texts(test)
    known = {name: {v: i for i, v in enumerate(sorted(set(test[name].to_pylist() + train[name].to_pylist()), key=number))}
             for name in test.column_names}  # fmt: skip

    def matrix(table: pa.Table) -> Any:
        names = [name for name in table.column_names if name != target]
        return np.array([[known[name][v] for v in table[name].to_pylist()] for name in names], dtype=float).T

    goal = {
        name: np.array([known[target][v] for v in t[target].to_pylist()])
        for name, t in (("train", train), ("test", test))
    }
    learner = HistGradientBoostingClassifier(random_state=1, max_iter=100)
    with threadpool_limits(1):  # on a busy machine its threads block each other
        chances = learner.fit(matrix(train), goal["train"]).predict_proba(matrix(test))
    return float(roc_auc_score(goal["test"], chances[:, 1]))


def number(text: str) -> tuple[float, str]:
    """Sort numbers by size, other values by their text."""
    try:
        return float(text), ""
    except ValueError:
        return float("inf"), text


def texts(table: pa.Table) -> pa.Table:
    """Return all columns as text."""
    return pa.table({name: table[name].cast(pa.string()).combine_chunks() for name in sorted(table.column_names)})


def main() -> None:
    """Print the figures as tables, row by row."""
    print("| table | " + " | ".join(METHODS) + " | auto took |\n|---" + "|---" * (len(METHODS) + 1) + "|", flush=True)
    for name, table, policy in tables(quick=False):
        row = compare(table, policy)
        cells = [f"{row[m]['loss']:.4f} ({row[m]['seconds']:.1f} s)" if m in row else "refused" for m in METHODS]
        print(f"| {name} | " + " | ".join(cells) + f" | {row['auto']['method']} |", flush=True)
    for name, data, target in models(quick=False):
        print(name, model(data.table, data.columns, target), flush=True)


if __name__ == "__main__":
    main()
