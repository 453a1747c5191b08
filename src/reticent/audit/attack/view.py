"""One view of every kind of release: published records, the group each stands in, the values the group offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.audit.attack.transcript import transcript
from reticent.audit.groups import Groups, codes, histograms, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reticent.audit.arrays import Codes, Vector
    from reticent.audit.attack.evidence import Evidence
    from reticent.audit.published import Published
    from reticent.policy import Policy


@dataclass(frozen=True, repr=False)
class View:
    """What a reader sees of the persons in a release.

    Attributes:
        quasi: the published quasi-identifiers, a row per record.
        group: the group of each record.
        offers: the sensitive values that each group offers, with counts.
        place: position of each record in the input, where the release tells it (streams do).
    """

    quasi: pa.Table
    group: Codes
    offers: Groups
    place: Codes | None = None

    def top(self) -> Vector:
        """Per group the share of its most frequent value: the chance of the best guess."""
        return np.asarray(self.offers.largest() / np.maximum(self.offers.sizes(), 1))


def view(release: Published, policy: Policy, column: str) -> View | None:
    """The view of a release for one sensitive column; None when the release does not show it."""
    makers = {"generalised": _generalised, "anatomy": _anatomy, "m-distinct": _grouped, "stream": _stream}
    maker = makers.get(release.shape)
    return maker(release, policy, column) if maker else None


def views(evidence: Evidence) -> Iterator[tuple[str, View]]:
    """The sensitive columns that the latest release shows, each with its view."""
    for column in evidence.policy.sensitive:
        seen = view(evidence.releases[-1], evidence.policy, column)
        if seen is not None and len(seen.group):
            yield column, seen


def _quasi(table: pa.Table, policy: Policy) -> pa.Table:
    return table.select([name for name in policy.quasi if name in table.column_names])


def _generalised(release: Published, policy: Policy, column: str) -> View | None:
    data = release.tables.get("data")
    if data is None or column not in data.column_names:
        return None
    quasi = _quasi(data, policy)
    group, size = numbered(quasi, quasi.column_names)
    return View(quasi, group, histograms(group, size, data[column]))


def _grouped(release: Published, policy: Policy, column: str) -> View | None:
    data = release.tables.get("data")
    if data is None or column not in data.column_names or "group" not in data.column_names:
        return None
    group, names = codes(data["group"])
    return View(_quasi(data, policy), group, histograms(group, len(names), data[column]))


def _anatomy(release: Published, policy: Policy, column: str) -> View | None:  # noqa: ARG001 - one sensitive column
    qit, st = release.tables.get("qit"), release.tables.get("st")
    if qit is None or st is None:
        return None
    both, names = codes(pa.chunked_array(qit["group"].chunks + st["group"].chunks, pa.string()))
    offers = _counted(both[qit.num_rows :], st["value"], st["count"], len(names))
    return View(_quasi(qit, policy), both[: qit.num_rows], offers)


def _counted(group: Codes, values: pa.ChunkedArray, counts: pa.ChunkedArray, size: int) -> Groups:
    value, names = codes(values)
    count = pc.cast(counts, pa.int64()).to_numpy()
    order = np.lexsort((value, group))
    return Groups(group[order], value[order], count[order].astype(np.int64), size, names)


def _stream(release: Published, policy: Policy, column: str) -> View | None:  # noqa: ARG001 - one sensitive column
    return stream_view([release])


def stream_view(releases: Sequence[Published]) -> View | None:
    """The parts of a stream as one view; None for generalised records."""
    if any("record" in release.tables for release in releases):
        return None
    seen = transcript(releases, 1 << 40)
    if not len(seen):
        return None
    rows, places = np.nonzero(seen.slots >= 0)
    width = len(seen.values)
    keys, count = np.unique(rows * width + seen.slots[rows, places], return_counts=True)
    offers = Groups(keys // width, keys % width, count.astype(np.int64), len(seen.slots), seen.values)
    return View(pa.table({"qi": pa.array(seen.qi).cast(pa.string())}), seen.group, offers, seen.seq)
