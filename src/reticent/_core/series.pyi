from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

_Ints: TypeAlias = npt.NDArray[np.int32]
_Longs: TypeAlias = npt.NDArray[np.int64]
_Floats: TypeAlias = npt.NDArray[np.float64]

@final
class PublishedGroups:
    @property
    def offsets(self) -> _Longs: ...
    @property
    def rows(self) -> _Ints: ...
    @property
    def values(self) -> _Ints: ...
    @property
    def donors(self) -> _Ints: ...
    @property
    def withheld(self) -> npt.NDArray[np.uint8]: ...

@final
class Risks:
    @property
    def worst(self) -> _Floats: ...
    @property
    def true_value(self) -> _Floats: ...
    @property
    def disclosed(self) -> _Ints: ...
    @property
    def versions(self) -> _Ints: ...

@final
class Groups:
    @property
    def groups(self) -> _Ints: ...
    @property
    def count(self) -> int: ...

def publish(
    values: _Ints,
    previous: _Ints,
    before: _Ints,
    points: npt.NDArray[np.float32],
    *,
    past: tuple[_Longs, _Ints],
    sets: tuple[_Longs, _Ints, _Floats],
    colors: _Ints,
    relax: bool,
    m: int,
    key: bytes,
) -> PublishedGroups | None: ...
def risks(
    heads: _Ints,
    *,
    versions: tuple[_Ints, _Ints, _Ints, _Ints],
    groups: tuple[_Longs, _Ints],
    steps: list[tuple[_Longs, _Ints, _Floats]],
) -> Risks: ...
def estimate(
    from_: _Ints, to: _Ints, *, low: _Ints, high: _Ints, records: _Ints, groups: tuple[_Longs, _Ints]
) -> _Floats: ...
def count(from_: _Ints, to: _Ints, records: _Ints) -> _Longs: ...
def group_l_diverse(values: _Ints, points: npt.NDArray[np.float32], *, l: int) -> Groups: ...
