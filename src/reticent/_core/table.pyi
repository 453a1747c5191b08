from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

def anatomize(
    codes: npt.NDArray[np.int32], *, domain: int, l: int, key: bytes
) -> tuple[npt.NDArray[np.int64], int]: ...

class Model:
    def __init__(
        self,
        *,
        k: int = 1,
        l: tuple[str, list[int]] | None = None,
        t: tuple[str, int, int] | None = None,
    ) -> None: ...

_Ladder: TypeAlias = tuple[list[npt.NDArray[np.int32]], list[npt.NDArray[np.int64]], int]
_Sensitive: TypeAlias = tuple[npt.NDArray[np.int32], int, list[npt.NDArray[np.int32]]]

class Collapsed:
    def __init__(
        self,
        quasi: list[npt.NDArray[np.int32]],
        ladders: list[_Ladder],
        sensitive: list[_Sensitive],
        *,
        times: npt.NDArray[np.uint32] | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nodes(self) -> int: ...
    def combinations(self) -> npt.NDArray[np.uint32]: ...
    def search(
        self, model: Model, *, loss: str, weights: list[float], limit: int, seconds: float | None = None
    ) -> dict[str, Any]: ...
    def evaluate(
        self, model: Model, levels: list[int], *, loss: str, weights: list[float]
    ) -> tuple[float, int, int]: ...
    def classes(self, model: Model, levels: list[int]) -> npt.NDArray[np.int32]: ...
    def localize(
        self,
        model: Model,
        *,
        loss: str,
        weights: list[float],
        limit: int,
        values: npt.NDArray[np.int32] | None = None,
        order: list[list[int]] | None = None,
    ) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]: ...

def mondrian(
    axes: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.float64], list[npt.NDArray[np.int32]]]],
    sensitive: list[_Sensitive],
    model: Model,
    *,
    relaxed: bool,
) -> tuple[npt.NDArray[np.int64], bool]: ...
