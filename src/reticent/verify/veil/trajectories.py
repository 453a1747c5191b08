"""Trajectories of persons under the veil: what all publications of a store show about a person, event by event.

A release does not say which person a record belongs to. The verifier reads that from the private ledger (keyed hashes and line
numbers, no values).

Guarantee: publications are refuted if they show other candidates or another stratum for an event that was shown before (an
    attacker who intersects two sets of one true value would find it), if they return to an event between published ones,
    or if the published transition kernel cannot lead to the candidates.
Not covered: whether false candidates moved with the right probability; whether the ledger agrees with the input. Without a
    ledger, only that all publications have the same parameters; with pseudonyms the same as with a ledger, if they are true.
Cost: one sort of the records of all publications; l x l lookups for every record that moved.
Reference: docs/veil.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.arrays import Bools, Int32s, Int64s, UInt64s
from reticent.policy import Policy
from reticent.release import Ledger
from reticent.verify.published import Published
from reticent.verify.result import Finding, VerificationResult, none_of
from reticent.verify.veil.metadata import PINNED_KEYS
from reticent.verify.veil.transitions import transitions_of
from reticent.verify.veil.verifier import SHAPE, CumulativeLine, candidate_codes, line_of, pack_codes, whole_numbers

_CHUNK = 50_000
_DIGITS, _NAME = 16, re.compile(r"p?[0-9a-f]{16}")
NAMES_NEED_LEDGER = "whether a pseudonym belongs to one person in all publications (needs the ledger: --ledger STORE)"
NEEDS_LEDGER = "candidates of the same person over several publications (needs the ledger: --ledger STORE)"


@dataclass(frozen=True, repr=False)
class Trajectories:
    """The records of all publications, sorted by person, event and publication."""

    person: UInt64s
    event: Int64s
    number: Int64s
    stratum: Int64s
    codes: Int32s

    @classmethod
    def of(cls, parts: Sequence[tuple[Published, int, Any, Int64s]], line: CumulativeLine) -> Trajectories:
        """Build from releases, each with its number, its persons and the line of each person."""
        tables = [(release.tables["data"], at) for release, _, _, at in parts]
        person = np.concatenate([persons for _, _, persons, _ in parts])
        number = np.concatenate([np.full(len(at), number) for _, number, _, at in parts])
        event, row = (
            np.concatenate([whole_numbers(data[name])[at] for data, at in tables]) for name in ("event", "stratum")
        )
        columns = person, event, number, row, np.concatenate([candidate_codes(line, data)[at] for data, at in tables])
        order = np.lexsort((number, event, person))
        return cls(*(column[order] for column in columns))

    def select(self, which: npt.NDArray[Any]) -> Trajectories:
        """Return the given records."""
        return Trajectories(
            self.person[which], self.event[which], self.number[which], self.stratum[which], self.codes[which]
        )


def verify_sequence(releases: Sequence[Published], policy: Policy, ledger: Ledger | None = None) -> VerificationResult:
    """Verify several veiled publications together, with persons linked by the ledger."""
    veiled = [release for release in releases if release.shape == SHAPE and {"data"} <= set(release.tables)]
    line = line_of(veiled[0]) if len(veiled) > 1 and all(map(line_of, veiled)) else None
    if line is None:
        return VerificationResult(())  # a malformed line is refuted elsewhere
    differing = sum(_pinned_parameters(release) != _pinned_parameters(veiled[0]) for release in veiled[1:])
    same = none_of("all publications have the same veil parameters", differing)
    named = all("person" in release.tables["data"].column_names for release in veiled)
    if differing or (ledger is None and not named):
        return VerificationResult((same,), unchecked=() if differing else (NEEDS_LEDGER,))
    if ledger is None:  # pseudonyms link as the ledger would, if each belongs to one person
        parts = [(r, place, _pseudonyms(r), np.arange(r.tables["data"].num_rows)) for place, r in enumerate(veiled, 1)]
        return VerificationResult(
            (same, *_findings(Trajectories.of(parts, line), line, veiled[0], policy)), unchecked=(NAMES_NEED_LEDGER,)
        )
    numbers = [_ledger_number(release, place, len(veiled), ledger) for place, release in enumerate(veiled)]
    off = sum(_is_other_ledger(release, ledger, number) for release, number in zip(veiled, numbers, strict=True))
    listed = none_of("the ledger lists every veiled record once", off)
    if off:
        return VerificationResult(
            (same, listed), ("The ledger does not belong to these releases, so persons cannot be linked.",)
        )
    parts = [(r, n, ledger.persons[n - 1], ledger.groups[n - 1]) for r, n in zip(veiled, numbers, strict=True)]
    findings = [same, listed, *_findings(Trajectories.of(parts, line), line, veiled[0], policy)]
    if named:
        findings.append(
            none_of(
                "every person has one pseudonym, and no two persons share one",
                _count_wrong_names(veiled, numbers, ledger),
            )
        )
    return VerificationResult(tuple(findings))


def _count_wrong_names(releases: Sequence[Published], numbers: Sequence[int], ledger: Ledger) -> int:
    """Count the pairs of a person and a pseudonym beyond one for each."""
    persons, names = [], []
    for release, number in zip(releases, numbers, strict=True):
        column = release.tables["data"]["person"].to_numpy(zero_copy_only=False).astype(str)
        persons.append(ledger.persons[number - 1])
        names.append(column[ledger.groups[number - 1]])
    _, who = np.unique(np.concatenate(persons), return_inverse=True)
    _, named = np.unique(np.concatenate(names), return_inverse=True)
    pairs = len(np.unique(np.stack([who.reshape(-1), named.reshape(-1)]), axis=1).T)
    return pairs - min(int(who.max(initial=-1)), int(named.max(initial=-1))) - 1


def _pseudonyms(release: Published) -> UInt64s:
    """Return the persons of a release by their pseudonyms; 0 for a malformed pseudonym."""
    names = release.tables["data"]["person"].to_numpy(zero_copy_only=False).astype(str)
    return np.array([int(name[-_DIGITS:], 16) if _NAME.fullmatch(name) else 0 for name in names], dtype=np.uint64)


def _pinned_parameters(release: Published) -> dict[str, Any]:
    document = release.metadata.get("veil", {})
    return {key: document.get(key) for key in PINNED_KEYS}


def _ledger_number(release: Published, place: int, size: int, ledger: Ledger) -> int:
    """Return a release's number in the ledger: its position if all releases are given, else its stated number."""
    number = place + 1 if size == len(ledger) else release.explain.get("publication", place + 1)
    return number if isinstance(number, int) else place + 1


def _is_other_ledger(release: Published, ledger: Ledger, number: int) -> bool:
    if not 0 < number <= len(ledger):
        return True
    lines = ledger.groups[number - 1]
    return not np.array_equal(np.sort(lines), np.arange(release.tables["data"].num_rows))


def _findings(trajectories: Trajectories, line: CumulativeLine, release: Published, policy: Policy) -> list[Finding]:
    same_person = trajectories.person[1:] == trajectories.person[:-1]
    same = same_person & (trajectories.event[1:] == trajectories.event[:-1])
    other = pack_codes(trajectories.codes)[1:] != pack_codes(trajectories.codes)[:-1]
    rows = trajectories.stratum[1:] != trajectories.stratum[:-1]
    firsts = trajectories.select(np.concatenate([[True], ~same]))  # the first publication of each event
    follow = firsts.person[1:] == firsts.person[:-1]
    back = follow & (firsts.number[1:] < firsts.number[:-1])
    findings = [
        none_of("every person keeps their stratum of the prior", int((same_person & rows).sum())),
        none_of("an event shows the same candidates in every publication", int((same & other).sum())),
        none_of("events of a person are published in order", int(back.sum())),
    ]
    pairs = np.flatnonzero(follow)
    correcting = release.kind == "evolving" and (policy.persons is None or policy.persons.events is None)
    try:
        moves = transitions_of(release.metadata["veil"].get("kernel"), line)
        impossible = sum(
            _count_impossible_steps(firsts, part, moves.matrix(row, correcting=correcting))
            for part, row in _iter_by_stratum(firsts, pairs, by_stratum=moves.by_stratum)
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        impossible = len(pairs)  # a malformed kernel allows no step
    return [*findings, none_of("candidates follow the published transition kernel", impossible)]


def _iter_by_stratum(trajectories: Trajectories, pairs: Int64s, *, by_stratum: bool) -> Iterator[tuple[Int64s, int]]:
    """Yield pairs by stratum of the prior if the kernel depends on the stratum."""
    if not by_stratum:
        yield pairs, 0
    else:
        rows = trajectories.stratum[pairs]
        yield from ((pairs[rows == row], int(row)) for row in np.unique(rows))


def _count_impossible_steps(trajectories: Trajectories, pairs: Int64s, steps: Bools) -> int:
    """Count consecutive events of a person with a candidate that the kernel cannot reach or cannot leave."""
    gaps, impossible = trajectories.event[pairs + 1] - trajectories.event[pairs], 0
    for gap in np.unique(gaps):
        reach = _power(steps, int(gap))
        same_gap = pairs[gaps == gap]
        for start in range(0, len(same_gap), _CHUNK):
            part = same_gap[start : start + _CHUNK]
            links = reach[trajectories.codes[part][:, :, None], trajectories.codes[part + 1][:, None, :]]
            impossible += int((~(links.any(axis=1).all(axis=1) & links.any(axis=2).all(axis=1))).sum())
    return impossible


def _power(steps: Bools, times: int) -> Bools:
    """Return where a number of steps can lead, by repeated squaring."""
    reach, square = np.eye(len(steps), dtype=np.float32), steps.astype(np.float32)
    while times:
        if times & 1:
            reach = ((reach @ square) > 0).astype(np.float32)
        square, times = ((square @ square) > 0).astype(np.float32), times >> 1
    return np.asarray(reach > 0)
