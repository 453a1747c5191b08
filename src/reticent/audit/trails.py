"""The trails of persons under the veil: what every publication of a store showed of each, event by event.

Which record is whose is not in a release; the judge is told, by the private ledger (keyed hashes and line numbers, no values).

Guarantee: refuted are publications that show other candidates or another row for an event of a person that was shown before (a
    second veil over the same truth reveals it), that go back to an event between those that were shown, or that show candidates which the
    published kernel does not lead to.
Not covered: whether decoys moved with the right probability; whether the ledger is true to the input. Without a ledger only that
    all publications are of one house.
Cost: one sort of the records of all publications; l x l look-ups for every record that moved.
Reference: docs/veil.md.
Differences from the paper: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.audit.veil import SHAPE, codes_of, line_of, packed, whole
from reticent.audit.verdict import Finding, Verdict, none_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from reticent.audit.published import Published
    from reticent.audit.veil import Line
    from reticent.policy import Policy
    from reticent.release import Ledger

    Whole = npt.NDArray[np.int64]

_HOUSE = ("l", "one", "sensitive", "domain", "by", "rows", "stretches", "order", "orders", "kernel")
_AT_ONCE = 50_000
LINKING = "candidates of the same person over several publications (give the ledger: --ledger STORE)"


@dataclass(frozen=True, repr=False)
class Trails:
    """The records of all publications side by side, by person, event and publication."""

    person: npt.NDArray[np.uint64]
    event: Whole
    number: Whole
    row: Whole
    codes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, parts: Sequence[tuple[npt.NDArray[np.uint64], Whole, Whole, Whole, npt.NDArray[np.int32]]]) -> Trails:
        """Sorted from parts that are not."""
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        person, event, number = columns[:3]
        order = np.lexsort((number, event, person))
        return cls(*(column[order] for column in columns))

    def at(self, which: npt.NDArray[Any]) -> Trails:
        """Some records."""
        return Trails(self.person[which], self.event[which], self.number[which], self.row[which], self.codes[which])


def judge(releases: Sequence[Published], policy: Policy, ledger: Ledger | None = None) -> Verdict:
    """Several veiled publications side by side, persons linked by the ledger."""
    ours = [release for release in releases if release.shape == SHAPE and {"data"} <= set(release.tables)]
    lines = [line_of(release) for release in ours]
    if len(ours) < 2 or None in lines:
        return Verdict(())  # a line that cannot be read is refuted by itself
    houses = sum(_house(release) != _house(ours[0]) for release in ours[1:])
    one = none_of("all publications are of one house", houses)
    if houses or ledger is None:
        return Verdict((one,), unchecked=() if houses else (LINKING,))
    numbers = [_number(release, place, len(ours), ledger) for place, release in enumerate(ours)]
    off = sum(_off(release, ledger, number) for release, number in zip(ours, numbers, strict=True))
    listed = none_of("the ledger lists every veiled record once", off)
    if off:
        return Verdict((one, listed), ("The ledger is not that of these releases; persons cannot be linked.",))
    line = lines[0]
    assert line is not None  # noqa: S101 - asked above
    trails = Trails.of([_part(r, line, ledger, number) for r, number in zip(ours, numbers, strict=True)])
    return Verdict((one, listed, *_findings(trails, line, ours[0], policy)))


def _house(release: Published) -> dict[str, Any]:
    document = release.documents.get("veil", {})
    return {key: document.get(key) for key in _HOUSE}


def _number(release: Published, place: int, size: int, ledger: Ledger) -> int:
    """Where the ledger tells of a release: all of them stand in order, or each says its number."""
    number = place + 1 if size == len(ledger) else release.explain.get("publication", place + 1)
    return number if isinstance(number, int) else place + 1


def _off(release: Published, ledger: Ledger, number: int) -> bool:
    if not 0 < number <= len(ledger):
        return True
    lines = ledger.groups[number - 1]
    return not np.array_equal(np.sort(lines), np.arange(release.tables["data"].num_rows))


def _part(
    release: Published, line: Line, ledger: Ledger, number: int
) -> tuple[npt.NDArray[np.uint64], Whole, Whole, Whole, npt.NDArray[np.int32]]:
    data, at = release.tables["data"], ledger.groups[number - 1]
    persons = ledger.persons[number - 1]
    rows, events = whole(data["row"])[at], whole(data["event"])[at]
    return persons, events, np.full(len(at), number), rows, codes_of(line, data)[at]


def _findings(trails: Trails, line: Line, release: Published, policy: Policy) -> list[Finding]:
    same_person = trails.person[1:] == trails.person[:-1]
    same = same_person & (trails.event[1:] == trails.event[:-1])
    other = packed(trails.codes)[1:] != packed(trails.codes)[:-1]
    rows = trails.row[1:] != trails.row[:-1]
    firsts = trails.at(np.concatenate([[True], ~same]))  # each event where it was shown first
    follow = firsts.person[1:] == firsts.person[:-1]
    back = follow & (firsts.number[1:] < firsts.number[:-1])
    findings = [
        none_of("a person keeps its row of the prior", int((same_person & rows).sum())),
        none_of("an event of a person shows the same candidates in every publication", int((same & other).sum())),
        none_of("events of a person never go back", int(back.sum())),
    ]
    pairs = np.flatnonzero(follow)
    kernel, strays = release.documents["veil"].get("kernel"), 0
    correcting = release.kind == "evolving" and (policy.persons is None or policy.persons.events is None)
    for some, row in _by_row(firsts, pairs, kernel):
        strays += _strays(firsts, some, _moves(kernel, line, row, correcting=correcting))
    return [*findings, none_of("candidates move as the published kernel leads", strays)]


def _by_row(trails: Trails, pairs: Whole, kernel: Mapping[str, Any] | None) -> Iterator[tuple[Whole, int]]:
    """Pairs by row of the prior, where the kernel goes by it."""
    if kernel is None or "stay" not in kernel:
        yield pairs, 0
    else:
        rows = trails.row[pairs]
        yield from ((pairs[rows == row], int(row)) for row in np.unique(rows))


def _moves(kernel: Mapping[str, Any] | None, line: Line, row: int, *, correcting: bool) -> npt.NDArray[np.bool_] | None:
    """Where a value can go at one event; None where the form of the kernel is not known here.

    Where every event is a correction, all values move but those that the kernel never lets go.
    """
    size = len(line.domain)
    if kernel is None:
        return np.eye(size, dtype=bool)
    if {"starts", "targets"} <= set(kernel):
        starts = np.array(kernel["starts"], dtype=np.int64)
        steps = np.zeros((size, size), dtype=bool)
        steps[np.repeat(np.arange(size), np.diff(starts)), np.array(kernel["targets"], dtype=np.int64)] = True
    elif {"stay", "within", "parents"} <= set(kernel):
        steps = _shared(kernel, line, row)
    else:
        return None
    if correcting:
        np.fill_diagonal(steps, steps.sum(axis=1) == steps.diagonal())
    return steps


def _shared(kernel: Mapping[str, Any], line: Line, row: int) -> npt.NDArray[np.bool_]:
    """A kernel of few numbers: stay, siblings, and whatever the row of the prior knows."""
    stay, parents = np.array(kernel["stay"], dtype=np.int64), np.array(kernel["parents"], dtype=np.int64)
    others = np.tile(line.stretches[row] > 0, (len(stay), 1)) & ~np.eye(len(stay), dtype=bool)
    near = others & (parents[:, None] == parents[None, :])
    far = others & (kernel["within"] < line.one)
    steps: npt.NDArray[np.bool_] = np.where(near.any(axis=1)[:, None], near & (kernel["within"] > 0) | far, others)
    steps[stay >= line.one] = False
    np.fill_diagonal(steps, (stay > 0) | ~steps.any(axis=1))
    return steps


def _strays(trails: Trails, pairs: Whole, steps: npt.NDArray[np.bool_] | None) -> int:
    """Pairs of neighbouring events of a person between which a candidate comes from nowhere, or leads nowhere."""
    if steps is None:
        return 0
    gaps, strays = trails.event[pairs + 1] - trails.event[pairs], 0
    for gap in np.unique(gaps):
        reach = _power(steps, int(gap))
        some = pairs[gaps == gap]
        for start in range(0, len(some), _AT_ONCE):
            part = some[start : start + _AT_ONCE]
            links = reach[trails.codes[part][:, :, None], trails.codes[part + 1][:, None, :]]
            strays += int((~(links.any(axis=1).all(axis=1) & links.any(axis=2).all(axis=1))).sum())
    return strays


def _power(steps: npt.NDArray[np.bool_], times: int) -> npt.NDArray[np.bool_]:
    """Where so many steps lead, by repeated squaring."""
    reach, square = np.eye(len(steps), dtype=np.float32), steps.astype(np.float32)
    while times:
        if times & 1:
            reach = ((reach @ square) > 0).astype(np.float32)
        square, times = ((square @ square) > 0).astype(np.float32), times >> 1
    return np.asarray(reach > 0)
