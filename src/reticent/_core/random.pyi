import numpy as np
import numpy.typing as npt

def permutation(n: int, *, key: bytes) -> npt.NDArray[np.int64]: ...
