"""The size of a maximum matching of persons with values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import islice


def matching_size(choices: Sequence[Iterable[Hashable]], limit: int | None = None) -> int:
    """Return how many persons can each get a distinct value, counted up to a limit (augmenting paths, no recursion).

    >>> matching_size([[1, 2], [1], [1]])
    2
    """
    owner: dict[Hashable, int] = {}
    return sum(
        1 for _ in islice((person for person in range(len(choices)) if _find_value(person, choices, owner)), limit)
    )


def _find_value(person: int, choices: Sequence[Iterable[Hashable]], owner: dict[Hashable, int]) -> bool:
    """Find a value for a person, moving other persons to free values if necessary."""
    visited: dict[Hashable, tuple[int, Hashable | None]] = {}
    queue: list[tuple[int, Hashable | None]] = [(person, None)]
    for one, by in queue:  # grows during the loop: breadth first
        for value in choices[one]:
            if value in visited:
                continue
            visited[value] = one, by
            if value not in owner:
                _shift_owners(value, visited, owner)
                return True
            queue.append((owner[value], value))
    return False


def _shift_owners(
    value: Hashable | None, visited: dict[Hashable, tuple[int, Hashable | None]], owner: dict[Hashable, int]
) -> None:
    """Give every person on the augmenting path the new value."""
    while value is not None:
        owner[value], value = visited[value]
