"""The trails of persons under the veil: what every publication of a store showed of each, event by event.

Which record is whose is not in a release; the judge is told, by the private ledger (keyed hashes and line numbers, no values).

Guarantee: refuted are publications that show other candidates or another row for an event of a person that was shown before (a
    second veil over the same truth reveals it), that go back to an event between those that were shown, or that show candidates which the
    published kernel does not lead to.
Not covered: whether decoys moved with the right probability; whether the ledger is true to the input. Without a ledger only that
    all publications are of one house; with pseudonyms, the same as with a ledger, as far as they are true.
Cost: one sort of the records of all publications; l x l look-ups for every record that moved.
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
NAMES_NEED_LEDGER = "whether a pseudonym is that of one person in all publications (give the ledger: --ledger STORE)"
NEEDS_LEDGER = "candidates of the same person over several publications (give the ledger: --ledger STORE)"


@dataclass(frozen=True, repr=False)
class Trajectories:
    """The records of all publications side by side, by person, event and publication."""

    person: UInt64s
    event: Int64s
    number: Int64s
    stratum: Int64s
    codes: Int32s

    @classmethod
    def of(cls, parts: Sequence[tuple[Published, int, Any, Int64s]], line: CumulativeLine) -> Trajectories:
        """From releases, each with its number, persons, and the line of every one of them."""
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
        """Some records."""
        return Trajectories(
            self.person[which], self.event[which], self.number[which], self.stratum[which], self.codes[which]
        )


def verify_sequence(releases: Sequence[Published], policy: Policy, ledger: Ledger | None = None) -> VerificationResult:
    """Several veiled publications side by side, persons linked by the ledger."""
    ours = [release for release in releases if release.shape == SHAPE and {"data"} <= set(release.tables)]
    line = line_of(ours[0]) if len(ours) > 1 and all(map(line_of, ours)) else None
    if line is None:
        return VerificationResult(())  # a line that cannot be read is refuted by itself
    houses = sum(_pinned_parameters(release) != _pinned_parameters(ours[0]) for release in ours[1:])
    one = none_of("all publications are of one house", houses)
    named = all("person" in release.tables["data"].column_names for release in ours)
    if houses or (ledger is None and not named):
        return VerificationResult((one,), unchecked=() if houses else (NEEDS_LEDGER,))
    if ledger is None:  # pseudonyms link what the ledger would, if they are those of one person each
        parts = [(r, place, _pseudonyms(r), np.arange(r.tables["data"].num_rows)) for place, r in enumerate(ours, 1)]
        return VerificationResult(
            (one, *_findings(Trajectories.of(parts, line), line, ours[0], policy)), unchecked=(NAMES_NEED_LEDGER,)
        )
    numbers = [_ledger_number(release, place, len(ours), ledger) for place, release in enumerate(ours)]
    off = sum(_is_other_ledger(release, ledger, number) for release, number in zip(ours, numbers, strict=True))
    listed = none_of("the ledger lists every veiled record once", off)
    if off:
        return VerificationResult(
            (one, listed), ("The ledger is not that of these releases; persons cannot be linked.",)
        )
    parts = [(r, n, ledger.persons[n - 1], ledger.groups[n - 1]) for r, n in zip(ours, numbers, strict=True)]
    findings = [one, listed, *_findings(Trajectories.of(parts, line), line, ours[0], policy)]
    if named:
        findings.append(
            none_of("a person has one pseudonym, and nobody else has it", _count_wrong_names(ours, numbers, ledger))
        )
    return VerificationResult(tuple(findings))


def _count_wrong_names(releases: Sequence[Published], numbers: Sequence[int], ledger: Ledger) -> int:
    """Pairs of a person and a pseudonym beyond one for each."""
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
    """The persons of a release by their pseudonyms; 0 for what is none."""
    names = release.tables["data"]["person"].to_numpy(zero_copy_only=False).astype(str)
    return np.array([int(name[-_DIGITS:], 16) if _NAME.fullmatch(name) else 0 for name in names], dtype=np.uint64)


def _pinned_parameters(release: Published) -> dict[str, Any]:
    document = release.metadata.get("veil", {})
    return {key: document.get(key) for key in PINNED_KEYS}


def _ledger_number(release: Published, place: int, size: int, ledger: Ledger) -> int:
    """Where the ledger tells of a release: all of them stand in order, or each says its number."""
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
    firsts = trajectories.select(np.concatenate([[True], ~same]))  # each event where it was shown first
    follow = firsts.person[1:] == firsts.person[:-1]
    back = follow & (firsts.number[1:] < firsts.number[:-1])
    findings = [
        none_of("a person keeps its row of the prior", int((same_person & rows).sum())),
        none_of("an event of a person shows the same candidates in every publication", int((same & other).sum())),
        none_of("events of a person never go back", int(back.sum())),
    ]
    pairs = np.flatnonzero(follow)
    correcting = release.kind == "evolving" and (policy.persons is None or policy.persons.events is None)
    try:
        moves = transitions_of(release.metadata["veil"].get("kernel"), line)
        strays = sum(
            _count_impossible_steps(firsts, some, moves.matrix(row, correcting=correcting))
            for some, row in _iter_by_stratum(firsts, pairs, by_stratum=moves.by_stratum)
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        strays = len(pairs)  # a kernel that cannot be read leads nowhere
    return [*findings, none_of("candidates move as the published kernel leads", strays)]


def _iter_by_stratum(trajectories: Trajectories, pairs: Int64s, *, by_stratum: bool) -> Iterator[tuple[Int64s, int]]:
    """Pairs by row of the prior, where the kernel goes by it."""
    if not by_stratum:
        yield pairs, 0
    else:
        rows = trajectories.stratum[pairs]
        yield from ((pairs[rows == row], int(row)) for row in np.unique(rows))


def _count_impossible_steps(trajectories: Trajectories, pairs: Int64s, steps: Bools) -> int:
    """Pairs of neighbouring events of a person between which a candidate comes from nowhere, or leads nowhere."""
    gaps, strays = trajectories.event[pairs + 1] - trajectories.event[pairs], 0
    for gap in np.unique(gaps):
        reach = _power(steps, int(gap))
        some = pairs[gaps == gap]
        for start in range(0, len(some), _CHUNK):
            part = some[start : start + _CHUNK]
            links = reach[trajectories.codes[part][:, :, None], trajectories.codes[part + 1][:, None, :]]
            strays += int((~(links.any(axis=1).all(axis=1) & links.any(axis=2).all(axis=1))).sum())
    return strays


def _power(steps: Bools, times: int) -> Bools:
    """Where so many steps lead, by repeated squaring."""
    reach, square = np.eye(len(steps), dtype=np.float32), steps.astype(np.float32)
    while times:
        if times & 1:
            reach = ((reach @ square) > 0).astype(np.float32)
        square, times = ((square @ square) > 0).astype(np.float32), times >> 1
    return np.asarray(reach > 0)
