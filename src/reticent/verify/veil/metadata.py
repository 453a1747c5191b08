"""What a veil says of itself beside its records: eta, epsilon, the kernel and the house, published levels, the order of lines, and totals.

Guarantee: what the findings say. The kernel is that of the policy's file, epsilon that of the report or the policy, eta a share for each
    row and no more than a release may have, the house the digest of what it pins; published fields stand at their level or above;
    neither fields nor candidates go with the place of a line, nor are neighbours alike. Totals are those that the policy asks for, of this release, and with as much noise as is stated: from the
    release alone the sums of the rows are compared with their records; with the input every count is.
Not covered: an order that follows something which is not published and does not go with it; whether the noise of totals was drawn independently, which one
    table cannot tell.
Cost: l x l comparisons of columns for neighbours, one sort per column; one pass over rows and values for totals.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.arrays import Bools, Floats, Int32s, Int64s
from reticent.policy import Policy
from reticent.policy.prior import read_report
from reticent.policy.updates import read_updates
from reticent.verify.groups import codes, present_columns
from reticent.verify.labels.validity import check_labels
from reticent.verify.result import Finding, none_of
from reticent.verify.row_order import drift
from reticent.verify.veil.true_values import MISSING, true_value_codes

if TYPE_CHECKING:
    from reticent.verify.veil.verifier import CumulativeLine

PINNED_KEYS = (
    "l",
    "slot_length",
    "sensitive",
    "domain",
    "by",
    "strata",
    "segments",
    "value_order",
    "permutations",
    "kernel",
)
_MAX_EPSILON = 1.0
"""Epsilon of eta, at most."""
_MAX_OMISSION_RATE = 0.1
"""Truths that a release may not offer."""
_FEW, _DRIFT = 100, 6.0
_KERNEL_SCALE = 1 << 32


def metadata_findings(line: CumulativeLine, metadata: Mapping[str, Any], policy: Policy, kind: str) -> list[Finding]:
    """What `veil.json` says besides the line."""
    report = read_report(policy)
    stated = policy.prior.epsilon if policy.prior is not None else None
    epsilon = stated if report is None else report.get("epsilon")
    pinned = {word: metadata.get(word) for word in PINNED_KEYS}
    house = hashlib.sha256(json.dumps(pinned, sort_keys=True).encode()).hexdigest()
    return [
        Finding("epsilon is that of the prior's report or of the policy", metadata.get("epsilon") == epsilon),
        Finding("the house is the digest of what it pins", metadata.get("parameters_digest") == house),
        Finding("the kernel is the policy's", _is_policy_kernel(line, metadata.get("kernel"), policy)),
        Finding(
            "every row of the prior has its share of truths that are not offered",
            _has_omission_rates(line, metadata, kind),
        ),
    ]


def check_omission_rate(metadata: Mapping[str, Any], strata: Int64s, first: Bools) -> Finding:
    """No more truths are stated not to be offered than a release may have, up to the noise in the shares.

    Shares are of persons, who are as many as first sights in a table; where there are none, everybody has one record.
    """
    eta = np.array(metadata["omission_rate"], dtype=np.float64)
    known = (strata >= 0) & (strata < len(eta))
    some = strata[known & first] if (known & first).any() else strata[known]
    size = np.bincount(some, minlength=len(eta))
    used = int((size > 0).sum())
    # Noise of scale 2 / epsilon that is cut off at 0 adds less than its scale to each row, and strays by its root.
    scale = 2 / float(metadata["omission_rate_epsilon"])
    most = _MAX_OMISSION_RATE * len(some) + scale * (used + _DRIFT * math.sqrt(2 * used) + math.log(1e9))
    stated = float((eta * size).sum())
    return Finding("few truths are stated not to be offered", stated <= most, round(stated, 1), round(most, 1))


def _has_omission_rates(line: CumulativeLine, metadata: Mapping[str, Any], kind: str) -> bool:
    """A share for each row, with its price; nothing for a stream, whose records come one by one."""
    eta, price = metadata.get("omission_rate"), metadata.get("omission_rate_epsilon")
    if kind == "stream":
        return eta is None and price is None
    if not isinstance(eta, list) or len(eta) != len(line.strata):
        return False
    if not isinstance(price, int | float) or not 0 < price <= _MAX_EPSILON:
        return False
    return all(_is_number(share) and 0 <= share <= 1 and round(share, 6) == share for share in eta)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_policy_kernel(line: CumulativeLine, kernel: Any, policy: Policy) -> bool:
    """Whether the published kernel is that of the file that the policy names."""
    updates = policy.columns[line.sensitive].updates
    named = policy.prior.kernel.file if policy.prior is not None and policy.prior.kernel is not None else None
    file = named or (updates.file if updates is not None else None)
    if file is None or not isinstance(kernel, dict):
        return file is None and kernel is None
    lines = _read_csv_lines(policy.path(file))
    try:
        if [cell.strip().lower() for cell in lines[0]] == ["value", "stay", "within"]:
            return _stays_match(line, kernel, lines[1:])
        return _matrix_matches(line, kernel, policy, policy.path(file))
    except (KeyError, IndexError, TypeError, ValueError):
        return False


def _read_csv_lines(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [line for line in csv.reader(file) if line]


def _stays_match(line: CumulativeLine, kernel: Mapping[str, Any], lines: list[list[str]]) -> bool:
    """Few numbers: how often values stay, as the file says; those that it lacks stay alike."""
    if set(kernel) != {"stay", "within", "parents"}:
        return False
    stated = {label or MISSING: float(own) for label, own, _ in lines}
    stay = [int(number) for number in kernel["stay"]]
    shares = [(stated.get(label), number / line.slot_length) for label, number in zip(line.domain, stay, strict=True)]
    fits = all(own is None or abs(own - share) < 1e-9 for own, share in shares)
    fits &= len({share for own, share in shares if own is None}) <= 1 and all(0 <= share <= 1 for _, share in shares)
    fits &= abs(float(lines[0][2]) - int(kernel["within"]) / line.slot_length) < 1e-9
    parents = [int(number) for number in kernel["parents"]]
    return fits and len(parents) == len(stay) and all(0 <= number < len(parents) for number in parents)


def _matrix_matches(line: CumulativeLine, kernel: Mapping[str, Any], policy: Policy, path: Path) -> bool:
    """A matrix: the steps of the file between values of the domain; a value without any stays."""
    if set(kernel) != {"starts", "targets", "weights"}:
        return False
    updates = read_updates(path, column=line.sensitive)
    values = list(dict.fromkeys([*updates, *(after for row in updates.values() for after in row)]))
    places = true_value_codes(
        line.domain, pa.chunked_array([pa.array(values, pa.string())]), policy, line.sensitive
    ).tolist()
    code = dict(zip(values, places, strict=True))
    steps: list[dict[int, float]] = [{} for _ in line.domain]
    for value, following in updates.items():
        for after, share in following.items():
            if min(code[value], code[after]) >= 0 and round(share * _KERNEL_SCALE):
                row = steps[code[value]]
                row[code[after]] = row.get(code[after], 0) + share
    starts, targets, weights = ([int(number) for number in kernel[word]] for word in ("starts", "targets", "weights"))
    if len(starts) != len(steps) + 1 or starts[-1] != len(targets) or len(targets) != len(weights):
        return False
    shown = [{to: weights[at] for at, to in enumerate(targets[first:last], first)} for first, last in pairwise(starts)]
    return all(
        here == {value: 1} if not row else here.keys() == row.keys() and _weights_match(here, row)
        for value, (here, row) in enumerate(zip(shown, steps, strict=True))
    )


def _weights_match(weights: Mapping[int, int], shares: Mapping[int, float]) -> bool:
    return all(abs(weights[to] - share * _KERNEL_SCALE) <= 1e-6 * _KERNEL_SCALE for to, share in shares.items())


def check_levels(data: pa.Table, policy: Policy) -> list[Finding]:
    """Published fields are nodes of their hierarchies, at the level of the policy or above."""
    names = present_columns(policy.quasi, data)
    return [check_level(codes(data[name])[1], policy, name) for name in names]


def check_level(labels: Iterable[str | None], policy: Policy, name: str) -> Finding:
    """The same of one field."""
    claim = "published values stand at their level or above"
    return check_labels(labels, policy, name, "optimal", claim, level=policy.columns[name].level)


def check_record_order(data: pa.Table, sets: Int32s, kind: str) -> Finding:
    """Whether lines stand in an order that tells nothing; those of a stream stand as they came."""
    claim, size = "lines stand in an order that tells nothing", data.num_rows
    if kind == "stream" or size < _FEW:
        return Finding(claim, holds=True)
    columns = [_ranks(data[name]) for name in data.column_names if name != "person"]
    features = [*columns, sets.mean(axis=1), sets.min(axis=1), sets.max(axis=1)]
    worst = max(abs(drift(feature)) for feature in features)
    worst = max([worst, _neighbor_similarity(sets), *(_neighbor_similarity(column[:, None]) for column in columns)])
    return Finding(claim, worst < _DRIFT, round(worst, 2), _DRIFT)


def _ranks(column: pa.ChunkedArray) -> Int64s:
    """The place of every cell among the different texts of its column."""
    code, texts = codes(column)
    return np.argsort(np.argsort([text or "" for text in texts], kind="stable"), kind="stable")[code]


def _neighbor_similarity(cells: NDArray[Any]) -> float:
    """How much more neighbours have in common than lines far apart, in standard deviations."""
    size = len(cells)
    near, far = (_common(cells, np.roll(cells, -step, axis=0)) for step in (1, size // 2))
    more = near - far
    spread = float(more.std())
    return abs(float(more.mean())) / spread * math.sqrt(size) if spread else 0.0


def _common(left: NDArray[Any], right: NDArray[Any]) -> Floats:
    common = np.zeros(len(left))
    for one in range(left.shape[1]):
        for other in range(right.shape[1]):
            common += left[:, one] == right[:, other]
    return common


_SURE = 6.0
"""Standard deviations that noise does not stray."""
_RARE = 1e-9
_FEW = 30
"""Counts below which the mean of the noise says nothing."""
_NO_NOISE_CHANCE = 1e-7
"""So many counts without noise are less likely than this: somebody left it out."""


class NoisyCounts:
    """The published table and the law of its noise: two-sided geometric of scale 2 / epsilon."""

    def __init__(self, counts: Int64s, epsilon: float) -> None:
        self.counts, self.epsilon = counts, epsilon
        self.decay = math.exp(-epsilon / 2)

    @property
    def size(self) -> float:
        """Mean of the noise's absolute value."""
        return 2 * self.decay / (1 - self.decay**2)

    @property
    def variance(self) -> float:
        """Of the noise."""
        return 2 * self.decay / (1 - self.decay) ** 2

    def has_missing_noise(self, zeros: int) -> bool:
        """Whether more counts have no noise than chance leaves: a Chernoff bound on the tail of their number."""
        share, none = zeros / max(1, self.counts.size), (1 - self.decay) / (1 + self.decay)
        if share <= none:
            return False
        rest = (1 - share) * math.log((1 - share) / (1 - none)) if share < 1 else 0.0
        return self.counts.size * (share * math.log(share / none) + rest) > -math.log(_NO_NOISE_CHANCE)

    @property
    def largest(self) -> float:
        """Noise beyond this does not occur."""
        return math.log(_RARE / max(1, self.counts.size)) / math.log(self.decay)


def noisy_counts_of(metadata: Mapping[str, Any], strata: int, values: int) -> NoisyCounts | None:
    """The totals of a `veil.json`; None where there are none that can be read."""
    try:
        stated = metadata["counts"]
        counts = np.array(stated["counts"], dtype=np.int64).reshape(strata, values)
        epsilon = float(stated["epsilon"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    strays = set(stated) - {"counts", "epsilon"}
    return None if strays or not 0 < epsilon < math.inf else NoisyCounts(counts, epsilon)


def noisy_count_findings(
    metadata: Mapping[str, Any],
    policy: Policy,
    strata: Int64s,
    events: Int64s,
    shape: tuple[int, int],
) -> list[Finding]:
    """What the release alone shows: totals if, and only if, the policy asks for them, at its epsilon, and of these records."""
    asked = None if policy.prior is None else policy.prior.counts
    if asked is None and "counts" not in metadata:
        return []
    totals = noisy_counts_of(metadata, *shape)
    if totals is None or asked is None:
        return [Finding("totals are those that the policy asks for", holds=False)]
    size = np.bincount(strata[(events == 0) & (strata >= 0) & (strata < shape[0])], minlength=shape[0])
    # Values outside the domain count nowhere, so a row may hold fewer than its records.
    most = size + _SURE * math.sqrt(shape[1] * totals.variance) + totals.largest
    return [
        Finding("totals cost what the policy says", totals.epsilon <= asked, totals.epsilon, asked),
        none_of("the totals of a row are those of its records", int((totals.counts.sum(axis=1) > most).sum())),
    ]


def compare_counts(published: NoisyCounts, strata: Int64s, true_codes: Int64s) -> list[Finding]:
    """With the input beside it: every count is the true one with noise, and the noise is as large as stated."""
    shape = published.counts.shape
    known = true_codes >= 0
    exact = np.bincount(strata[known] * shape[1] + true_codes[known], minlength=published.counts.size).reshape(shape)
    noise = np.abs(published.counts - exact)
    spread = math.sqrt(max(published.variance - published.size**2, 0) * noise.size)
    near = noise.size < _FEW or abs(float(noise.sum()) - published.size * noise.size) <= _SURE * spread
    return [
        none_of("totals count the records of the input", int((noise > published.largest).sum())),
        Finding(
            "totals have as much noise as they state", near and not published.has_missing_noise(int((noise == 0).sum()))
        ),
    ]
