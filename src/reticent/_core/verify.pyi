import numpy as np
import numpy.typing as npt

class TrajectoryVerifier:
    def __init__(
        self,
        *,
        values: int,
        strata: int,
        factors: npt.NDArray[np.uint64],
        starts: list[int] | None = None,
        targets: list[int] | None = None,
        flags: npt.NDArray[np.uint8] | None = None,
        parents: list[int] | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def unknown_strata(self, strata: npt.NDArray[np.uint32]) -> list[int]: ...
    def learn_stratum(self, stratum: int, names: npt.NDArray[np.uint64]) -> None: ...
    def find_violation(
        self,
        persons: npt.NDArray[np.uint64],
        strata: npt.NDArray[np.uint32],
        events: npt.NDArray[np.uint32],
        candidates: npt.NDArray[np.uint16],
    ) -> str | None: ...
    def to_bytes(self) -> bytes: ...
    def load(self, data: bytes) -> None: ...
