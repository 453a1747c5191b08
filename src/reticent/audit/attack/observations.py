"""Observations: what each published record says about its sensitive value, in one form for all kinds of release.

Under the veil each record counts alone: a candidate has the weight copies / (l p). A value that its stratum of the prior
does not contain has weight 1, because the set was drawn without it. In groups (two tables, streams, series, classes of a
generalized table) the members share the values of their group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Floats, Int64s
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.grouped_records import RECORD_LIMIT, GroupedRecords, group_records, group_stream
from reticent.audit.attack.transcript import iter_lines, stream_table
from reticent.policy import Policy
from reticent.verify.groups import normalize_rows, present_columns
from reticent.verify.published import Published, cell_text
from reticent.verify.veil.verifier import CumulativeLine, candidate_codes, whole_numbers

_TECHNICAL_COLUMNS = ("group", "seq", "stratum", "event", "person")


@dataclass(frozen=True, repr=False)
class VeiledRecords:
    """Records published under the veil.

    Attributes:
        fields: published columns without the candidates, as text.
        values: the value domain.
        shares: the published prior, strata x values.
        by: the conditioning fields of the prior.
        strata: the stratum of each record.
        candidates: records x l codes.
        parameters_digest: digest of the veil parameters; sets with the same parameters are one draw.
        quoted_accuracy: the share of right guesses that the release states for the best attacker; None if not stated.
    """

    fields: pa.Table
    values: tuple[str | None, ...]
    shares: Floats
    by: tuple[str, ...]
    strata: Int64s
    candidates: Int64s
    parameters_digest: str
    quoted_accuracy: float | None
    position: Int64s | None = None

    def __len__(self) -> int:
        return len(self.strata)

    @property
    def l(self) -> int:  # noqa: E743 - as in the design
        """Candidates per record."""
        return int(self.candidates.shape[1])

    def prior(self, records: Int64s) -> Floats:
        """Return the published prior of each record: records x values."""
        return np.asarray(self.shares[self.strata[records]])

    def copies(self, records: Int64s) -> Floats:
        """Count how often each value occurs among the candidates: records x values."""
        copies = np.zeros((len(records), len(self.values)))
        np.add.at(copies, (np.arange(len(records))[:, None], self.candidates[records]), 1)
        return copies

    def weight(self, records: Int64s) -> Floats:
        """Return the likelihood of each candidate set given each value, up to a factor per record."""
        expected = self.l * self.prior(records)
        return np.divide(self.copies(records), expected, out=np.ones_like(expected), where=expected > 0)

    def stated_shares(self, records: Int64s) -> Floats:
        """Return the weights that the release states: copies / l."""
        return self.copies(records) / self.l

    def posterior(self, belief: Floats, records: Int64s) -> Floats:
        """Return the attacker's belief after seeing the candidates; `belief` is the belief before."""
        return normalize_rows(belief * self.weight(records))

    def limit_records(self, records: Int64s, rng: np.random.Generator) -> Int64s:
        """Sample the records down to the number that fits in memory."""
        return records if len(records) <= RECORD_LIMIT else np.sort(rng.choice(records, RECORD_LIMIT, replace=False))


Observations = VeiledRecords | GroupedRecords


def observations_of(release: Published, policy: Policy) -> Observations | None:
    """Return the records of a release; None if it shows no value of the policy's first sensitive column."""
    if not policy.sensitive:
        return None
    if release.shape == "veil":
        return _veiled_table(release)
    if release.shape == "stream":
        return _stream_observations(release)
    shown = group_records(release, policy, policy.sensitive[0])
    return shown if shown is not None and len(shown.group) else None


def latest_observations(evidence: Evidence) -> Observations | None:
    """Return the records of the latest release."""
    return observations_of(evidence.releases[-1], evidence.policy)


def _stream_observations(release: Published) -> Observations | None:
    if "veil" in release.metadata and release.stream_file is not None:
        return _veiled_stream(release)
    shown = group_stream([release])
    if shown is None:
        return None
    if release.stream_file is not None:
        fields = stream_table(release)
    else:
        table = release.tables["tuple"]
        order = np.argsort(table["seq"].cast(pa.int64()).to_numpy(), kind="stable")
        fields = table.take(pa.array(order)).drop_columns([n for n in _TECHNICAL_COLUMNS if n in table.column_names])
    return replace(shown, fields=fields)


def _veiled_stream(release: Published) -> VeiledRecords | None:
    """Read a stream of veiled records together with its veil metadata."""
    lines = [line for line in iter_lines([release]) if line.get("candidates")]
    if not lines:
        return None
    document = release.metadata["veil"]
    names = CumulativeLine(document).columns
    rows = [
        line["quasi"]
        | (line.get("plain") or {})
        | dict(zip(names, line["candidates"], strict=True))
        | {"stratum": line["stratum"]}
        for line in lines
    ]
    data = pa.table({name: pa.array([cell_text(row.get(name)) for row in rows], pa.string()) for name in rows[0]})
    return replace(_from_table(data, document), position=np.array([line["seq"] for line in lines], dtype=np.int64))


def _veiled_table(release: Published) -> VeiledRecords | None:
    data, document = release.tables.get("data"), release.metadata.get("veil")
    return None if data is None or not document or not data.num_rows else _from_table(data, document)


def _from_table(data: pa.Table, document: Mapping[str, Any]) -> VeiledRecords:
    line = CumulativeLine(document)
    return VeiledRecords(
        fields=data.drop_columns(present_columns((*line.columns, *_TECHNICAL_COLUMNS), data)),
        values=tuple(line.domain),
        shares=line.segments / line.segments.sum(axis=1, keepdims=True),
        by=tuple(line.by),
        strata=whole_numbers(data["stratum"]),
        candidates=candidate_codes(line, data).astype(np.int64),
        parameters_digest=str(document.get("parameters_digest", "")),
        quoted_accuracy=_quoted_accuracy(document),
    )


def _quoted_accuracy(document: Mapping[str, Any]) -> float | None:
    """Return the accuracy of the attacker that the prior was measured with, if l is the same."""
    try:
        figures = document["figures"]
        return float(figures["attacker"]["after"]["right"]) if figures["l"] == document["l"] else None
    except (KeyError, TypeError, ValueError):
        return None
