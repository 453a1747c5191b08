"""Check the metadata of a veil: omission rate, epsilon, kernel, parameter digest, levels, record order, noisy counts.

Guarantee: if all findings hold, the kernel is that of the policy's file and epsilon that of the report or the policy. Every
    stratum states an omission rate, within the limit of a release. The digest is that of the pinned parameters. Published fields
    are at their level or above. An attacker learns nothing from the position of a record: neither fields nor candidates
    correlate with it, and neighbors are not similar. Noisy counts are those that the policy requests, with the stated noise:
    without the input, their sums per stratum are compared with the records; with the input, every count is.
Not covered: an order by something unpublished that is independent of the published columns; whether the noise was drawn
    independently, which one table cannot show.
Cost: l x l comparisons of columns for neighbors, one sort per column; one pass over strata and values for noisy counts.
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
"""Largest epsilon of the omission rates."""
_MAX_OMISSION_RATE = 0.1
"""Largest share of true values that a release may omit."""
_MIN_RECORDS, _DRIFT = 30, 6.0
_KERNEL_SCALE = 1 << 32


def metadata_findings(line: CumulativeLine, metadata: Mapping[str, Any], policy: Policy, kind: str) -> list[Finding]:
    """Check what `veil.json` says besides the cumulative line."""
    report = read_report(policy)
    stated = policy.prior.epsilon if policy.prior is not None else None
    epsilon = stated if report is None else report.get("epsilon")
    pinned = {key: metadata.get(key) for key in PINNED_KEYS}
    digest = hashlib.sha256(json.dumps(pinned, sort_keys=True).encode()).hexdigest()
    return [
        Finding("epsilon matches the prior's report or the policy", metadata.get("epsilon") == epsilon),
        Finding("the digest matches the pinned veil parameters", metadata.get("parameters_digest") == digest),
        Finding("the transition kernel is the policy's", _is_policy_kernel(line, metadata.get("kernel"), policy)),
        Finding("every stratum of the prior states its omission rate", _has_omission_rates(line, metadata, kind)),
    ]


def check_omission_rate(metadata: Mapping[str, Any], strata: Int64s, first: Bools) -> Finding:
    """Check that the stated omissions are within the limit of a release, up to the noise in the rates.

    Rates are of persons: a table has one first event per person; without first events, every person has one record.
    """
    rates = np.array(metadata["omission_rate"], dtype=np.float64)
    known = (strata >= 0) & (strata < len(rates))
    persons = strata[known & first] if (known & first).any() else strata[known]
    size = np.bincount(persons, minlength=len(rates))
    used = int((size > 0).sum())
    # Noise of scale 2 / epsilon, cut off at 0, adds at most its scale to the mean of each used stratum.
    scale = 2 / float(metadata["omission_rate_epsilon"])
    most = _MAX_OMISSION_RATE * len(persons) + scale * (used + _DRIFT * math.sqrt(2 * used) + math.log(1e9))
    stated = float((rates * size).sum())
    return Finding(
        "the stated omission rate is within the limit of one tenth", stated <= most, round(stated, 1), round(most, 1)
    )


def _has_omission_rates(line: CumulativeLine, metadata: Mapping[str, Any], kind: str) -> bool:
    """Return whether every stratum has a valid omission rate with its epsilon; a stream must state none."""
    rates, epsilon = metadata.get("omission_rate"), metadata.get("omission_rate_epsilon")
    if kind == "stream":
        return rates is None and epsilon is None
    if not isinstance(rates, list) or len(rates) != len(line.strata):
        return False
    if not isinstance(epsilon, int | float) or not 0 < epsilon <= _MAX_EPSILON:
        return False
    return all(_is_number(share) and 0 <= share <= 1 and round(share, 6) == share for share in rates)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_policy_kernel(line: CumulativeLine, kernel: Any, policy: Policy) -> bool:
    """Return whether the published kernel is that of the policy's file."""
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
    """Return whether the stay probabilities match the file; values that the file lacks must share one probability."""
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
    """Return whether the transition matrix matches the file; a value without transitions stays."""
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
    starts, targets, weights = ([int(number) for number in kernel[key]] for key in ("starts", "targets", "weights"))
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
    """Check that published fields are nodes of their hierarchies, at the policy's level or above."""
    names = present_columns(policy.quasi, data)
    return [check_level(codes(data[name])[1], policy, name) for name in names]


def check_level(labels: Iterable[str | None], policy: Policy, name: str) -> Finding:
    """Check the level of one published field."""
    claim = "published values are at the policy's level or above"
    return check_labels(labels, policy, name, "optimal", claim, level=policy.columns[name].level)


def check_record_order(data: pa.Table, sets: Int32s, kind: str) -> Finding:
    """Check that the record order discloses nothing; a stream keeps the order of its input."""
    claim, size = "the order of records discloses nothing", data.num_rows
    if kind == "stream" or size < _MIN_RECORDS:
        return Finding(claim, holds=True)
    columns = [_ranks(data[name]) for name in data.column_names if name != "person"]
    features = [*columns, sets.mean(axis=1), sets.min(axis=1), sets.max(axis=1)]
    worst = max(abs(drift(feature)) for feature in features)
    worst = max([worst, _neighbor_similarity(sets), *(_neighbor_similarity(column[:, None]) for column in columns)])
    return Finding(claim, worst < _DRIFT, round(worst, 2), _DRIFT)


def _ranks(column: pa.ChunkedArray) -> Int64s:
    """Rank every cell among the distinct texts of its column."""
    code, texts = codes(column)
    return np.argsort(np.argsort([text or "" for text in texts], kind="stable"), kind="stable")[code]


def _neighbor_similarity(cells: NDArray[Any]) -> float:
    """Return how much more neighbors have in common than distant records, in standard deviations."""
    size = len(cells)
    near, far = (_common(cells, np.roll(cells, -step, axis=0)) for step in (1, size // 2))
    excess = near - far
    spread = float(excess.std())
    return abs(float(excess.mean())) / spread * math.sqrt(size) if spread else 0.0


def _common(left: NDArray[Any], right: NDArray[Any]) -> Floats:
    common = np.zeros(len(left))
    for one in range(left.shape[1]):
        for other in range(right.shape[1]):
            common += left[:, one] == right[:, other]
    return common


_SURE = 6.0
"""Standard deviations that noise practically never exceeds."""
_RARE = 1e-9
_MIN_COUNTS = 30
"""Number of counts below which the mean of the noise is not tested."""
_NO_NOISE_CHANCE = 1e-7
"""If so many counts without noise are less likely than this, noise was left out."""


class NoisyCounts:
    """The published counts and the distribution of their noise: two-sided geometric of scale 2 / epsilon."""

    def __init__(self, counts: Int64s, epsilon: float) -> None:
        self.counts, self.epsilon = counts, epsilon
        self.decay = math.exp(-epsilon / 2)

    @property
    def size(self) -> float:
        """Mean of the noise's absolute value."""
        return 2 * self.decay / (1 - self.decay**2)

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        return 2 * self.decay / (1 - self.decay) ** 2

    def has_missing_noise(self, zeros: int) -> bool:
        """Return whether too many counts have no noise to be chance, by a Chernoff bound."""
        share, none = zeros / max(1, self.counts.size), (1 - self.decay) / (1 + self.decay)
        if share <= none:
            return False
        rest = (1 - share) * math.log((1 - share) / (1 - none)) if share < 1 else 0.0
        return self.counts.size * (share * math.log(share / none) + rest) > -math.log(_NO_NOISE_CHANCE)

    @property
    def largest(self) -> float:
        """Largest plausible absolute noise."""
        return math.log(_RARE / max(1, self.counts.size)) / math.log(self.decay)


def noisy_counts_of(metadata: Mapping[str, Any], strata: int, values: int) -> NoisyCounts | None:
    """Return the noisy counts of a `veil.json`; None if they are missing or malformed."""
    try:
        stated = metadata["counts"]
        counts = np.array(stated["counts"], dtype=np.int64).reshape(strata, values)
        epsilon = float(stated["epsilon"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    unknown = set(stated) - {"counts", "epsilon"}
    return None if unknown or not 0 < epsilon < math.inf else NoisyCounts(counts, epsilon)


def noisy_count_findings(
    metadata: Mapping[str, Any], policy: Policy, strata: Int64s, events: Int64s, shape: tuple[int, int]
) -> list[Finding]:
    """Check noisy counts without the input: present if and only if the policy requests them, its epsilon, their sums."""
    epsilon = None if policy.prior is None else policy.prior.counts
    if epsilon is None and "counts" not in metadata:
        return []
    noisy_counts = noisy_counts_of(metadata, *shape)
    if noisy_counts is None or epsilon is None:
        return [Finding("noisy counts are those that the policy requests", holds=False)]
    size = np.bincount(strata[(events == 0) & (strata >= 0) & (strata < shape[0])], minlength=shape[0])
    # Values outside the domain are not counted, so a stratum may count fewer than its records.
    most = size + _SURE * math.sqrt(shape[1] * noisy_counts.variance) + noisy_counts.largest
    return [
        Finding(
            "noisy counts use at most the policy's epsilon",
            noisy_counts.epsilon <= epsilon,
            noisy_counts.epsilon,
            epsilon,
        ),
        none_of("the noisy counts of a stratum match its records", int((noisy_counts.counts.sum(axis=1) > most).sum())),
    ]


def compare_counts(published: NoisyCounts, strata: Int64s, true_codes: Int64s) -> list[Finding]:
    """Check with the input that every count is the true count plus noise, and that the noise is as large as stated."""
    shape = published.counts.shape
    known = true_codes >= 0
    exact = np.bincount(strata[known] * shape[1] + true_codes[known], minlength=published.counts.size).reshape(shape)
    noise = np.abs(published.counts - exact)
    spread = math.sqrt(max(published.variance - published.size**2, 0) * noise.size)
    near = noise.size < _MIN_COUNTS or abs(float(noise.sum()) - published.size * noise.size) <= _SURE * spread
    return [
        none_of("noisy counts match the records of the input", int((noise > published.largest).sum())),
        Finding(
            "noisy counts have as much noise as stated",
            near and not published.has_missing_noise(int((noise == 0).sum())),
        ),
    ]
