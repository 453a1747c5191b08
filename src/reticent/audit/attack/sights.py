"""Sights: what every published record says of its sensitive value, in one form for all kinds of release.

Under the veil a record speaks for itself: its candidates weigh copies / (l p), and a value that its row of the prior does not
know weighs 1, since its set was drawn without it. In groups (two tables, streams, series, classes of a generalised table) the
members share the values of their group among them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
from scipy.sparse import csr_array

from reticent.audit.attack.transcript import wire_table
from reticent.audit.attack.view import stream_view, view
from reticent.audit.published import text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from reticent.audit.arrays import Codes, Flags, Vector
    from reticent.audit.attack.evidence import Evidence
    from reticent.audit.groups import Groups
    from reticent.audit.published import Published
    from reticent.policy import Policy


MOST, LARGE = 60_000, 5_000  # records read at once, and members of one group
_ROUNDS = 12
_OWN = ("group", "seq", "row", "event", "person")


@dataclass(frozen=True, repr=False)
class Veiled:
    """Records under the veil.

    Attributes:
        fields: published columns but the candidates, as text.
        values: the domain.
        shares: the published prior, rows x values.
        by: the fields that the prior depends on.
        rows: the row of every record.
        candidates: records x l codes.
        house: digest of the house; sets of one house are one draw.
        quoted: the share of right guesses that the release quotes for its best reader; None where it quotes none.
    """

    fields: pa.Table
    values: tuple[str | None, ...]
    shares: Vector
    by: tuple[str, ...]
    rows: Codes
    candidates: Codes
    house: str
    quoted: float | None
    place: Codes | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def l(self) -> int:  # noqa: E743 - as in the design
        """Candidates per record."""
        return int(self.candidates.shape[1])

    def prior(self, records: Codes) -> Vector:
        """What the release says that a reader knows: records x values."""
        return np.asarray(self.shares[self.rows[records]])

    def copies(self, records: Codes) -> Vector:
        """How often each value stands in the sets: records x values."""
        copies = np.zeros((len(records), len(self.values)))
        np.add.at(copies, (np.arange(len(records))[:, None], self.candidates[records]), 1)
        return copies

    def weight(self, records: Codes) -> Vector:
        """Likelihood of each set given each value, up to a factor per record."""
        expected = self.l * self.prior(records)
        return np.divide(self.copies(records), expected, out=np.ones_like(expected), where=expected > 0)

    def stated(self, records: Codes) -> Vector:
        """The weights that the release states: copies / l."""
        return self.copies(records) / self.l

    def posterior(self, belief: Vector, records: Codes) -> Vector:
        """What a reader thinks who believed this before she saw the sets."""
        return normal(belief * self.weight(records))

    def readable(self, records: Codes, rng: np.random.Generator) -> Codes:
        """So many of the records as can be read at once."""
        return records if len(records) <= MOST else np.sort(rng.choice(records, MOST, replace=False))


@dataclass(frozen=True, repr=False)
class Grouped:
    """Records in groups that share their values.

    Attributes:
        fields: published columns, as text.
        group: the group of every record.
        offers: values with counts per group.
        place: position in the input, where the release tells it.
        opens: whether the record is the first of its group in a stream.
    """

    fields: pa.Table
    group: Codes
    offers: Groups
    place: Codes | None = None
    opens: Flags | None = None

    def __len__(self) -> int:
        return len(self.group)

    @property
    def values(self) -> tuple[str | None, ...]:
        """The values that occur."""
        return self.offers.values

    def counts(self, groups: Codes) -> Vector:
        """Groups x values."""
        offers = self.offers
        whole = csr_array((offers.count.astype(float), (offers.group, offers.value)), (offers.size, len(offers.values)))
        return np.asarray(whole[groups].toarray())

    def prior(self, records: Codes) -> Vector:
        """What the release says of everybody: how often each value is published."""
        totals = np.bincount(self.offers.value, self.offers.count, minlength=len(self.values))
        return np.broadcast_to(totals / totals.sum(), (len(records), len(totals)))

    def weight(self, records: Codes) -> Vector:
        """How much more frequent each value is in the group than everywhere, for one who takes members as independent."""
        return np.asarray(self.stated(records) / np.maximum(self.prior(records), 1e-12))

    def stated(self, records: Codes) -> Vector:
        """A value's share of the group."""
        return normal(self.counts(self.group[records]))

    def posterior(self, belief: Vector, records: Codes) -> Vector:
        """Beliefs fitted to the counts of each group by proportional fitting; the records are groups, or parts of large ones.

        The exact answer sums over all assignments of values to members (a permanent); row and column sums in turn come near it.
        Seats that nobody has taken, and members who are not among the records, are members of their group's average belief.
        """
        after = np.zeros_like(belief)
        offers, order = self.offers, np.argsort(self.group[records], kind="stable")
        groups, starts = np.unique(self.group[records][order], return_index=True)
        ends = np.append(starts, len(order))[1:]
        bounds = np.searchsorted(offers.group, np.stack([groups, groups + 1]))
        for start, end, low, high in zip(starts, ends, *bounds, strict=True):
            counts = offers.count[low:high]
            # Nobody has what is not offered.
            cells = np.ix_(order[start:end], offers.value[low:high][counts > 0])
            after[cells] = _fitted(belief[cells], counts[counts > 0])
        return after

    def readable(self, records: Codes, rng: np.random.Generator) -> Codes:
        """The records with everybody in their groups, so many groups as can be read at once, and of large ones a part."""
        names = rng.permutation(np.unique(self.group[records]))
        sizes = np.minimum(np.bincount(self.group, minlength=self.offers.size)[names], LARGE)
        chosen = names[: max(1, int(np.searchsorted(np.cumsum(sizes), MOST, side="right")))]
        members = rng.permutation(np.flatnonzero(np.isin(self.group, chosen)))
        members = members[np.argsort(self.group[members], kind="stable")]
        first = np.searchsorted(self.group[members], self.group[members])
        return np.sort(members[np.arange(len(members)) - first < LARGE])


def _fitted(belief: Vector, counts: Codes) -> Vector:
    """Beliefs of the members of one group, fitted to the counts of its values."""
    free = max(int(counts.sum()) - len(belief), 0)
    average, scale = belief.mean(axis=0), np.ones(len(counts))
    for _ in range(_ROUNDS):
        total = normal(belief * scale).sum(axis=0) + free * normal(average * scale)
        scale *= np.divide(counts, total, out=np.zeros_like(scale), where=total > 0)
    return normal(belief * scale)


Sights = Veiled | Grouped


def sights(release: Published, policy: Policy) -> Sights | None:
    """The records of a release; None where it shows no value of the policy's first sensitive column."""
    if not policy.sensitive:
        return None
    if release.shape == "veil":
        return _veiled(release)
    if release.shape == "stream":
        return _stream(release)
    shown = view(release, policy, policy.sensitive[0])
    if shown is None or not len(shown.group):
        return None
    table = release.tables.get("qit", release.tables.get("data"))
    plain = [name for name in policy.plain if table is not None and name in table.column_names]
    fields = shown.quasi
    for name in plain:
        fields = fields.append_column(name, table[name])
    return Grouped(fields, shown.group, shown.offers)


def latest(evidence: Evidence) -> Sights | None:
    """The latest release."""
    return sights(evidence.releases[-1], evidence.policy)


def _stream(release: Published) -> Sights | None:
    if "veil" in release.documents and release.wire is not None:
        return _veiled_lines(release.wire, release.documents["veil"])
    shown = stream_view([release])
    if shown is None:
        return None
    if release.wire is not None:
        fields = wire_table(release)
    else:
        table = release.tables["tuple"]
        order = np.argsort(table["seq"].cast(pa.int64()).to_numpy(), kind="stable")
        fields = table.take(pa.array(order)).drop_columns([n for n in _OWN if n in table.column_names])
    opens = np.zeros(len(shown.group), dtype=np.bool_)
    opens[np.unique(shown.group, return_index=True)[1]] = True
    return Grouped(fields, shown.group, shown.offers, shown.place, opens)


def _veiled_lines(wire: Path, document: Mapping[str, Any]) -> Veiled | None:
    """A stream of veiled records, with the codebook that stands beside it."""
    with wire.open("rb") as file:
        lines = [line for line in map(orjson.loads, filter(bytes.strip, file)) if line.get("candidates")]
    if not lines:
        return None
    shown = [{**line["qi"], **(line.get("plain") or {})} for line in lines]
    columns = {name: pa.array([text(row.get(name)) for row in shown], pa.string()) for name in shown[0]}
    columns |= {
        f"{document['sensitive']}_{slot + 1}": pa.array([line["candidates"][slot] for line in lines])
        for slot in range(int(document["l"]))
    }
    columns |= {
        name: pa.array([line[name] for line in lines]) for name in ("row", "event", "person") if name in lines[0]
    }
    seen = _of_table(pa.table(columns), document)
    return replace(seen, place=np.array([line["seq"] for line in lines], dtype=np.int64))


def _veiled(release: Published) -> Veiled | None:
    data, document = release.tables.get("data"), release.documents.get("veil")
    return None if data is None or not document or not data.num_rows else _of_table(data, document)


def _of_table(data: pa.Table, document: Mapping[str, Any]) -> Veiled:
    domain = tuple(str(label) for label in document["domain"])
    codes = {label: code for code, label in enumerate(domain)}
    names = [f"{document['sensitive']}_{slot}" for slot in range(1, int(document["l"]) + 1)]
    listed = np.array([[codes[v] for v in data[name].to_pylist()] for name in names], dtype=np.int64).T
    stretches = np.array(document["stretches"], dtype=np.float64)
    return Veiled(
        fields=data.drop_columns([n for n in (*names, *_OWN) if n in data.column_names]),
        values=domain,
        shares=stretches / stretches.sum(axis=1, keepdims=True),
        by=tuple(str(name) for name in document["by"]),
        rows=_whole(data["row"]),
        candidates=listed,
        house=str(document.get("house", "")),
        quoted=_quoted(document),
    )


def _quoted(document: Mapping[str, Any]) -> float | None:
    """Of the reader whom the prior was measured with, if that was at this l."""
    try:
        figures = document["figures"]
        return float(figures["reader"]["after"]["right"]) if figures["l"] == document["l"] else None
    except (KeyError, TypeError, ValueError):
        return None


def _whole(column: pa.ChunkedArray) -> Codes:
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)


def normal(weights: Vector) -> Vector:
    """Rows that sum to one; a row of zeros stays."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))
