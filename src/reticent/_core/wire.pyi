from collections.abc import Sequence
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

I64: TypeAlias = npt.NDArray[np.int64]
I32: TypeAlias = npt.NDArray[np.int32]
U8: TypeAlias = npt.NDArray[np.uint8]

@final
class Cells:
    @property
    def offsets(self) -> I32: ...
    @property
    def bytes(self) -> U8: ...
    @property
    def valid(self) -> U8 | None: ...

@final
class ReadBatch:
    @property
    def cells(self) -> Cells: ...
    @property
    def tokens(self) -> list[tuple[int, Cells | None]]: ...
    @property
    def rows(self) -> I64: ...
    @property
    def total(self) -> int: ...
    @property
    def bad_lines(self) -> list[tuple[int, str, bytes]]: ...

@final
class Reader:
    def __init__(
        self,
        names: Sequence[str],
        *,
        published: Sequence[bool],
        released: Sequence[bool],
        required: Sequence[tuple[int, str]],
        numbers: Sequence[int],
        missing: Sequence[str],
    ) -> None: ...
    def ndjson(self, data: bytes) -> ReadBatch: ...
    def objects(self, values: Sequence[bytes | str | None]) -> ReadBatch: ...
    def csv(self, data: bytes, delimiter: int, columns: Sequence[int], last: bool) -> tuple[ReadBatch, int]: ...
    def table(self, batch: Any) -> ReadBatch: ...
