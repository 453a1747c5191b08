"""Linkage: match persons of another table with published records by their quasi-identifiers.

Guarantee: exact for the attacked persons: every published record that could be theirs counts as a candidate.
Not covered: errors in the other table; probabilistic matching.
Cost: linear in the matching pairs of person and record; large tables are sampled.
Reference: L. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10 (2002).
Differences from the paper: none.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.grouped_records import GroupedRecords, group_records
from reticent.audit.attack.outcome import Outcome, worst_of
from reticent.policy import Policy
from reticent.verify.groups import histograms, number_rows, present_columns
from reticent.verify.labels.row_matching import Field, RowMatch, match_rows
from reticent.verify.published import Published
from reticent.verify.requirements import requirements
from reticent.verify.veil.verifier import SHAPE, candidate_codes, line_of

QUESTION = "Has a table with names and the same quasi-identifiers, and looks up each person's record in the release."


def linkage(evidence: Evidence) -> Outcome | None:
    """Attack the latest release with the external table, or with the quasi-identifiers of the original."""
    release, policy = evidence.releases[-1], evidence.policy
    known = evidence.external if evidence.external is not None else evidence.original
    column = policy.sensitive[0] if policy.sensitive else ""
    seen = _group_release(release, policy, column)
    if known is None or seen is None:
        return None
    shared = [name for name in policy.quasi if name in seen.fields.column_names and name in known.column_names]
    if not shared or not known.num_rows:
        return None
    chosen = np.sort(evidence.rng.permutation(known.num_rows)[: evidence.sample])
    persons = known.select(shared).take(chosen)
    fields = [Field.from_labels(persons, seen.fields, policy, name) for name in shared]
    meeting = match_rows(fields, persons.num_rows, len(seen))
    kind, place = meeting.pairs
    candidates = np.bincount(kind, meeting.published_counts[place], minlength=len(meeting.source_counts))[
        meeting.source_kind
    ]
    possible = candidates > 0
    posterior = 1 / candidates[possible]
    claim = _claim(release)
    return Outcome.from_posterior(
        "linkage",
        QUESTION,
        posterior,
        evidence.key,
        claim=claim,
        bounded=claim is not None,
        worst=worst_of(posterior, evidence.key, chosen[possible]),
        notes=(
            f"Matched on {', '.join(shared)}; {int((~possible).sum()):,} of {len(chosen):,} persons match no record.",
        ),
        figures=_value_accuracy(evidence, seen, meeting, chosen),
    )


def _group_release(release: Published, policy: Policy, column: str) -> GroupedRecords | None:
    """Return the release as grouped records; under a veil a class offers all candidates of its records."""
    data, line = release.tables.get("data"), line_of(release) if release.shape == SHAPE else None
    if data is None or line is None:
        return group_records(release, policy, column) if release.shape != "stream" else None
    quasi = data.select(present_columns(policy.quasi, data))
    group, size = number_rows(quasi, quasi.column_names)
    candidates = pa.chunked_array([pa.array(line.domain).take(pa.array(candidate_codes(line, data).reshape(-1)))])
    return GroupedRecords(quasi, group, histograms(np.repeat(group, line.l), size, candidates))


def _claim(release: Published) -> float | None:
    sizes = [r.numbers[0] for r in requirements(release.claims) if r.model == "k"]
    return float(1 / max(sizes)) if sizes and release.shape in ("generalized", "veil") else None


def _value_accuracy(evidence: Evidence, seen: GroupedRecords, meeting: RowMatch, chosen: Int64s) -> dict[str, float]:
    """Measure how often the most frequent sensitive value among the candidates is the true value."""
    if evidence.external is not None or evidence.original is None or not evidence.policy.sensitive:
        return {}
    offers = seen.offers
    if not len(offers.values):  # an empty release
        return {}
    from scipy.sparse import csr_array  # needs the extra `audit`

    inside = csr_array((offers.shares(), (offers.group, offers.value)), shape=(offers.size, len(offers.values)))
    members = csr_array(
        (np.ones(len(seen.group)), (meeting.published_kind, seen.group)),
        shape=(len(meeting.published_counts), offers.size),
    )
    match = csr_array(
        (np.ones(meeting.pairs.shape[1]), meeting.pairs),
        shape=(len(meeting.source_counts), len(meeting.published_counts)),
    )
    guess = (match @ (members @ inside)).toarray().argmax(axis=1)[meeting.source_kind]
    true_values = evidence.original[evidence.policy.sensitive[0]].take(chosen).to_pylist()
    hits = [offers.values[code] == value for code, value in zip(guess, true_values, strict=True)]
    return {"value_accuracy": float(np.mean(hits)), "persons": len(hits)}
