"""Veiled releases: every set of candidates must be one that the published line can give, and nothing else may stand beside it.

Guarantee: what the findings say. The line of every row is rebuilt from the published stretches and orders; each first sight must be
    a set that some point of some order gives; where k is asked, every published combination has k records; l and the prior are those of the policy, whatever the release says of itself.
Not covered: whether a record's row is that of its published fields; whether a set was drawn with the right probability, and under one key (the private side and the attacks of the audit
    look at that); readers better informed than the prior.
Cost: orders x values sets per row of the prior, then one look-up per record.
Reference: docs/veil.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent.arrays import Bools, Int32s, Int64s
from reticent.policy import Policy
from reticent.policy.prior import read_report, read_strata
from reticent.verify.generalized import (
    check_columns,
    check_counts,
    count_policy_suppression,
    record_requirements,
    unchecked_claims,
)
from reticent.verify.groups import number_rows, present_columns
from reticent.verify.published import Published
from reticent.verify.requirements import Requirement, check_size, policy_requirements, requirements
from reticent.verify.result import Finding, VerificationResult, none_of
from reticent.verify.variants import check_variants
from reticent.verify.veil.metadata import (
    PINNED_KEYS,
    check_levels,
    check_omission_rate,
    check_record_order,
    metadata_findings,
    noisy_count_findings,
)
from reticent.verify.veil.true_values import MISSING

SHAPE = "veil"
METADATA_KEYS = frozenset(
    [*PINNED_KEYS, "omission_rate", "omission_rate_epsilon", "epsilon", "counts", "figures", "parameters_digest"]
)
"""All that `veil.json` may say: the list is closed."""


def verify_release(release: Published, policy: Policy) -> VerificationResult:
    """Recompute what a veiled release claims."""
    data, document = release.tables.get("data"), release.metadata.get("veil")
    if data is None or document is None:
        return VerificationResult((Finding("the table 'data' and the document 'veil' are there", holds=False),))
    findings = [none_of("veil.json says what is documented and nothing else", len(set(document) - METADATA_KEYS))]
    line = line_of(release)
    if line is None:
        return VerificationResult((*findings, Finding("veil.json can be read", holds=False)))
    findings += line_findings(line, policy, release)
    if not all(finding.holds for finding in findings):  # no sets can be told from such a line
        return VerificationResult(tuple(findings))
    papers = metadata_findings(line, document, policy, release.kind)
    findings += [*prior_findings(line, document, policy), *papers, *check_levels(data, policy)]
    findings += _check_records(line, data, policy, release.kind, still=document.get("kernel") is None)
    if {"stratum", "event"} <= set(data.column_names):
        findings += noisy_count_findings(
            document, policy, whole_numbers(data["stratum"]), whole_numbers(data["event"]), line.segments.shape
        )
        if papers[-1].holds and release.kind != "stream":
            findings.append(
                check_omission_rate(document, whole_numbers(data["stratum"]), whole_numbers(data["event"]) == 0)
            )
    findings += class_findings(release, data, policy)
    open_claims = unchecked_claims(release.claims, ("veil", "k"))
    return VerificationResult(tuple(findings), (_NOTE,), open_claims + _unchecked_notes(release, data))


_OMISSION_NOTE = "eta: that so many truths are not offered (needs the original)"
_EVENTS_NOTE = "events: that persons without a pseudonym have had so many (the store knows)"


def _unchecked_notes(release: Published, data: pa.Table) -> tuple[str, ...]:
    """What the files of a veil say and nobody can recompute from them."""
    if release.manifest is None:
        return ()
    later = "event" in data.column_names and bool((whole_numbers(data["event"]) > 0).any())
    return (_OMISSION_NOTE, *((_EVENTS_NOTE,) if later and "person" not in data.column_names else ()))


def class_requirements(claims: Mapping[str, Any], policy: Policy) -> list[Requirement]:
    """The k that is claimed or asked for, of records: k persons have k of them at least."""
    rules = requirements(claims) + policy_requirements(policy)
    return record_requirements([requirement for requirement in rules if requirement.model == "k"])


def record_classes(data: pa.Table, policy: Policy) -> tuple[Int64s, int]:
    """Records by all that is published of their fields: the row of the prior tells of them, too."""
    return number_rows(data, [*present_columns(policy.quasi, data), "stratum"])


def class_findings(release: Published, data: pa.Table, policy: Policy) -> list[Finding]:
    """Whether every published combination is a crowd of k records, and how many were left out for it."""
    rules = class_requirements(release.claims, policy)
    if not rules or "stratum" not in data.column_names:
        limit = 0.0 if release.kind in ("table", "") else None  # the veil loses nobody
        return check_counts(release.counts, data.num_rows, limit, count_policy_suppression(release, policy))
    rows, size = record_classes(data, policy)
    findings = [check_size(np.bincount(rows, minlength=size), requirement, "") for requirement in rules]
    return findings + check_counts(
        release.counts, data.num_rows, policy.privacy.suppression, count_policy_suppression(release, policy)
    )


_NOTE = (
    "Veil: every set of candidates is one that the published prior and orders can give. That it was drawn under one key cannot be "
    "seen from outside."
)


class CumulativeLine:
    """The published numbers, as whole numbers and arrays; raises ValueError and the like where they are none."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self.l, self.slot_length = int(metadata["l"]), int(metadata["slot_length"])
        self.sensitive, self.domain = str(metadata["sensitive"]), [str(label) for label in metadata["domain"]]
        self.strata = [tuple(str(cell) for cell in cells) for cells in metadata["strata"]]
        self.by = [str(name) for name in metadata["by"]]
        self.segments = np.array(metadata["segments"], dtype=np.int64).reshape(len(self.strata), len(self.domain))
        self.permutations = np.array(metadata["permutations"], dtype=np.int64).reshape(-1, len(self.domain))
        self.columns = [f"{self.sensitive}_{slot}" for slot in range(1, self.l + 1)]

    def sets(self, stratum: int) -> Int64s:
        """Every set of candidates that the row can give, as sorted codes; some of them several times."""
        return np.concatenate([self._sets(self.segments[stratum], order) for order in self.permutations])

    def _sets(self, segments: Int64s, permutation: Int64s) -> Int64s:
        ends = np.cumsum(segments[permutation])
        # Within a piece between two ends, taken modulo one, the candidates are the same: its first point stands for all.
        points = np.concatenate([[0], ends % self.slot_length])
        places = points[:, None] + self.slot_length * np.arange(self.l)[None, :]
        slots = permutation[np.searchsorted(ends, places, side="right")]
        return np.sort(slots, axis=1)


def line_findings(line: CumulativeLine, policy: Policy, release: Published) -> list[Finding]:
    """Whether the published line is one, and as strict as the policy and the claims."""
    asked = policy.l_of(release.kind if release.kind in ("evolving", "stream") else "table")
    claimed = release.claims.get("veil")
    crooked = int(
        (line.segments.sum(axis=1) != line.l * line.slot_length).sum() + (line.segments < 0).any(axis=1).sum()
    )
    values = np.arange(len(line.domain))
    return [
        Finding("l is what the policy asks for, at least", line.l >= asked, line.l, asked),
        none_of("the veil claims l and k, and nothing else", len(set(release.claims) - {"veil", "k"})),
        Finding(
            "l is what the release claims", claimed == line.l, line.l, claimed if isinstance(claimed, int) else None
        ),
        Finding("the veiled column is the policy's", (line.sensitive,) == policy.sensitive),
        none_of("the values stand once each, in one order", int(line.domain != sorted(set(line.domain)))),
        check_variants(list(line.domain), "the domain"),
        none_of("the stretches of a row fill its line", crooked, f"{len(line.strata)} rows"),
        none_of(
            "every order holds every value once", int((np.sort(line.permutations, axis=1) != values).any(axis=1).sum())
        ),
    ]


def prior_findings(line: CumulativeLine, metadata: Mapping[str, Any], policy: Policy) -> list[Finding]:
    """The stretches are those of the policy's prior, up to rounding."""
    settings = policy.prior
    if settings is None or settings.file is None:
        return [Finding("the policy names the prior", holds=False)]
    prior = read_strata(policy.path(settings.file))
    strata = dict(prior.strata)
    strata.setdefault(("*",) * len(prior.by), prior.total_counts())
    same = line.by == list(prior.by) and line.strata == list(strata)
    findings = [
        Finding("the rows are those of the policy's prior", same),
        Finding("the order is the policy's", metadata.get("value_order") == settings.value_order),
        Finding("the figures are those of the prior's report", metadata.get("figures") == read_report(policy)),
    ]
    if same:
        codes = {label: code for code, label in enumerate(line.domain)}
        shares = np.zeros(line.segments.shape)
        strangers = 0
        for row, counts in enumerate(strata.values()):
            for value, count in counts.items():
                code = codes.get(MISSING if value is None else value)
                strangers += code is None
                if code is not None:
                    shares[row, code] += count
        shares *= line.l * line.slot_length / np.maximum(shares.sum(axis=1, keepdims=True), 1)
        far = int((np.abs(shares - line.segments) > 1 + shares * 1e-4).sum())
        findings.append(none_of("the stretches are those of the policy's prior", far + strangers))
    return findings


def _check_records(line: CumulativeLine, data: pa.Table, policy: Policy, kind: str, *, still: bool) -> list[Finding]:
    own, named = {"stratum", "event", *line.columns}, "person" in data.column_names
    findings = [
        check_columns(data, (*policy.quasi, *policy.plain, "person"), policy, extra=tuple(own)),
        Finding(
            "persons have pseudonyms if, and only if, the policy links them", named == has_pseudonyms(policy, kind)
        ),
        none_of("pseudonyms are sixteen hexadecimal digits", _count_bad_pseudonyms(data) if named else 0),
        none_of(
            "a person stands once in a release of a series",
            _count_repeated_persons(data) if named and kind == "series" else 0,
        ),
    ]
    if own - set(data.column_names):
        return [*findings, Finding("row, event and l candidates are there", holds=False)]
    listed = candidate_codes(line, data)
    rows, events = whole_numbers(data["stratum"]), whole_numbers(data["event"])
    findings += [
        none_of("every candidate is a value of the domain", int((listed < 0).sum())),
        none_of("candidates stand in canonical order", int((np.diff(listed, axis=1) < 0).any(axis=1).sum())),
        none_of("every record names a row of the prior", int(((rows < 0) | (rows >= len(line.strata))).sum())),
        none_of("events are counted from 0", int((events < 0).sum())),
        none_of(
            "every first sight is a set that its row can give", _count_impossible_sets(line, listed, rows, events == 0)
        ),
        # Without a kernel nothing moves: later sets are those of the first sights.
        none_of(
            "no set has moved without a kernel", _count_impossible_sets(line, listed, rows, events > 0) if still else 0
        ),
        none_of(
            "who has one record has no later event", int((events > 0).sum()) if _has_single_records(policy, kind) else 0
        ),
        check_record_order(data, listed, kind),
    ]
    return findings


def _count_bad_pseudonyms(data: pa.Table) -> int:
    """Pseudonyms that say more than who is the same."""
    fine = pc.fill_null(pc.match_substring_regex(data["person"], r"^p?[0-9a-f]{16}$"), False)  # noqa: FBT003
    return int(data.num_rows) - int(pc.sum(fine).as_py() or 0)


def _count_repeated_persons(data: pa.Table) -> int:
    return int(data.num_rows) - int(pc.count_distinct(data["person"], mode="all").as_py())


def has_pseudonyms(policy: Policy, kind: str = "stream") -> bool:
    """Whether the policy lets readers follow persons; a series does unless it is told not to."""
    link = policy.prior.link if policy.prior is not None else None
    return policy.person is not None and (kind == "series" if link is None else link)


def _has_single_records(policy: Policy, kind: str) -> bool:
    """Whether a release shows every person once and at first sight: a table whose policy names no events, or takes one record."""
    several = policy.persons is not None and policy.persons.events is not None and policy.persons.records == "all"
    return kind == "table" and not several


def _count_impossible_sets(line: CumulativeLine, listed: Int32s, strata: Int64s, which: Bools) -> int:
    offences = 0
    for row in np.unique(strata[(strata >= 0) & (strata < len(line.strata))]):
        here = pack_codes(listed[(strata == row) & which])
        offences += int((~np.isin(here, pack_codes(line.sets(int(row))))).sum())
    return offences


def line_of(release: Published) -> CumulativeLine | None:
    """The line that a release publishes; None where it cannot be read."""
    try:
        return CumulativeLine(release.metadata.get(SHAPE, {}))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def candidate_codes(line: CumulativeLine, data: pa.Table) -> Int32s:
    """Records x candidates, as places in the domain; -1 for what is not there."""
    domain = pa.array(line.domain, pa.string())
    columns = [pc.fill_null(pc.index_in(data[name], value_set=domain), -1) for name in line.columns]
    return np.stack([column.to_numpy().astype(np.int32) for column in columns], axis=1)


def pack_codes(codes: Int32s | Int64s) -> NDArray[np.bytes_]:
    """Every record's codes as one cell, for comparisons."""
    wide = np.ascontiguousarray(codes, dtype=">i4")
    return wide.view(f"S{4 * wide.shape[1]}").reshape(-1)


def whole_numbers(column: pa.ChunkedArray) -> Int64s:
    """A column of whole numbers written as text, in the one way there is; -1 for what is none."""
    digits = pc.fill_null(pc.match_substring_regex(column, r"^(0|[1-9][0-9]{0,17})$"), False)  # noqa: FBT003 - Arrow's own signature
    return np.asarray(pc.if_else(digits, column, "-1").cast(pa.int64()).to_numpy())
