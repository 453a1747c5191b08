"""The sensitive values of a stream: labels, codes, published order, and the weights of candidate pools.

A feed cannot be sent back for correction: where groups count different values, a variant of a value is read as the form that
came first.

A delay-free stream takes its values from a file of the past, or from the hierarchy. The pool `matched` gives every value the inclusion
probability min(1, l * p_v), so that groups offer the values that the stream will use. Values at the cap are in every group; the
others share the remaining places in proportion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from reticent.arrays import Int32s, UInt32s, UInt64s
from reticent.engine.base import sole_sensitive
from reticent.engine.value_variants import refuse_variants
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.policy.cells import canonical_form
from reticent.policy.hierarchy import tree_of
from reticent.policy.prior import read_prior


class Values:
    """Grows as new values come in; a code never changes.

    Example:
        >>> values = Values(["flu", "asthma"])
        >>> values.encode(pa.array(["asthma", None])).tolist(), len(values)
        ([1, 2], 3)
        >>> values.rank.tolist()
        [2, 1, 0]
    """

    def __init__(self, labels: Iterable[Label]) -> None:
        self.labels: list[Label] = list(labels)
        self._codes = {label: code for code, label in enumerate(self.labels)}
        self._first: dict[str, Label] = {}
        for label in self.labels:
            self._first.setdefault(canonical_form(label), label)
        self._array: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def code(self, label: Label) -> int:
        """Return the code of a label; a new label gets the next free code."""
        code = self._codes.get(label)
        if code is None:
            first = self._first.setdefault(canonical_form(label), label)
            code = self._codes[label] = self._codes[first] if first in self._codes else self._add(label)
        return code

    def _add(self, label: Label) -> int:
        self.labels.append(label)
        self._array = None
        return len(self.labels) - 1

    def encode(self, column: pa.Array) -> Int32s:
        """Return the codes of a column of text."""
        if len(column) == 1:
            return np.array([self.code(column[0].as_py())], dtype=np.int32)
        coded = column.dictionary_encode(null_encoding="encode")
        table = np.array([self.code(label) for label in coded.dictionary.to_pylist()], dtype=np.int32)
        codes: Int32s = table[coded.indices.to_numpy()]
        return codes

    @property
    def array(self) -> pa.Array:
        """The labels by code."""
        if self._array is None:
            self._array = pa.array(self.labels, pa.string())
        return self._array

    @property
    def rank(self) -> UInt32s:
        """The position of every code in the published order; a missing value comes first."""
        return self.rank_of(len(self))

    def rank_of(self, size: int) -> UInt32s:
        """Return the positions of the first `size` codes among themselves."""
        order = sorted(range(size), key=lambda code: self.labels[code] or "")
        return np.argsort(order).astype(np.uint32)


Label = str | None


def starting_counts(policy: Policy) -> tuple[Mapping[Label, int], bool]:
    """Return what is known before the first record: counts of the values, and whether they come from the past.

    Raises:
        PolicyError: the policy names neither a file of the past nor a hierarchy from a file.
    """
    column = sensitive_column(policy)
    counts: Mapping[Label, int] = {}
    past = policy.prior.file if policy.prior is not None else None
    if past is not None:
        counts = read_prior(policy.path(past))
    elif (tree := tree_of(policy.columns[column].hierarchy, policy.base, column=column)) is not None:
        counts = dict.fromkeys(tree.paths, 1)
    else:
        raise PolicyError(
            f"A stream needs the possible values of '{column}' before the first record.",
            hint="Write prior: {file: prior.csv} with value,count of the past (0 is allowed), or give the column "
            "a hierarchy from a file.",
        )
    refuse_variants(counts, column)
    return counts, past is not None


def sensitive_column(policy: Policy) -> str:
    """Return the one sensitive column of a stream."""
    hint = "Merge the columns into one, or give the others the role identifier, which is not released."
    return sole_sensitive(policy, "A stream needs", hint)


PROBABILITY_ONE = 1 << 32
"""The integer for an inclusion probability of 1 in the core."""


def weights(pool: str, counts: Sequence[int], l: int) -> UInt64s:
    """Return the weights of the core's draws; refuses a domain that is too small for a group."""
    if len(counts) < l:
        raise GuaranteeError(
            f"A group needs {l} different values and the domain has {len(counts)}; nothing was published.",
            hint="Lower stream.l, or name more values in the prior.",
        )
    if pool == "matched":
        return inclusion_probabilities([max(1, count) for count in counts], l)
    return np.array(counts, dtype=np.uint64)


def inclusion_probabilities(counts: Sequence[int], l: int) -> UInt64s:
    """Return inclusion probabilities in units of 1 / PROBABILITY_ONE: at most one each, exactly l together.

    >>> (inclusion_probabilities([6, 2, 1, 1], 2) / PROBABILITY_ONE).tolist()
    [1.0, 0.5, 0.25, 0.25]
    """
    capped = _values_at_cap(counts, l)
    free, places = [v for v in range(len(counts)) if v not in capped], l - len(capped)
    total = sum(counts[v] for v in free)
    probabilities = [PROBABILITY_ONE] * len(counts)
    for value in free:
        probabilities[value] = places * PROBABILITY_ONE * counts[value] // total
    remainder = l * PROBABILITY_ONE - sum(probabilities)
    for value in sorted(free, key=lambda v: probabilities[v]):
        # Rounding down leaves less than one unit per value; the remainder goes where there is room.
        added = min(remainder, PROBABILITY_ONE - probabilities[value])
        probabilities[value] += added
        remainder -= added
    return np.array(probabilities, dtype=np.uint64)


def _values_at_cap(counts: Sequence[int], l: int) -> set[int]:
    """Return the values that belong to every group."""
    capped: set[int] = set()
    while len(capped) < l:
        places, total = l - len(capped), sum(n for v, n in enumerate(counts) if v not in capped)
        more = {v for v, n in enumerate(counts) if v not in capped and places * n >= total}
        if not more:
            break
        capped |= more
    return capped
