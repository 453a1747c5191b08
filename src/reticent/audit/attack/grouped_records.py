"""Records in groups that share their values: two tables, streams, series, and classes of a generalized table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from reticent.arrays import Bools, Floats, Int64s
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.transcript import read_transcript
from reticent.policy import Policy
from reticent.verify.groups import Groups, codes, histograms, normalize_rows, number_rows, present_columns
from reticent.verify.published import Published

RECORD_LIMIT, GROUP_LIMIT = 60_000, 5_000  # records in memory, and members of one group
_ROUNDS = 12


@dataclass(frozen=True, repr=False)
class GroupedRecords:
    """Records in groups that share their values.

    Attributes:
        fields: published columns without the sensitive ones, as text.
        group: the group of each record.
        offers: values with counts per group.
        position: position in the input, if the release states it.
        opens: whether the record is the first of its group in a stream.
    """

    fields: pa.Table
    group: Int64s
    offers: Groups
    position: Int64s | None = None
    opens: Bools | None = None

    def __len__(self) -> int:
        return len(self.group)

    @property
    def values(self) -> tuple[str | None, ...]:
        """The distinct sensitive values."""
        return self.offers.values

    def top_shares(self) -> Floats:
        """Return, per group, the share of its most frequent value: the chance of the best guess."""
        return np.asarray(self.offers.largest() / np.maximum(self.offers.sizes(), 1))

    def counts(self, groups: Int64s) -> Floats:
        """Return the counts of these groups: groups x values."""
        offers = self.offers
        whole = csr_array((offers.count.astype(float), (offers.group, offers.value)), (offers.size, len(offers.values)))
        return np.asarray(whole[groups].toarray())

    def prior(self, records: Int64s) -> Floats:
        """Return the share of each value in the whole release, repeated for each record."""
        totals = np.bincount(self.offers.value, self.offers.count, minlength=len(self.values))
        return np.broadcast_to(totals / totals.sum(), (len(records), len(totals)))

    def weight(self, records: Int64s) -> Floats:
        """Return how much more frequent each value is in the group than overall, as if members were independent."""
        return np.asarray(self.stated_shares(records) / np.maximum(self.prior(records), 1e-12))

    def stated_shares(self, records: Int64s) -> Floats:
        """Return the share of each value in the record's group."""
        return normalize_rows(self.counts(self.group[records]))

    def posterior(self, belief: Floats, records: Int64s) -> Floats:
        """Fit beliefs to the counts of each group by iterative proportional fitting.

        The exact answer sums over all assignments of values to members (a permanent); the fit is an approximation.
        Empty slots, and members who are not among the records, get the average belief of their group.
        """
        after = np.zeros_like(belief)
        offers, order = self.offers, np.argsort(self.group[records], kind="stable")
        groups, starts = np.unique(self.group[records][order], return_index=True)
        ends = np.append(starts, len(order))[1:]
        bounds = np.searchsorted(offers.group, np.stack([groups, groups + 1]))
        for start, end, low, high in zip(starts, ends, *bounds, strict=True):
            counts = offers.count[low:high]
            # No member has a value that the group does not offer.
            cells = np.ix_(order[start:end], offers.value[low:high][counts > 0])
            after[cells] = _fit_to_counts(belief[cells], counts[counts > 0])
        return after

    def limit_records(self, records: Int64s, rng: np.random.Generator) -> Int64s:
        """Sample whole groups of these records up to the memory limit; of large groups take a part."""
        names = rng.permutation(np.unique(self.group[records]))
        sizes = np.minimum(np.bincount(self.group, minlength=self.offers.size)[names], GROUP_LIMIT)
        chosen = names[: max(1, int(np.searchsorted(np.cumsum(sizes), RECORD_LIMIT, side="right")))]
        members = rng.permutation(np.flatnonzero(np.isin(self.group, chosen)))
        members = members[np.argsort(self.group[members], kind="stable")]
        first = np.searchsorted(self.group[members], self.group[members])
        return np.sort(members[np.arange(len(members)) - first < GROUP_LIMIT])


def group_records(release: Published, policy: Policy, column: str) -> GroupedRecords | None:
    """Return the grouped records of a release for one sensitive column; None if the release does not show it."""
    if release.shape == "stream":
        return group_stream([release])
    if release.shape == "anatomy":
        return _two_tables(release, policy)
    return _one_table(release, policy, column) if release.shape in ("generalized", "m-distinct") else None


def iter_grouped_columns(evidence: Evidence) -> Iterator[tuple[str, GroupedRecords]]:
    """Yield the sensitive columns that the latest release shows, each with its grouped records."""
    for column in evidence.policy.sensitive:
        seen = group_records(evidence.releases[-1], evidence.policy, column)
        if seen is not None and len(seen.group):
            yield column, seen


def _fields(table: pa.Table, policy: Policy) -> pa.Table:
    return table.select(present_columns((*policy.quasi, *policy.plain), table))


def _one_table(release: Published, policy: Policy, column: str) -> GroupedRecords | None:
    """Group by group number, or by the published quasi-identifiers."""
    data = release.tables.get("data", pa.table({}))
    by = ["group"] if release.shape == "m-distinct" else present_columns(policy.quasi, data)
    if not {column, *by} <= set(data.column_names):
        return None
    group, size = number_rows(data, by)
    return GroupedRecords(_fields(data, policy), group, histograms(group, size, data[column]))


def _two_tables(release: Published, policy: Policy) -> GroupedRecords | None:
    if not {"qit", "st"} <= set(release.tables):
        return None
    qit, st = release.tables["qit"], release.tables["st"]
    (here, there, size), (value, names) = release.group_codes, codes(st["value"])
    offers = Groups.from_records(there, value, size, names, pc.cast(st["count"], pa.int64()).to_numpy())
    return GroupedRecords(_fields(qit, policy), here, offers)


def group_stream(releases: Sequence[Published]) -> GroupedRecords | None:
    """Join the parts of a stream, with one number per quasi-identifier combination; None for generalized records."""
    if any("record" in release.tables for release in releases):
        return None
    seen = read_transcript(releases, 1 << 40)
    if not len(seen):
        return None
    rows, places = np.nonzero(seen.slots >= 0)
    offers = Groups.from_records(rows, seen.slots[rows, places], len(seen.slots), seen.values)
    return GroupedRecords(
        pa.table({"quasi": pa.array(seen.quasi).cast(pa.string())}), seen.group, offers, seen.seq, seen.opens
    )


def _fit_to_counts(belief: Floats, counts: Int64s) -> Floats:
    """Fit the beliefs of the members of one group to the counts of its values."""
    free = max(int(counts.sum()) - len(belief), 0)
    average, scale = belief.mean(axis=0), np.ones(len(counts))
    for _ in range(_ROUNDS):
        total = normalize_rows(belief * scale).sum(axis=0) + free * normalize_rows(average * scale)
        scale *= np.divide(counts, total, out=np.zeros_like(scale), where=total > 0)
    return normalize_rows(belief * scale)
