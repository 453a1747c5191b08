"""Tables of a release that are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")


class OnDemand(Mapping[str, T]):
    """Values by name, made when the first is asked for: who only wants the lines never pays for the tables."""

    __slots__ = ("_make", "_values")

    def __init__(self, make: Callable[[], Mapping[str, T]]) -> None:
        self._make = make
        self._values: Mapping[str, T] | None = None

    def _all(self) -> Mapping[str, T]:
        if self._values is None:
            self._values = self._make()
        return self._values

    def __getitem__(self, name: str) -> T:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
