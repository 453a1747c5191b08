from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from reticent._core.stream import Coded

U64: TypeAlias = npt.NDArray[np.uint64]
U32: TypeAlias = npt.NDArray[np.uint32]
U16: TypeAlias = npt.NDArray[np.uint16]
U8: TypeAlias = npt.NDArray[np.uint8]
I32: TypeAlias = npt.NDArray[np.int32]
F64: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

ONE: int

class Kernel:
    @staticmethod
    def shares(stay: U64, *, within: int, parents: U32) -> Kernel: ...
    @staticmethod
    def matrix(starts: U64, targets: U16, weights: U64) -> Kernel: ...

class Sights:
    candidates: U16
    rows: U32
    events: U32
    memories: U8
    offered: Flags

class Veil:
    def __init__(self, *, key: bytes, l: int, stretches: U64, orders: U16, kernel: Kernel | None = None) -> None: ...
    def candidates(self, persons: U64, rows: U32, values: I32, events: U32 | None = None) -> U16: ...
    def offered(self, rows: U32, values: I32) -> Flags: ...
    def begin(self, persons: U64, rows: U32, values: I32) -> Sights: ...
    def step(
        self,
        persons: U64,
        memories: U8,
        values: I32,
        *,
        kind: Literal["visit", "correction"],
        events: U32 | None = None,
    ) -> Sights: ...

class Seen:
    def __len__(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def candidates(self) -> U16: ...
    @property
    def rows(self) -> U32: ...
    @property
    def events(self) -> U32: ...
    @property
    def offered(self) -> Flags: ...

class People:
    def __init__(self, veil: Veil) -> None: ...
    def __len__(self) -> int: ...
    def known(self, persons: U64) -> Flags: ...
    def take(
        self,
        persons: U64,
        units: U64,
        rows: U32,
        values: I32,
        kind: Literal["visit", "correction"] = "visit",
        *,
        now: int | None = None,
    ) -> Seen: ...
    def visit(self, coded: Coded) -> Seen: ...
    def to_bytes(self) -> bytes: ...
    def load(self, data: bytes) -> None: ...

def pseudonyms(persons: U64, *, key: bytes) -> U64: ...
def stretches_of_counts(counts: U64, *, l: int) -> U64: ...
def random_orders(size: int, *, count: int, seed: bytes) -> U16: ...
def hierarchy_orders(levels: U32, *, count: int, seed: bytes) -> U16: ...
