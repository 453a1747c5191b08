from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

@final
class Groups:
    @property
    def groups(self) -> npt.NDArray[np.int64]: ...
    @property
    def count(self) -> int: ...

@final
class RowOrder:
    @property
    def order(self) -> npt.NDArray[np.int64]: ...
    @property
    def numbers(self) -> npt.NDArray[np.int64]: ...

@final
class EncodedTexts:
    @property
    def codes(self) -> npt.NDArray[np.int32]: ...
    @property
    def firsts(self) -> npt.NDArray[np.int64]: ...

@final
class DecodedTexts:
    @property
    def ends(self) -> npt.NDArray[np.int32]: ...
    @property
    def text(self) -> npt.NDArray[np.uint8]: ...

def decode_texts(
    codes: npt.NDArray[np.int32], ends: npt.NDArray[np.int32], text: npt.NDArray[np.uint8]
) -> DecodedTexts: ...
def encode_texts(ends: npt.NDArray[np.int32], text: npt.NDArray[np.uint8]) -> EncodedTexts: ...
def arrange_rows(keys: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]) -> RowOrder: ...
def anatomize(codes: npt.NDArray[np.int32], *, domain: int, l: int, key: bytes) -> Groups: ...

@final
class Model:
    def __init__(
        self,
        *,
        k: int = 1,
        l: tuple[str, list[int]] | None = None,
        t: tuple[str, int, int] | None = None,
        persons: tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32], list[_Sensitive]] | None = None,
    ) -> None: ...

_Hierarchy: TypeAlias = tuple[list[npt.NDArray[np.int32]], list[npt.NDArray[np.int64]], int]
_Sensitive: TypeAlias = tuple[npt.NDArray[np.int32], int, list[npt.NDArray[np.int32]]]

@final
class Evaluation:
    @property
    def score(self) -> float: ...
    @property
    def suppressed(self) -> int: ...
    @property
    def classes(self) -> int: ...

@final
class Recoding:
    @property
    def levels(self) -> list[npt.NDArray[np.int64]]: ...
    @property
    def suppressed(self) -> npt.NDArray[np.bool_]: ...
    @property
    def rows(self) -> npt.NDArray[np.uint32]: ...
    @property
    def times(self) -> npt.NDArray[np.uint32]: ...

@final
class CancellationToken:
    def __init__(self) -> None: ...
    def with_limits(self, *, seconds: float | None = None, megabytes: int | None = None) -> CancellationToken: ...
    def cancel(self) -> None: ...
    def report_loss(self, loss: float) -> None: ...
    @property
    def cancelled(self) -> bool: ...
    @property
    def is_late(self) -> bool: ...
    @property
    def stopped(self) -> bool: ...
    @property
    def seconds_left(self) -> float | None: ...
    @property
    def progress(self) -> tuple[int, float, float]: ...

@final
class Axis:
    @staticmethod
    def from_scale(
        codes: npt.NDArray[np.int32], scale: npt.NDArray[np.float64], *, missing: bool, weight: float
    ) -> Axis: ...
    @staticmethod
    def from_set(codes: npt.NDArray[np.int32], domain: int, size: int, *, missing: bool, weight: float) -> Axis: ...
    @staticmethod
    def from_tree(
        codes: npt.NDArray[np.int32],
        levels: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]],
        *,
        weight: float,
    ) -> Axis: ...

@final
class Partition:
    @property
    def classes(self) -> npt.NDArray[np.int64]: ...
    @property
    def is_valid(self) -> bool: ...

@final
class CollapsedTable:
    def __init__(
        self,
        quasi: list[npt.NDArray[np.int32]],
        hierarchies: list[_Hierarchy],
        sensitive: list[_Sensitive],
        *,
        times: npt.NDArray[np.uint32] | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nodes(self) -> int: ...
    def combinations(self) -> npt.NDArray[np.uint32]: ...
    def search(
        self,
        model: Model,
        *,
        loss: str,
        weights: list[float],
        limit: int,
        gs_factor: float = 0.5,
        cancellation: CancellationToken | None = None,
        loss_limit: float = ...,
    ) -> dict[str, Any]: ...
    def evaluate(self, model: Model, levels: list[int], *, loss: str, weights: list[float]) -> Evaluation: ...
    def classes(self, model: Model, levels: list[int]) -> npt.NDArray[np.int32]: ...
    def localize(
        self,
        model: Model,
        *,
        loss: str,
        weights: list[float],
        limit: int,
        values: npt.NDArray[np.int32] | None = None,
        times: npt.NDArray[np.uint32] | None = None,
        path: list[list[int]] | None = None,
        cancellation: CancellationToken | None = None,
    ) -> Recoding: ...

def mondrian(
    axes: list[Axis],
    sensitive: list[_Sensitive],
    model: Model,
    *,
    relaxed: bool,
    times: npt.NDArray[np.uint32] | None = None,
    start: npt.NDArray[np.int64] | None = None,
    linked_k: int = 0,
    cancellation: CancellationToken | None = None,
) -> Partition: ...
def check_classes(
    model: Model, classes: npt.NDArray[np.int64], pairs: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]: ...
def find_violations(
    classes: npt.NDArray[np.int64],
    persons: npt.NDArray[np.uint32],
    columns: list[tuple[npt.NDArray[np.int32], int]],
    l: int,
) -> npt.NDArray[np.bool_]: ...
