import numpy as np
import numpy.typing as npt

def anatomize(
    codes: npt.NDArray[np.int32], *, domain: int, l: int, key: bytes
) -> tuple[npt.NDArray[np.int64], int]: ...
