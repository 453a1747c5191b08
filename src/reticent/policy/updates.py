"""Update knowledge: to which values a sensitive value may change by the next release, and with what probability.

The candidate update set CUS(s) of a value s contains the values that the public considers possible. Four forms:

- `updates: {file: progression.csv}`: one value;next;probability per line (or commas; a header is allowed; without a
  probability all are equal). A value that the file does not name never changes.
- `updates: {tree: d}`: any value under the same ancestor d levels up, all equally likely; needs a hierarchy.
- `updates: any`: every value seen so far, all equally likely; for attackers who know nothing about changes.
- `updates: {diameter: d}`: runs of d adjacent leaves of the hierarchy (or whole numbers), all equally likely.

Two properties are enforced and counted, so that a release can state them. A value may always stay unchanged: if the file
gives no probability for this, staying counts as one more equally likely update. Updates are transitive (the paper's
footnote 8): otherwise one step becomes the mean of the first h powers of the given step, where h is the number of steps
after which no new value can be reached.

Reference: F. Li, S. Zhou, "Challenging more updates: towards anonymous re-publication of fully dynamic datasets", 2008, Definition 12.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Int32s
from reticent.errors import DataError, PolicyError
from reticent.policy.hierarchy import build_levels, tree_of
from reticent.policy.policy import Policy
from reticent.policy.spec import UpdatesSpec

if TYPE_CHECKING:
    from scipy import sparse

Value = str | None
UpdateProbabilities = dict[Value, dict[Value, float]]


@dataclass(frozen=True, repr=False)
class Updates:
    """Candidate update sets and probabilities over a domain of values (index = code).

    Attributes:
        values: the domain.
        matrix: probability of each update by the next release; row = from, column = to.
        closure_pairs: number of pairs that the transitive closure added.
        stay_values: number of values to which staying unchanged was added.
    """

    values: tuple[Value, ...]
    matrix: sparse.csr_array
    closure_pairs: int = 0
    stay_values: int = 0

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def codes(self) -> dict[Value, int]:
        """The code of each value."""
        return {value: code for code, value in enumerate(self.values)}

    def steps(self, most: int) -> list[Any]:
        """Return compressed probability matrices for 1, 2, ... `most` releases between two versions."""
        out, power = [], self.matrix
        for i in range(max(1, most)):
            power = self.matrix if i == 0 else _to_sorted_csr(power @ self.matrix)
            out.append((power.indptr.astype(np.int64), power.indices.astype(np.int32), power.data.astype(np.float64)))
        return out

    @cached_property
    def components(self) -> Int32s:
        """The component of each value; values of different components always have disjoint candidate update sets."""
        from scipy import sparse  # loaded where needed: few policies name updates

        _, labels = sparse.csgraph.connected_components(self.matrix, directed=False)
        component: Int32s = labels.astype(np.int32)
        return component

    @cached_property
    def uniform(self) -> bool:
        """Whether every value changes to each value of its component with equal probability."""
        sizes = np.bincount(self.components)[self.components]
        rows = np.diff(self.matrix.indptr)
        return bool((rows == sizes).all() and np.allclose(self.matrix.data, np.repeat(1 / sizes, rows)))


def updates_of(policy: Policy, column: str, seen: Iterable[Value] = (), *, constant: bool = False) -> Updates:
    """Return the update knowledge of a sensitive column, over the policy's domain and the values seen so far.

    Seen values come first, in their order, so that their codes stay the same when new values appear. With `constant`,
    values never change, regardless of the policy (m-Invariance).
    """
    spec = policy.columns[column].updates
    if constant:
        return _compile({}, seen)
    if spec is None:
        raise PolicyError(
            f"columns.{column}: a series with changing values needs the setting updates.",
            hint="Add updates: any, {file: ...}, {tree: d} or {diameter: d}, or use series: {method: m-invariance}.",
        )
    if spec.file is not None:
        return _compile(read_updates(policy.path(spec.file), column=column), seen)
    blocks = _blocks(policy, column, seen, spec)
    return _compile({v: dict.fromkeys(block, 1 / len(block)) for block in blocks for v in block}, seen)


def _blocks(policy: Policy, column: str, seen: Iterable[Value], spec: UpdatesSpec) -> list[list[Value]]:
    """Return the sets of values that may change to one another."""
    if spec.any:
        return [list(dict.fromkeys(seen))]
    if spec.tree:
        return _blocks_by_tree(policy, column, seen, spec.tree)
    return _blocks_by_run(policy, column, seen, spec.diameter or 1)


def read_updates(path: Path, *, column: str) -> UpdateProbabilities:
    """Read value, next and probability from a file; scale the probabilities of each value to sum to 1."""
    place = f"columns.{column}.updates: {path.name}"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            delimiter = ";" if ";" in file.readline() else ","
            file.seek(0)
            lines = [[cell.strip() for cell in row] for row in csv.reader(file, delimiter=delimiter, strict=True)]
    except OSError as error:
        raise PolicyError(f"{place} cannot be read ({error.strerror}).", hint="Correct the path.") from None
    except (UnicodeDecodeError, csv.Error):
        raise PolicyError(f"{place} is not a readable UTF-8 CSV file.", hint="Write value;next;probability.") from None
    rows: UpdateProbabilities = {}
    for number, line in enumerate(lines, 1):
        if not line or (number == 1 and [cell.lower() for cell in line[:2]] == ["value", "next"]):
            continue
        if len(line) not in (2, 3):
            raise PolicyError(
                f"{place}, line {number}: expected two or three cells.", hint="Write value;next;probability."
            )
        row = rows.setdefault(line[0], {})
        if line[1] in row:
            raise PolicyError(f"{place}, line {number}: this update occurs twice.", hint="Keep one line per update.")
        row[line[1]] = _probability(line, f"{place}, line {number}")
    if not rows:
        raise PolicyError(f"{place} is empty.", hint="Write value;next;probability per line.")
    return {value: scaled for value, row in rows.items() if (scaled := _normalize(row, place))}


def _probability(line: list[str], place: str) -> float:
    if len(line) == 2 or not line[2]:
        return 1.0
    try:
        number = float(line[2])
    except ValueError:
        number = -1.0
    if not 0 <= number < np.inf:
        raise PolicyError(
            f"{place}: the probability must be a number of 0 or more.", hint="Write a number such as 0.25."
        )
    return number


def _normalize(row: dict[Value, float], place: str) -> dict[Value, float]:
    total = sum(row.values())
    if total <= 0:
        raise PolicyError(
            f"{place}: all updates of a value have probability 0.", hint="Give at least one a probability above 0."
        )
    return {value: weight / total for value, weight in row.items() if weight > 0}


def _blocks_by_tree(policy: Policy, column: str, seen: Iterable[Value], level: int) -> list[list[Value]]:
    """Return the sets of values under the same ancestor, `level` hierarchy_levels up."""
    spec = policy.columns[column].hierarchy
    tree = tree_of(spec, policy.base, column=column)
    if spec is None:
        raise PolicyError(
            f"columns.{column}.updates: a tree distance needs a hierarchy.", hint="Add hierarchy: {file: ...}."
        )
    domain = list(dict.fromkeys([*(tree.paths if tree else ()), *(value for value in seen if value is not None)]))
    hierarchy_levels = build_levels(spec, pa.array(domain, type=pa.string()), column=column, base=policy.base)
    nodes = hierarchy_levels.node_ids[min(level, hierarchy_levels.height)]
    blocks: dict[int, list[Value]] = {}
    for value, node in zip(domain, nodes.tolist(), strict=True):
        blocks.setdefault(node, []).append(value)
    return list(blocks.values())


def _blocks_by_run(policy: Policy, column: str, seen: Iterable[Value], width: int) -> list[list[Value]]:
    """Return runs of `width` adjacent leaves, or of whole numbers if there is no tree."""
    tree = tree_of(policy.columns[column].hierarchy, policy.base, column=column)
    if tree is not None:
        unknown = sum(value is not None and value not in tree.paths for value in seen)
        if unknown:
            raise DataError(
                f"Column '{column}': {unknown} values are not leaves of its hierarchy.", hint="Extend the hierarchy."
            )
        leaves: list[Value] = [*sorted(tree.paths, key=lambda leaf: tree.paths[leaf][::-1])]
        return [leaves[i : i + width] for i in range(0, len(leaves), width)]
    try:
        starts = {int(value) // width for value in seen if value is not None}
    except ValueError:
        raise PolicyError(
            f"columns.{column}.updates: a diameter needs a hierarchy or whole numbers as values.",
            hint="Add hierarchy: {file: ...}, which defines the order of the values.",
        ) from None
    return [[str(start * width + i) for i in range(width)] for start in sorted(starts)]


def _compile(rows: UpdateProbabilities, seen: Iterable[Value]) -> Updates:
    """Give every value a row, allow it to stay unchanged, and take the transitive closure."""
    domain = dict.fromkeys([*seen, *rows, *(after for row in rows.values() for after in row)])
    values = tuple(domain)
    code = {value: i for i, value in enumerate(values)}
    from scipy import sparse

    matrix = sparse.lil_array((len(values), len(values)))
    stayed = 0
    for value, i in code.items():
        row = dict(rows.get(value, {value: 1.0}))
        if value not in row:
            stayed += 1
            share = 1 / (len(row) + 1)
            row = {after: weight * (1 - share) for after, weight in row.items()} | {value: share}
        for after, weight in row.items():
            matrix[i, code[after]] = weight
    weights = _to_sorted_csr(matrix.tocsr())
    closed = _closure(weights)
    return Updates(values, closed, int(closed.nnz - weights.nnz), stayed)


def _closure(step: sparse.csr_array) -> sparse.csr_array:
    """Return the mean of the powers of a step, up to the power that reaches every reachable value."""
    total, power, powers = step, step, 1
    while True:
        power = _to_sorted_csr(power @ step)
        larger = _to_sorted_csr(total + power)
        if larger.nnz == total.nnz:
            return _to_sorted_csr(total / powers)
        total, powers = larger, powers + 1


def _to_sorted_csr(matrix: Any) -> sparse.csr_array:
    from scipy import sparse

    rows = sparse.csr_array(matrix)
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows
