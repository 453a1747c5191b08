"""The largest matching of persons with values: how many persons can stand for as many different values."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def matching(wishes: Mapping[int, Sequence[int]]) -> int:
    """How many heads get a value of their own; every head names its values (augmenting paths, without recursion).

    >>> matching({0: [1, 2], 1: [1], 2: [1]})
    2
    """
    owner: dict[int, int] = {}
    return sum(_placed(head, wishes, owner) for head in wishes)


def _placed(head: int, wishes: Mapping[int, Sequence[int]], owner: dict[int, int]) -> bool:
    """Finds a value for a head, letting others move on to values that are free."""
    came: dict[int, tuple[int, int | None]] = {}
    waiting: list[tuple[int, int | None]] = [(head, None)]
    for one, by in waiting:  # grows while it is read: breadth first
        for value in wishes[one]:
            if value in came:
                continue
            came[value] = one, by
            if value not in owner:
                _move(value, came, owner)
                return True
            waiting.append((owner[value], value))
    return False


def _move(value: int, came: dict[int, tuple[int, int | None]], owner: dict[int, int]) -> None:
    """Everybody on the way takes the value that was found for him or her."""
    at: int | None = value
    while at is not None:
        head, before = came[at]
        owner[at] = head
        at = before
