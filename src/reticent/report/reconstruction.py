"""Reconstruction: what a released record says about its original values, as probabilities.

A published label represents every original value that it covers, with equal probability. A group offers its sensitive
values with probabilities by their counts. Utility is measured on these probabilities, as a recipient would estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from reticent.arrays import Floats, Int64s
from reticent.audit.attack.grouped_records import group_records
from reticent.policy import Policy
from reticent.verify.groups import codes
from reticent.verify.labels.coverage import coverage_matrix
from reticent.verify.published import Published

Shares = tuple[Floats, Floats]


@dataclass(frozen=True, repr=False)
class Column:
    """One quasi-identifier before and after.

    Attributes:
        source: code of the original value, per original record.
        label: code of the published label, per published record.
        within: per label, the probability of each original value.
        covered: per label, how many original values it covers.
        narrowest_label: per original value, the narrowest label that covers it.
        values, labels: the texts of both codes.
    """

    source: Int64s
    label: Int64s
    within: csr_array
    covered: Int64s
    narrowest_label: Int64s
    values: tuple[str | None, ...] = ()
    labels: tuple[str | None, ...] = ()

    def shares(self) -> Shares:
        """Return the shares of each original value: before, and as a recipient estimates them."""
        return _shares(self.source, self.within, self.label)


@dataclass(frozen=True, repr=False)
class Reconstruction:
    """A release together with its original.

    Attributes:
        columns: the quasi-identifiers, by name.
        sensitive: code of the sensitive value per original record; -1 never occurs.
        group_share: per group, the probability of each sensitive value.
        group: the group of each published record.
        values: the sensitive values, by code.
    """

    columns: dict[str, Column]
    sensitive: Int64s
    group_share: csr_array
    group: Int64s
    values: tuple[str | None, ...]

    def shares(self) -> Shares:
        """Return the shares of each sensitive value: before, and as a recipient estimates them."""
        return _shares(self.sensitive, self.group_share, self.group)

    def value_probabilities(self, rows: Int64s | slice) -> Floats:
        """Return the probability of each sensitive value for these published records."""
        return np.asarray(self.group_share[self.group[rows]].toarray())


def _shares(source: Int64s, within: csr_array, label: Int64s) -> Shares:
    before = np.bincount(source, minlength=within.shape[1]) / max(1, len(source))
    often = np.bincount(label, minlength=within.shape[0])
    return before, np.asarray(within.T @ often / max(1, len(label)))


def reconstruct(release: Published, original: pa.Table, policy: Policy) -> Reconstruction | None:
    """Combine a release with its original; None for streams and for releases without sensitive values."""
    if not policy.sensitive or policy.sensitive[0] not in original.column_names:
        return None
    shown = group_records(release, policy, policy.sensitive[0])
    if shown is None or release.shape == "stream" or not len(shown.group):
        return None
    names = [name for name in policy.quasi if name in shown.fields.column_names and name in original.column_names]
    columns = {name: _column(original[name], shown.fields[name], policy, name) for name in names}
    sensitive, values = codes(original[policy.sensitive[0]])
    offers = shown.offers
    place = {value: code for code, value in enumerate(values)}
    known = np.array([place.get(value, -1) for value in offers.values], dtype=np.int64)
    inside = known[offers.value] >= 0
    weight = offers.shares()
    places = (offers.group[inside], known[offers.value[inside]])
    share = csr_array((weight[inside], places), shape=(offers.size, len(values)))
    return Reconstruction(columns, sensitive, share, shown.group, values)


def _column(before: pa.ChunkedArray, after: pa.ChunkedArray, policy: Policy, name: str) -> Column:
    source, values = codes(before)
    label, labels = codes(after)
    covers = coverage_matrix(values, labels, policy, name).T.tocsr().astype(np.float64)
    covered = np.maximum(covers.sum(axis=1), 1).astype(np.int64)
    within = csr_array(covers.multiply((1.0 / covered)[:, None]))
    pairs = within.tocoo()
    narrowest_label = np.zeros(len(values), dtype=np.int64)
    order = np.argsort(pairs.data, kind="stable")  # the narrowest label is assigned last
    narrowest_label[pairs.col[order]] = pairs.row[order]
    return Column(source, label, within, covered, narrowest_label, values, labels)
