"""The judge of a running stream under the veil: what is about to be delivered, beside all that was delivered before.

Guarantee: of every batch that holds: positions rise; every record has l candidates of the domain in canonical order and a row of
    the prior; a first sight is a set that its row can give; the events of a person count 0, 1, 2, ... under one row, and each
    set can follow the one before it along the published kernel. The line itself is that of the policy's prior.
Not covered: whether a record's row is that of its published fields, and whether the sets were drawn with the right probability:
    the attacks of the audit look at that.
Cost: one sort of the batch's persons, some 200 ns per record; 18 + 2 l bytes per person.
Reference: docs/veil.md.
Differences from the paper: ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from reticent.audit.first_seen import Persons
from reticent.audit.published import Published
from reticent.audit.veil import line_findings, linked, prior_findings
from reticent.audit.veil_steps import Possible

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from reticent.policy import Policy

    U64 = npt.NDArray[np.uint64]
    Codes = npt.NDArray[np.int64]

_FEW = 64


class VeilJudge:
    """Judges veiled records; remembers the last set of every person.

    Args:
        policy: what is asked for.
        document: the published side of the veil.
    """

    def __init__(self, policy: Policy, document: Mapping[str, Any]) -> None:
        self._possible = Possible(document)
        line = self._possible.line
        release = Published("", "veil", kind="stream", claims={"veil": line.l})
        findings = [*line_findings(line, policy, release), *prior_findings(line, document, policy)]
        self._crooked = [finding.claim for finding in findings if not finding.holds]
        self._linked, self._quasi = linked(policy), frozenset(policy.quasi)
        self._l, self._values, self._rows = line.l, len(line.domain), len(line.rows)
        self._persons, self._last = Persons(), -1
        self._known = _Memory(self._l)

    def offences(self, seqs: U64, veiled: Any) -> list[str]:
        """What is wrong with a batch, in words without any value; then the judge is of no use any more.

        Args:
            seqs: positions.
            veiled: published columns, rows, events, candidates, names and persons of the records.
        """
        offences = self._crooked or self._unsound(seqs, veiled)
        if offences or not len(seqs):
            return offences
        self._last = int(seqs[-1])
        follow = self._few if len(seqs) < _FEW else self._many
        offences = follow(veiled.candidates, veiled.rows, veiled.events, veiled.persons)
        if not offences and veiled.names is not None and _names_differ(veiled.persons, veiled.names):
            return ["a pseudonym is not that of one person"]
        return offences

    def _unsound(self, seqs: U64, veiled: Any) -> list[str]:
        """What is wrong with the records as they stand, each for itself."""
        candidates, rows = veiled.candidates, veiled.rows
        sizes = {len(seqs), len(rows), len(veiled.events), len(candidates), len(veiled.persons)}
        if len(sizes) > 1 or candidates.shape[1:] != (self._l,):
            return ["the batch is not whole"]
        if (veiled.names is not None) != self._linked or not veiled.published.keys() <= self._quasi:
            return ["more is published than the policy releases"]
        if len(seqs) and (int(seqs[0]) <= self._last or (seqs[1:] <= seqs[:-1]).any()):
            return ["a position occurs twice"]
        if int(candidates.max(initial=0)) >= self._values or int(rows.max(initial=0)) >= self._rows:
            return ["a candidate or a row that the codebook does not have"]
        return ["candidates are not in canonical order"] if (candidates[:, 1:] < candidates[:, :-1]).any() else []

    def _few(self, candidates: Any, rows: Any, events: Any, persons: U64) -> list[str]:
        """A small batch record by record."""
        known = self._known
        records = zip(persons.tolist(), rows.tolist(), events.tolist(), candidates.tolist(), strict=True)
        for person, row, event, codes in records:
            met = len(self._persons)
            place = self._persons.place(person)
            if place == met:
                known.reserve(met + 1)
                if event != 0:
                    return ["the first record of a person is not her event 0"]
                if not self._possible.gives(row, codes):
                    return ["a first sight is no set that its row can give"]
            elif known.rows[place] != row or known.events[place] + 1 != event:
                return ["the events of a person are not counted one by one, under one row"]
            elif not self._possible.leads(row, known.sets[place].tolist(), codes):
                return ["a set cannot follow the one before it"]
            known.rows[place], known.events[place], known.sets[place] = row, event, codes
        return []

    def _many(self, candidates: Any, rows: Any, events: Any, persons: U64) -> list[str]:
        """A large batch at once, the records of each person side by side."""
        order = _by_person(persons)
        named = persons[order]
        starts = np.concatenate([[True], named[1:] != named[:-1]])
        met, heads = len(self._persons), np.flatnonzero(starts)
        places, known = self._persons.places(named[heads]), self._known
        known.reserve(len(self._persons))
        new = places >= met
        first = order[heads[new]]
        # What stood before each later record: what is remembered of the person, or her last one in this batch.
        again, back = np.flatnonzero(~starts), places[~new]
        later, last = np.concatenate([order[heads[~new]], order[again]]), order[again - 1]
        old_rows, old_events, old_sets = (
            np.concatenate([memory[back], column[last]])
            for memory, column in ((known.rows, rows), (known.events, events), (known.sets, candidates))
        )
        if events[first].any() or (events[later] != old_events + 1).any() or (rows[later] != old_rows).any():
            return ["the events of a person are not counted one by one, under one row"]
        strange = self._possible.impossible_sets(candidates[first], rows[first])
        if strange:
            return [f"{strange:,} first sights are no sets that their rows can give"]
        sudden = self._possible.impossible_steps(old_sets, candidates[later], rows[later])
        if sudden:
            return [f"{sudden:,} sets cannot follow the ones before them"]
        tails = order[np.append(heads[1:], len(order)) - 1]
        known.rows[places], known.events[places], known.sets[places] = rows[tails], events[tails], candidates[tails]
        return []

    def snapshot(self) -> bytes:
        """What is remembered."""
        size = len(self._persons)
        head = orjson.dumps({"last": self._last, "persons": size})
        return b"".join([head, b"\n", self._persons.names().tobytes(), self._known.to_bytes(size)])

    def restore(self, state: bytes) -> None:
        """Goes on from a snapshot."""
        line, _, data = state.partition(b"\n")
        head = orjson.loads(line)
        size = head["persons"]
        self._last = head["last"]
        self._persons = Persons.of(np.frombuffer(data, np.uint64, size).copy())
        self._known = _Memory(self._l)
        self._known.load(data[8 * size :], size)


class _Memory:
    """Row, event and set of every person's last record, by her place."""

    def __init__(self, l: int) -> None:
        self.rows = np.zeros(0, dtype=np.int32)
        self.events = np.zeros(0, dtype=np.int64)
        self.sets = np.zeros((0, l), dtype=np.uint16)

    def reserve(self, size: int) -> None:
        """Makes room for so many persons."""
        if size > len(self.rows):
            more = max(size, 2 * len(self.rows), 1024) - len(self.rows)
            self.rows, self.events, self.sets = (
                np.concatenate([part, np.zeros((more, *part.shape[1:]), dtype=part.dtype)])
                for part in (self.rows, self.events, self.sets)
            )

    def to_bytes(self, size: int) -> bytes:
        return b"".join(part[:size].tobytes() for part in (self.rows, self.events, self.sets))

    def load(self, data: bytes, size: int) -> None:
        l = self.sets.shape[1]
        self.rows = np.frombuffer(data, np.int32, size).copy()
        self.events = np.frombuffer(data, np.int64, size, 4 * size).copy()
        self.sets = np.frombuffer(data, np.uint16, size * l, 12 * size).reshape(size, l).copy()


def _by_person(persons: U64) -> Codes:
    """The records of each person side by side, in the order they came: a quick sort, and a slow one of the few that tie."""
    order = np.argsort(persons)
    named = persons[order]
    same = named[1:] == named[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    order[tied] = order[tied][np.lexsort((order[tied], named[tied]))]
    return order


def _names_differ(persons: U64, names: U64) -> bool:
    """Whether persons and pseudonyms do not stand one for one."""
    pairs = len({*zip(persons.tolist(), names.tolist(), strict=True)})
    return not pairs == len(np.unique(persons)) == len(np.unique(names))
