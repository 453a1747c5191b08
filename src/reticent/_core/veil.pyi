from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from reticent._core.stream import CodedBatch

U64: TypeAlias = npt.NDArray[np.uint64]
U32: TypeAlias = npt.NDArray[np.uint32]
U16: TypeAlias = npt.NDArray[np.uint16]
U8: TypeAlias = npt.NDArray[np.uint8]
I32: TypeAlias = npt.NDArray[np.int32]
Flags: TypeAlias = npt.NDArray[np.bool_]

SLOT_LENGTH: int

class Kernel:
    @staticmethod
    def from_stays(stay: U64, *, within: int, parents: U32) -> Kernel: ...
    @staticmethod
    def from_matrix(starts: U64, targets: U16, weights: U64) -> Kernel: ...

class Events:
    candidates: U16
    strata: U32
    events: U32
    memories: U8
    offered: Flags

class Veil:
    def __init__(
        self, *, key: bytes, l: int, segments: U64, permutations: U16, kernel: Kernel | None = None
    ) -> None: ...
    def candidates(self, persons: U64, strata: U32, values: I32, events: U32 | None = None) -> U16: ...
    def is_offered(self, strata: U32, values: I32) -> Flags: ...
    def begin(self, persons: U64, strata: U32, values: I32) -> Events: ...
    def step(
        self,
        persons: U64,
        memories: U8,
        values: I32,
        *,
        kind: Literal["visit", "correction"],
        events: U32 | None = None,
    ) -> Events: ...

class VeiledEvents:
    def __len__(self) -> int: ...
    @property
    def omitted(self) -> int: ...
    @property
    def candidates(self) -> U16: ...
    @property
    def strata(self) -> U32: ...
    @property
    def events(self) -> U32: ...
    @property
    def offered(self) -> Flags: ...

class People:
    def __init__(self, veil: Veil) -> None: ...
    def __len__(self) -> int: ...
    def is_known(self, persons: U64) -> Flags: ...
    def add_events(
        self,
        persons: U64,
        households: U64,
        strata: U32,
        values: I32,
        kind: Literal["visit", "correction"] = "visit",
        *,
        now: int | None = None,
    ) -> VeiledEvents: ...
    def add_batch(self, batch: CodedBatch) -> VeiledEvents: ...
    def to_bytes(self) -> bytes: ...
    def load(self, data: bytes) -> None: ...

def pseudonyms(persons: U64, *, key: bytes) -> U64: ...
def segments_of_counts(counts: U64, *, l: int) -> U64: ...
def random_permutations(size: int, *, count: int, seed: bytes) -> U16: ...
def hierarchy_permutations(levels: U32, *, count: int, seed: bytes) -> U16: ...
