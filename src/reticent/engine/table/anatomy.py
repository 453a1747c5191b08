"""Anatomy: exact quasi-identifiers in one table, sensitive values by group in another.

Guarantee: every group holds at least l records with pairwise different sensitive values, so that a reader who knows a
person's quasi-identifiers, and nothing else, finds at least l candidate values of equal share for that person.

Not covered: that a person is in the table at all (the quasi-identifiers are published as they are: no k-anonymity);
a reader who knows other persons' values; a second release of the same persons.

Cost: O(n) in the native core; memory of the table's codes.

Reference: X. Xiao, Y. Tao, "Anatomy: simple and effective privacy preservation", VLDB 2006.

Differences from the paper: a table that is not l-eligible (a value more frequent than 1/l) is not refused outright when
the policy allows suppression: records of the too frequent values, chosen at random, are left out until it is eligible.
Rows of the published tables are put in random order inside a group, since the input may be sorted by the sensitive value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.encode import Dictionary
from reticent.engine.base import check_values
from reticent.engine.identifiers import beyond
from reticent.engine.table.base import TablePublisher
from reticent.errors import GuaranteeError, PolicyError
from reticent.release import Counts, Guarantee, Release
from reticent.release.wording import not_covered

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.policy import Policy

AGAINST = "a reader who knows who is in the table and all their quasi-identifiers"
NOT_COVERED = not_covered("singling out by published quasi-identifiers")


class Anatomy(TablePublisher):
    """Anatomy of one table."""

    method = "anatomy"

    def release(self, table: pa.Table) -> Release:
        """Groups the rows, or refuses when too many would have to be suppressed."""
        l, sensitive = requirement(self.policy)
        check_values(table, self.policy)
        words = Dictionary()
        codes = words.encode(table.column(sensitive))
        keep = self._eligible(codes, len(words), l)
        grouped = _core.table.anatomize(
            np.ascontiguousarray(codes[keep]), domain=len(words), l=l, key=self.rng.key("anatomy")
        )
        groups, count = grouped.groups, grouped.count
        if count == 0 or (groups < 0).any():
            raise GuaranteeError(
                f"No grouping with l = {l} exists; nothing was published.", hint="Lower l in the policy."
            )
        # Groups are made in an order that follows the frequencies, so they are numbered anew.
        groups = _core.random.permutation(count, key=self.rng.key("groups"))[groups]
        qit = self._qit(table, keep, groups)
        st = sensitive_table(groups, codes[keep], words)
        return self._wrap(qit, st, count, table.num_rows - len(keep), l)

    def _eligible(self, codes: npt.NDArray[np.int32], domain: int, l: int) -> npt.NDArray[np.int64]:
        """The rows to publish: all, or as many as l-eligibility and the suppression limit allow."""
        counts = np.bincount(codes, minlength=domain)
        n = len(codes)
        size = largest_eligible(counts, l)
        allowed = int(self.policy.privacy.suppression * n)
        if size == 0 or n - size > allowed:
            raise GuaranteeError(
                f"l = {l} cannot be met: {n - size:,} of {n:,} records would have to be suppressed and the policy allows {allowed:,}; "
                f"nothing was published.",
                hint=_way_out(counts, n - size, l),
            )
        order = _core.random.permutation(n, key=self.rng.key("suppress"))
        if size == n:
            return order
        ranked = order[np.argsort(codes[order], kind="stable")]
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        place = np.arange(n) - np.repeat(starts, counts)
        rows: npt.NDArray[np.int64] = ranked[place < size // l]
        return rows

    def _qit(self, table: pa.Table, keep: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]) -> pa.Table:
        """Quasi-identifiers by group, in random order inside each: `keep` may stand in the order of the values."""
        shuffled = _core.random.permutation(len(keep), key=self.rng.key("order"))
        order = shuffled[np.argsort(groups[shuffled], kind="stable")]
        rows = table.select([*self.policy.quasi, *self.policy.plain]).take(pa.array(keep[order]))
        return rows.add_column(0, "group", pa.array(groups[order]))

    def _wrap(self, qit: pa.Table, st: pa.Table, count: int, suppressed: int, l: int) -> Release:
        rows = qit.num_rows
        asked = self.policy.privacy.l.plain() if self.policy.privacy.l else {}
        sizes = np.bincount(qit.column("group").to_numpy())
        spread = (sizes * ((sizes - 1) / sizes)).sum() / rows
        return Release(
            kind=self.kind,
            shape="anatomy",
            method=self.method,
            tables={"qit": qit, "st": st},
            guarantee=Guarantee({"l": asked | {"frequency": l}}, AGAINST, NOT_COVERED + beyond(self.policy)),
            counts=Counts(rows + suppressed, rows, 0, suppressed),
            policy_hash=self.policy.hash,
            metrics={
                "average_class_size": rows / count,
                "discernibility": float((sizes.astype(np.float64) ** 2).sum()),
                "information_loss": float(spread / (len(self.policy.quasi) + 1)),
            },
            explain={"groups": count, "suppressed": suppressed},
            seeded=self.rng.seeded,
        )


def requirement(policy: Policy) -> tuple[int, str]:
    """The l and the sensitive column that Anatomy needs; refuses what it cannot promise."""
    if len(policy.sensitive) != 1:
        raise PolicyError(
            f"Anatomy needs exactly one sensitive column; the policy has {len(policy.sensitive)}.",
            hint="Use --method optimal, or join them: {role: sensitive, combine: [a, b]}."
            if policy.sensitive
            else "Give one column the role sensitive.",
        )
    privacy = policy.privacy
    if privacy.l is None:
        raise PolicyError("Anatomy needs l.", hint="Write privacy: {l: 5}.")
    if privacy.k is not None or privacy.t is not None:
        raise PolicyError(
            "Anatomy publishes quasi-identifiers as they are, so it cannot promise k-anonymity or t-closeness.",
            hint="Take k and t out of the policy, or use --method optimal.",
        )
    if privacy.l.kind == "recursive" and (privacy.l.c or 0) <= 1:
        raise PolicyError(
            "Anatomy meets recursive (c, l) only for c above 1.", hint="Raise c, or use --method optimal."
        )
    return int(np.ceil(privacy.l.l)), policy.sensitive[0]


def largest_eligible(counts: npt.NDArray[np.int64], l: int) -> int:
    """The most records that can be kept so that no value exceeds 1/l of them; 0 if there is no such table."""
    size = int(counts.sum())
    while size:
        fits = int(np.minimum(counts, size // l).sum())
        if fits == size:
            return size
        size = fits
    return 0


def sensitive_table(groups: npt.NDArray[np.int64], codes: npt.NDArray[np.int32], words: Dictionary) -> pa.Table:
    """(group, value, count), sorted by group and value so that the order tells nothing."""
    rank = np.empty(len(words), dtype=np.int64)
    rank[np.argsort([str(value) for value in words.values.to_pylist()], kind="stable")] = np.arange(len(words))
    keys, counts = np.unique(groups * len(words) + rank[codes], return_counts=True)
    by_rank = np.argsort(rank)
    values = words.decode(by_rank[keys % len(words)].astype(np.int32))
    return pa.table({"group": keys // len(words), "value": values, "count": counts})


def _way_out(counts: npt.NDArray[np.int64], needed: int, l: int) -> str:
    n = int(counts.sum())
    best = max((other for other in range(2, l) if largest_eligible(counts, other) == n), default=0)
    lower = f"lower l to {best}" if best else "choose another sensitive column"
    return f"Either {lower}, or allow suppression: {min(1.0, np.ceil(needed / n * 1000) / 1000):g} in the policy."
