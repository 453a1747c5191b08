"""The largest matching of persons with values: how many persons can stand for as many different values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import islice


def matching_size(choices: Sequence[Iterable[Hashable]], limit: int | None = None) -> int:
    """How many heads get a value of their own, counted as far as is enough; every head names its values (augmenting paths, without recursion).

    >>> matching([[1, 2], [1], [1]])
    2
    """
    owner: dict[Hashable, int] = {}
    return sum(1 for _ in islice((head for head in range(len(choices)) if _find_value(head, choices, owner)), limit))


def _find_value(head: int, wishes: Sequence[Iterable[Hashable]], owner: dict[Hashable, int]) -> bool:
    """Finds a value for a head, letting others move on to values that are free."""
    came: dict[Hashable, tuple[int, Hashable | None]] = {}
    waiting: list[tuple[int, Hashable | None]] = [(head, None)]
    for one, by in waiting:  # grows while it is read: breadth first
        for value in wishes[one]:
            if value in came:
                continue
            came[value] = one, by
            if value not in owner:
                _shift_owners(value, came, owner)
                return True
            waiting.append((owner[value], value))
    return False


def _shift_owners(
    value: Hashable | None, came: dict[Hashable, tuple[int, Hashable | None]], owner: dict[Hashable, int]
) -> None:
    """Everybody on the way takes the value that was found for him or her."""
    while value is not None:
        owner[value], value = came[value]
