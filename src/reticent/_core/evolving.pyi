from typing import final

import numpy as np
import numpy.typing as npt

@final
class Change:
    @property
    def rows(self) -> npt.NDArray[np.uint32]: ...
    @property
    def classes(self) -> npt.NDArray[np.int32]: ...
    @property
    def touched(self) -> int: ...
    @property
    def dissolved(self) -> int: ...
    @property
    def relocated(self) -> int: ...
    @property
    def withheld(self) -> int: ...

@final
class Classes:
    def __init__(self, method: str, *, l: int, scale: list[float]) -> None: ...
    def insert(
        self,
        rows: npt.NDArray[np.uint32],
        values: npt.NDArray[np.int32],
        quasi: npt.NDArray[np.int32],
        *,
        key: bytes,
    ) -> Change: ...
    def delete(self, rows: npt.NDArray[np.uint32], *, key: bytes, each: bool = False) -> Change: ...
    def load(
        self,
        rows: npt.NDArray[np.uint32],
        values: npt.NDArray[np.int32],
        quasi: npt.NDArray[np.int32],
        classes: npt.NDArray[np.int32],
    ) -> None: ...
    def classes_of(self, rows: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]: ...
