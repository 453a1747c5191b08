from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Ints: TypeAlias = npt.NDArray[np.int32]
_Longs: TypeAlias = npt.NDArray[np.int64]
_Floats: TypeAlias = npt.NDArray[np.float64]

def publish(
    values: _Ints,
    previous: _Ints,
    before: _Ints,
    points: npt.NDArray[np.float32],
    *,
    past: tuple[_Longs, _Ints],
    sets: tuple[_Longs, _Ints, _Floats],
    colours: _Ints,
    relax: bool,
    m: int,
    key: bytes,
) -> tuple[_Longs, _Ints, _Ints, _Ints, npt.NDArray[np.uint8]] | None: ...
def risks(
    heads: _Ints,
    *,
    versions: tuple[_Ints, _Ints, _Ints, _Ints],
    groups: tuple[_Longs, _Ints],
    steps: list[tuple[_Longs, _Ints, _Floats]],
) -> tuple[_Floats, _Floats, _Ints, _Ints]: ...
def estimate(
    from_: _Ints, to: _Ints, *, low: _Ints, high: _Ints, records: _Ints, groups: tuple[_Longs, _Ints]
) -> _Floats: ...
def count(from_: _Ints, to: _Ints, records: _Ints) -> _Longs: ...
def l_diverse(values: _Ints, points: npt.NDArray[np.float32], *, l: int) -> tuple[_Ints, int]: ...
