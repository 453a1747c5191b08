"""Anatomy: exact quasi-identifiers in one table, sensitive values by group in another.

Guarantee: every group has at least l records with pairwise different sensitive values. An attacker who knows only the
quasi-identifiers of a person finds at least l candidate values of equal share.

Not covered: membership in the table (quasi-identifiers are published unchanged, without k-anonymity);
an attacker who knows the values of other persons; a second release of the same persons.

Cost: O(n) in the native core; memory of the table's codes.

Reference: X. Xiao, Y. Tao, "Anatomy: simple and effective privacy preservation", VLDB 2006.

`anatomy_people` groups persons with several records.

Differences from the paper: a table with a value more frequent than 1/l is not l-eligible. If the policy allows
suppression, Anatomy suppresses random records of the too frequent values until the table is eligible.
The order of the published rows and groups depends on the quasi-identifiers only, so it discloses nothing.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import Int32s, Int64s
from reticent.encode import Dictionary
from reticent.engine.base import check_values, refuse_group_column, sole_sensitive
from reticent.engine.disclosive_columns import refuse_disclosive_columns
from reticent.engine.identifiers import policy_exclusions
from reticent.engine.table.anatomy_people import group_people
from reticent.engine.table.base import TablePublisher
from reticent.engine.table.people import encode_column, persons_of, row_keys, text_ranks
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release
from reticent.release.wording import AGAINST, RECORDS_IN_GROUPS, SINGLING_OUT, exclusions


def anatomy_exclusions(policy: Policy) -> tuple[str, ...]:
    """Return what the guarantee of Anatomy does not cover under this policy."""
    unknown = () if policy.person is not None else (RECORDS_IN_GROUPS,)
    return exclusions(*unknown, SINGLING_OUT, persons=policy.person is not None) + policy_exclusions(policy)


DISCLOSIVE_HINT = (
    "Give it the role identifier, publish a generalized table with `table: {method: auto}`, or make the column coarser."
)
"""Hint for a disclosive column in a release with groups."""


class Anatomy(TablePublisher):
    """Anatomy of one table."""

    method = "anatomy"

    def release(self, table: pa.Table) -> Release:
        """Group the rows, or refuse if too many would have to be suppressed."""
        l, sensitive = requirement(self.policy)
        shown = {name: encode_column(table.column(name)) for name in self._column_names}
        check_values(table, self.policy, {name: values for name, (_, values) in shown.items()})
        words = Dictionary()
        codes = words.encode(table.column(sensitive))
        persons = persons_of(table, self.policy)
        refuse_disclosive_columns(shown, codes, persons=persons, hint=DISCLOSIVE_HINT)
        if persons is None or int(persons.max()) + 1 == len(persons):
            keep = self._eligible_rows(codes, len(words), l)
            groups = self._group(codes[keep], len(words), l)
        else:
            keep, groups = self._group_persons(codes, persons, len(words), l)
        if not len(groups) or (groups < 0).any():
            raise GuaranteeError(
                f"No grouping with l = {l} exists; nothing was published.", hint="Lower l in the policy."
            )
        # The core numbers groups by frequency; groups with equal quasi-identifiers must not keep that order.
        groups = _core.random.permutation(int(groups.max()) + 1, key=self.rng.key("groups"))[groups]
        arranged = _core.table.arrange_rows(row_keys(list(shown.values()), table.num_rows)[keep], groups)
        order = arranged.order
        groups, self._source_rows = arranged.numbers[groups[order]], keep[order]
        qit = pa.table({"group": groups} | {name: self._take_column(table, name, *shown[name]) for name in shown})
        st = sensitive_table(groups, codes[self._source_rows], words)
        return self._to_release(qit, st, table.num_rows - len(keep), l)

    @property
    def _column_names(self) -> list[str]:
        return [*self.policy.quasi, *self.policy.plain]

    def _take_column(self, table: pa.Table, name: str, codes: Int32s, values: pa.Array) -> pa.Array | pa.ChunkedArray:
        """Return a column of the published rows, in published order."""
        column = table.column(name)
        if pa.types.is_string(column.type):
            return pa.DictionaryArray.from_arrays(codes[self._source_rows], values)
        return column.take(pa.array(self._source_rows))

    def _group(self, codes: Int32s, domain: int, l: int) -> Int64s:
        codes = np.ascontiguousarray(codes)
        return _core.table.anatomize(codes, domain=domain, l=l, key=self.rng.key("anatomy")).groups

    def _group_persons(self, codes: Int32s, persons: Int64s, domain: int, l: int) -> tuple[Int64s, Int64s]:
        """Return the rows to publish and their groups for persons with several records."""

        def singles(rows: Int64s) -> Int64s:
            groups = np.full(len(rows), -1, dtype=np.int64)
            keep = self._draw_eligible_rows(codes[rows], domain, l)
            groups[keep] = self._group(codes[rows][keep], domain, l)
            return groups

        groups = group_people(codes, persons, domain=domain, l=l, seed=self.rng.key("people"), singles=singles)
        keep = np.flatnonzero(groups >= 0)
        lost, allowed = len(codes) - len(keep), self.policy.privacy.may_suppress(len(codes))
        if lost > allowed or not len(keep):
            raise GuaranteeError(
                f"l = {l} cannot be met for persons with several records: {lost:,} of {len(codes):,} records would have "
                f"to be suppressed and the policy allows {allowed:,}; nothing was published.",
                hint="Lower l, allow more suppression, or write person: {column: ..., records: first}.",
            )
        return keep, np.unique(groups[keep], return_inverse=True)[1].astype(np.int64)

    def _eligible_rows(self, codes: Int32s, domain: int, l: int) -> Int64s:
        """Return the rows to publish: all, or as many as l-eligibility and the suppression limit allow."""
        counts = np.bincount(codes, minlength=domain)
        n = len(codes)
        size = largest_eligible_size(counts, l)
        allowed = self.policy.privacy.may_suppress(n)
        if size == 0 or n - size > allowed:
            raise GuaranteeError(
                f"l = {l} cannot be met: {n - size:,} of {n:,} records would have to be suppressed and the policy allows "
                f"{allowed:,}; nothing was published.",
                hint=_suggest_fix(counts, n - size, l),
            )
        return self._draw_eligible_rows(codes, domain, l)

    def _draw_eligible_rows(self, codes: Int32s, domain: int, l: int) -> Int64s:
        """Return as many rows as l-eligibility allows; rows of a too frequent value are drawn at random."""
        counts, n = np.bincount(codes, minlength=domain), len(codes)
        size = largest_eligible_size(counts, l)
        order = _core.random.permutation(n, key=self.rng.key("suppress"))
        if size == n:
            return order
        ranked = order[np.argsort(codes[order], kind="stable")]
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        place = np.arange(n) - np.repeat(starts, counts)
        rows: Int64s = ranked[place < size // l]
        return rows

    def _to_release(self, qit: pa.Table, st: pa.Table, suppressed: int, l: int) -> Release:
        rows = qit.num_rows
        sizes = np.bincount(qit.column("group").to_numpy())
        asked = self.policy.privacy.l.to_plain() if self.policy.privacy.l else {}
        claim = asked | {"frequency": l} | ({"persons": {"distinct": l}} if self.policy.person else {})
        spread = (sizes * ((sizes - 1) / sizes)).sum() / rows
        return Release(
            kind=self.kind,
            shape="anatomy",
            method=self.method,
            tables={"qit": qit, "st": st},
            guarantee=Guarantee({"l": claim}, AGAINST["anatomy"], anatomy_exclusions(self.policy)),
            records=RecordCounts(rows + suppressed, rows, 0, suppressed),
            policy_hash=self.policy.hash,
            metrics={
                "average_class_size": rows / len(sizes),
                "discernibility": float((sizes.astype(np.float64) ** 2).sum()),
                "information_loss": float(spread / (len(self.policy.quasi) + 1)),
            },
            explain={"groups": len(sizes), "suppressed": suppressed},
            seeded=self.rng.seeded,
        )


def requirement(policy: Policy) -> tuple[int, str]:
    """Return the l and the sensitive column of Anatomy, or refuse a policy that it cannot meet."""
    refuse_group_column(policy)
    several = "Use --method optimal, or join them: {role: sensitive, combine: [a, b]}."
    sensitive = sole_sensitive(policy, "Anatomy needs", *([several] if policy.sensitive else []))
    privacy = policy.privacy
    if privacy.l is None or privacy.k is not None or privacy.t is not None:
        # One message for both: fixing a missing l must not lead to a second error about k.
        raise PolicyError(
            "Anatomy publishes quasi-identifiers unchanged: it needs l, and cannot promise k-anonymity or t-closeness.",
            hint=f"Write {_suggest_policy(policy)}, or use --method local.",
        )
    if privacy.l.kind == "recursive" and (privacy.l.c or 0) <= 1:
        raise PolicyError(
            "Anatomy meets recursive (c, l)-diversity only for c above 1.", hint="Raise c, or use --method optimal."
        )
    return int(np.ceil(privacy.l.l)), sensitive


def _suggest_policy(policy: Policy) -> str:
    """Return a privacy section that Anatomy can meet, as text for a policy."""
    privacy = policy.privacy
    ((kind, number),) = (privacy.l.to_plain() if privacy.l is not None else {"distinct": 3}).items()
    l = number if kind == "distinct" else f"{{{kind}: {number}}}"
    return f"privacy: {{l: {l}, suppression: {privacy.suppression:g}}}"


def largest_eligible_size(counts: Int64s, l: int) -> int:
    """Return the largest number of records in which no value exceeds a share of 1/l; 0 if there is none."""
    size = int(counts.sum())
    while size:
        fits = int(np.minimum(counts, size // l).sum())
        if fits == size:
            return size
        size = fits
    return 0


def sensitive_table(groups: Int64s, codes: Int32s, words: Dictionary) -> pa.Table:
    """Return (group, value, count) sorted by group and value, so that the order discloses nothing."""
    rank = text_ranks(words.values)
    keys = np.sort(
        groups * len(words) + rank[codes], kind="stable"
    )  # fast on nearly sorted keys: records come by group
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    group, place = np.divmod(keys[starts], len(words))
    values = pa.DictionaryArray.from_arrays(np.argsort(rank)[place].astype(np.int32), words.values)
    return pa.table({"group": group, "value": values, "count": np.diff(starts, append=len(keys))})


def _suggest_fix(counts: Int64s, needed: int, l: int) -> str:
    n = int(counts.sum())
    best = max((other for other in range(2, l) if largest_eligible_size(counts, other) == n), default=0)
    lower = f"lower l to {best}" if best else "choose another sensitive column"
    return f"Either {lower}, or allow suppression: {min(1.0, np.ceil(needed / n * 1000) / 1000):g} in the policy."
