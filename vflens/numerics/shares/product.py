"""Products of integers modulo 2⁶⁴."""

import numpy as np

from vflens.array import Array


def product(matrix: Array, columns: Array) -> Array:
    """``matrix`` (n, d) times ``columns`` (d, k), modulo 2⁶⁴: uint64 (n, k).

    It is ``matrix @ columns`` bit for bit: such sums are exact in any order, and no BLAS takes part. NumPy's
    loop for ``@`` of integers uses no vector instructions, the one for a sum over the last index of both
    factors does (docs/performance.md, small choices). A transposed ``matrix`` needs no copy.
    """
    whole: Array = np.einsum("ij,kj->ik", matrix, np.ascontiguousarray(columns.T))
    return whole
