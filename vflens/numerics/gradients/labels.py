"""Labels from the gradient in the last layer of a network that is trained by cross-entropy.

With z = V h + c, p = softmax(z), the mean loss of n rows has ∂ℓ/∂c = (1/n) Σ_i (p_i − e_{y_i}) and
∂ℓ/∂V = (1/n) Σ_i (p_i − e_{y_i}) h_iᵀ.
"""

import numpy as np

from vflens.array import Array


def row_label(bias: Array) -> Array:
    """The label (…) of one row from ∂ℓ/∂c (…, k): its only negative entry (Zhao et al., 2020, iDLG)."""
    label: Array = bias.argmin(axis=-1)
    return label


def label_counts(bias: Array, rows: int, probabilities: Array) -> Array:
    """How many of a batch's ``rows`` have each label, integers (k,) of sum ``rows``.

    n_c = Σ_i p_ic − n·∂ℓ/∂c_c (Wainakh et al., 2022, §4, and Geng et al., 2021, §3.2, in terms of the bias).
    The answer is exact if n·``probabilities`` is within ½ of Σ_i p_i in every class and their errors cancel
    in the sum. An untrained model has p = 1/k nearly; a trained one's mean is estimated on granted rows.

    Args:
        bias: ∂ℓ/∂c (k,) of the batch's mean loss.
        rows: n ≥ 1.
        probabilities: the mean of p over rows like the batch's (k,), of sum 1.
    """
    expected = np.maximum(rows * (probabilities - bias), 0)
    if not expected.any():  # noise on the bias
        expected = probabilities.copy()
    expected *= rows / expected.sum()
    counts = np.floor(expected)
    missing = rows - int(counts.sum())
    counts[np.argsort(counts - expected, kind="stable")[:missing]] += 1
    whole: Array = counts.astype(np.int64)
    return whole


def batch_labels(bias: Array, rows: int, probabilities: Array) -> Array:
    """The labels of a batch's ``rows``, ascending integers (n,): by :func:`row_label` of one row, which is
    exact, else by :func:`label_counts`.
    """
    if rows == 1:
        return row_label(bias)[None]
    return np.repeat(np.arange(len(bias)), label_counts(bias, rows, probabilities))
