"""Verify streams: every published group must be l-diverse on its own, and every tuple must fit its group.

Guarantee: if all findings hold, a group precedes its first tuple. An attacker who knows a person's group sees l distinct
    candidates, none above 1/l of the total (Definition 3). No more tuples join than there are candidates, no quasi-identifier
    joins twice (the visible part of Definition 5), and a sequence number occurs once. Generalized records meet k (and l, t if
    claimed) per published combination of quasi-identifiers.
Not covered: whether the true value is among the candidates (only the engine knows); what an attacker who knows the algorithm
    infers from joins and openings (see the attacks of the audit).
Cost: one pass; memory for open groups, plus 8 bytes per group and one bit per tuple seen.
Reference: S. Kim, M. Sung, Y. Chung, "A framework to preserve the privacy of electronic health data streams",
    Journal of Biomedical Informatics 50, 2014 (Definitions 3 and 5).
Differences from the paper: candidates must also be sorted, since insertion order would disclose the true value.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from reticent.policy import Policy
from reticent.verify import generalized
from reticent.verify.anatomy import POSTERIOR_NOTE, check_posterior
from reticent.verify.folder.metadata import malformed_codebook_entries
from reticent.verify.published import Published, cell_text
from reticent.verify.requirements import requirements
from reticent.verify.result import Finding, VerificationResult, none_of
from reticent.verify.stream.lines import (
    LineFormat,
    RandomNameCheck,
    are_single_values,
    is_single_value,
    iter_table_lines,
)
from reticent.verify.veil.stream_lines import VeiledLines

_RULES = {
    "form": "every line is a group, a tuple, a record or a codebook as documented",
    "written": "every line is in its canonical form",
    "columns": "only columns that the policy releases are published",
    "names": "group names look random",
    "rising": "lines are in the order of the input",
    "again": "a group is published once",
    "candidates": "candidates are distinct, sorted, with whole counts of at least 1",
    "distinct": "every group has at least l distinct candidates",
    "frequency": "no candidate is above 1/l of its group",
    "late": "a group precedes its first tuple",
    "full": "no group has more tuples than candidates",
    "twice": "no group has two tuples with the same quasi-identifiers",
    "seq": "a sequence number occurs once",
    "counts": "the tables have as many rows as the manifest says are published",
}


def verify_stream(releases: Sequence[Published], policy: Policy) -> VerificationResult:
    """Recompute every claim of a stream's transcript; its parts are read in order as one transcript."""
    transcript = Transcript(policy, _required_l(releases, policy))
    for release in releases:
        before = transcript.rows
        transcript.read_codebook(release.metadata.get("veil"), strict=release.codebook is not None)
        lines = (
            transcript.iter_lines(release.stream_file, has_codebook=release.codebook is not None)
            if release.stream_file is not None
            else None
        )
        for line in iter_table_lines(release, policy.plain, policy.sensitive) if lines is None else lines:
            transcript.read(line)
        if "published" in release.counts and transcript.rows - before != release.counts["published"]:
            transcript.violations["counts"] += 1
    if transcript.records:
        return _verify_records(releases[-1], policy, transcript)
    if transcript.veiled is not None:
        return _verify_veiled_records(releases, transcript, transcript.veiled)
    claims = {claim for release in releases for claim in release.claims}
    posterior = check_posterior(releases, transcript.worst[1])
    findings = (*transcript.findings(), *posterior)
    return VerificationResult(
        findings,
        (POSTERIOR_NOTE,) if posterior else (),
        generalized.unchecked_claims(dict.fromkeys(sorted(claims)), ("l", "posterior")),
    )


def _verify_veiled_records(
    releases: Sequence[Published], transcript: Transcript, veiled: VeiledLines
) -> VerificationResult:
    """Return the result for a transcript of veiled records, which form no groups."""
    claims = {name: value for release in releases for name, value in release.claims.items()}
    rules = ("form", "written", "rising", "seq", "counts")
    findings = [none_of(_RULES[rule], transcript.violations[rule]) for rule in rules]
    findings.append(none_of("every record is veiled", transcript.rows - veiled.rows))
    unchecked = [*generalized.unchecked_claims(claims, ("veil", "l")), *veiled.unchecked_notes()]
    return VerificationResult((*findings, *veiled.findings(claims)), (), tuple(unchecked))


class Transcript:
    """What has been published so far: open groups, and the number of violations of each rule."""

    def __init__(self, policy: Policy, level: Fraction) -> None:
        self.level = level
        self.violations: Counter[str] = Counter()
        self.records: list[dict[str, Any]] = []
        self.rows = self.groups = 0
        self.worst: tuple[int | None, float] = (None, 0.0)
        self._sensitive, self._strict, self._form, self._drawn = (
            policy.sensitive,
            False,
            LineFormat(policy),
            RandomNameCheck("g"),
        )
        self._open: dict[str, tuple[int, list[int]]] = {}
        self._closed: set[int] = set()
        self._seen = bytearray()
        self._far: set[int] = set()
        self.veiled: VeiledLines | None = None
        self._policy = policy
        self._document: Mapping[str, Any] | None = None

    def read_codebook(self, metadata: Mapping[str, Any] | None, *, strict: bool = True) -> None:
        """Read the veil's parameters from a codebook, which must not change. A codebook makes the checks strict."""
        self._strict |= strict
        if metadata is not None and self._document is not None and metadata != self._document:
            self.violations["form"] += 1
        self._document = metadata if self._document is None else self._document

    def read(self, line: Any) -> None:
        """Check one published object."""
        fields = line if isinstance(line, dict) else {}
        kind, group, seq, quasi = fields.get("type"), fields.get("group"), fields.get("seq"), fields.get("quasi")
        plain = fields.get("plain", {}) if self._strict else fields.get("plain") or {}
        numbered = type(seq) is int and are_single_values(quasi) and are_single_values(plain)
        if kind == "tuple" and numbered and type(group) is str:
            self._tuple(group, seq, quasi, plain)
        elif kind == "group" and type(group) is str and isinstance(fields.get("candidates"), list):
            self._group(group, fields["candidates"])
        elif kind == "record" and type(seq) is int and type(quasi) is dict and "candidates" in fields:
            self._veiled_record(seq, fields)
        elif kind == "codebook":
            document = fields.get("veil")
            self.violations["form"] += bool(malformed_codebook_entries(fields, self._policy))
            self.read_codebook(document if isinstance(document, dict) else None)
        elif kind == "record" and numbered and "sensitive" in fields:
            cell = fields["sensitive"]
            sensitive = cell if isinstance(cell, dict) else dict(zip(self._sensitive, [cell], strict=False))
            self._record(seq, quasi, plain, sensitive)
        else:
            self.violations["form"] += 1

    def iter_lines(self, path: Path, *, has_codebook: bool = False) -> Iterator[Any]:
        """Yield the object of each line of a file; None if it is unreadable.

        A file with a codebook has one writer, so positions must rise, except for CASTLE, which publishes clusters.
        """
        last = -1
        with path.open("rb") as file:
            for line in file:
                try:
                    read = orjson.loads(line)
                except orjson.JSONDecodeError:
                    self.violations["written"] += self._strict and not line.strip()
                    if line.strip():
                        yield None
                    continue
                self.violations["written"] += self._strict and not self._form.fits(line, read)
                if (
                    has_codebook
                    and isinstance(read, dict)
                    and type(seq := read.get("seq")) is int
                    and "sensitive" not in read
                ):
                    self.violations["rising"] += seq <= last
                    last = seq
                yield None if _has_duplicate_keys(line, read) else read

    def findings(self) -> tuple[Finding, ...]:
        """Return one finding per rule."""
        findings = [
            none_of(_RULES[rule], self.violations[rule]) for rule in _RULES if rule not in ("distinct", "frequency")
        ]
        fewest, share = self.worst
        required = float(self.level)
        return (
            *findings,
            Finding(
                _RULES["distinct"], not self.violations["distinct"], fewest, required, self._failure_note("distinct")
            ),
            Finding(
                _RULES["frequency"],
                not self.violations["frequency"],
                round(share, 12),
                1 / required,
                self._failure_note("frequency"),
            ),
        )

    def _failure_note(self, rule: str) -> str:
        return f"{self.violations[rule]} of {self.groups} groups fail" if self.violations[rule] else ""

    def _group(self, group: str, candidates: list[Any]) -> None:
        self.groups += 1
        self.violations["names"] += self._strict and not self._drawn.accepts(group)
        if group in self._open or hash(group) in self._closed:
            self.violations["again"] += 1
            return
        pairs = [
            pair
            for pair in candidates
            if isinstance(pair, list | tuple) and len(pair) == 2 and is_single_value(pair[0])
        ]
        counts = [count for _, count in pairs if type(count) is int and count > 0]
        names = [cell_text(value) for value, _ in pairs]
        if not len(candidates) == len(counts) == len(set(names)) or not _is_sorted([value for value, _ in pairs]):
            self.violations["candidates"] += 1
        total, most, distinct = sum(counts), max(counts, default=0), len(set(names))
        self.violations["distinct"] += distinct < self.level
        self.violations["frequency"] += most * self.level > total
        fewest, share = self.worst
        self.worst = (distinct if fewest is None else min(fewest, distinct), max(share, most / total if total else 1.0))
        self._open[group] = (total, [])

    def _tuple(self, group: str, seq: Any, quasi: Any, plain: Any) -> None:
        self._check_sequence_number(seq)
        self.violations["columns"] += not self._form.has_columns(quasi, plain, strict=self._strict)
        place = self._open.get(group)
        if place is None:
            self.violations["full" if hash(group) in self._closed else "late"] += 1
            return
        total, members = place
        key = hash(orjson.dumps(quasi, option=orjson.OPT_SORT_KEYS))
        if key in members:
            self.violations["twice"] += 1
        members.append(key)
        if len(members) >= total:  # full: keep only the hash of its name
            del self._open[group]
            self._closed.add(hash(group))

    def _veiled_record(self, seq: Any, line: dict[str, Any]) -> None:
        self._check_sequence_number(seq)
        self.veiled = self.veiled or VeiledLines(self._policy, self._document, strict=self._strict)
        self.veiled.read(line)

    def _record(self, seq: Any, quasi: Any, plain: Any, sensitive: dict[str, Any]) -> None:
        self._check_sequence_number(seq)
        if not are_single_values(sensitive):
            self.violations["form"] += 1
            return
        known = set(sensitive) <= set(self._sensitive)
        self.violations["columns"] += not (known and self._form.has_columns(quasi, plain, strict=self._strict))
        self.records.append({name: cell_text(value) for name, value in {**quasi, **sensitive}.items()})

    def _check_sequence_number(self, seq: int) -> None:
        self.rows += 1
        if not 0 <= seq < 1 << 33:  # one bit per number, up to a gigabyte
            self.violations["seq"] += seq < 0 or seq in self._far
            self._far.add(seq)
            return
        place, bit = seq >> 3, 1 << (seq & 7)
        if place >= len(self._seen):
            self._seen.extend(bytes(max(place + 1 - len(self._seen), 1 << 16)))
        if self._seen[place] & bit:
            self.violations["seq"] += 1
        self._seen[place] |= bit


def _is_sorted(values: list[Any]) -> bool:
    """Return whether values are sorted, by text or by value."""
    names = [cell_text(value) or "" for value in values]
    if names == sorted(names):
        return True
    try:
        return values == sorted(values)
    except TypeError:
        return False


def _required_l(releases: Sequence[Published], policy: Policy) -> Fraction:
    """Return the l that the stream must meet: the stricter of the claims and the policy."""
    claimed = [r.numbers[-1] for release in releases for r in requirements(release.claims) if r.model == "l"]
    return max([Fraction(policy.l_of("stream")), *claimed])


def _has_duplicate_keys(line: bytes, read: Any) -> bool:
    """Return whether an object of a line repeats a key: parsers keep one value, but recipients see both."""
    if len(orjson.dumps(read)) >= len(line.strip()):
        return False
    twice = False

    def note_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        twice |= len({key for key, _ in pairs}) < len(pairs)
        return dict(pairs)

    json.loads(line, object_pairs_hook=note_pairs)
    return twice


def _verify_records(release: Published, policy: Policy, transcript: Transcript) -> VerificationResult:
    """Verify generalized records of the whole stream as one generalized table."""
    columns = {
        name: pa.array([row.get(name) for row in transcript.records], pa.string()) for name in transcript.records[0]
    }
    table = Published(
        release.name, "generalized", tables={"data": pa.table(columns)}, claims=release.claims, explain=release.explain
    )
    result = generalized.verify_release(table, policy)
    findings = tuple(finding for finding in result.findings if finding.claim != generalized.COUNTS_CLAIM)
    return VerificationResult(transcript.findings()[: len(_RULES) - 2] + findings, result.notes, result.unchecked)
