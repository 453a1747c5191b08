"""What other publications of a house show of the same persons: they compose only while they show the same.

The veil of a person is a function of the key, the person and the value, so two publications that begin with the same sight show
the same. Later events move the decoys by the same keyed steps in every publication: if two of them moved a person whose truths
part, the candidate that differs would be the truth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from reticent.engine.base import Sights

_MOVED = 1


class Mates:
    """First sights by person, with a mark on those who went on; of this publication, and of the others of its house."""

    def __init__(self) -> None:
        self._own: dict[int, int] = {}
        self._others: dict[int, set[int]] = {}

    def learn(self, shown: bytes, *, own: bool) -> None:
        """Takes up what a publication recorded."""
        persons, sights = np.frombuffer(shown, "<u8").reshape(2, -1).tolist()
        for person, sight in zip(persons, sights, strict=True):
            if own:
                self._own[person] = self._own.get(person, sight) | (sight & _MOVED)
            else:
                self._others.setdefault(person, set()).add(sight)

    def parted(self, sights: Sights) -> int:
        """How many persons are shown otherwise than elsewhere, or move here as they do elsewhere."""
        return sum(
            any(not _together(sight, other) for other in self._others[person])
            for person, sight in self._now(sights)
            if person in self._others
        )

    def news(self, sights: Sights) -> bytes:
        """What is to be recorded: persons who are new, or moved for the first time; and remembers it.

        Nothing where they are to stand alone: persons without a recorded sight compose with no other publication.
        """
        if sights.alone:
            return b""
        fresh = [(person, sight) for person, sight in self._now(sights) if self._own.get(person) != sight]
        self._own.update(fresh)
        return np.array(list(zip(*fresh, strict=True)), dtype="<u8").tobytes() if fresh else b""

    def _now(self, sights: Sights) -> list[tuple[int, int]]:
        """The first sight of each person in this publication, marked where the person went on."""
        marks = (sights.shown & ~np.uint64(_MOVED)) | sights.moved.astype(np.uint64)
        pairs = zip(sights.persons.tolist(), marks.tolist(), strict=True)
        return [(person, self._own.get(person, mark) | (mark & _MOVED)) for person, mark in pairs]


def _together(one: int, other: int) -> bool:
    """Whether two publications may show a person: the same first sight, and at most one of them went on."""
    first = one & ~_MOVED
    return first != 0 and first == other & ~_MOVED and not one & other & _MOVED
