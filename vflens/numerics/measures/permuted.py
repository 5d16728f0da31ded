"""Are rows named as their own site's more often than if the rows of each class had exchanged their sites?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vflens.array import Array


class Permuted(NamedTuple):
    """The ``share`` of rows that are named rightly, a mean over sites; ``mean`` and standard ``deviation`` of
    it over all orders of the sites within each class: the permutation null.
    """

    share: float
    mean: float
    deviation: float


def permuted(counts: Array) -> Permuted:
    """What ``counts`` (c, K, K) say: of each class, how many rows of each site are named as each site's.

    Where a site tells nothing but the class, every order of the sites within a class is as likely. Mean and
    variance over all of them are exact (W. Hoeffding, Annals of Mathematical Statistics 22 (1951)). Each of K
    sites needs one row at least.
    """
    right = np.diag(1 / (counts.shape[1] * counts.sum(axis=(0, 2))))
    mean = variance = 0.0
    for of_class in counts[counts.sum(axis=(1, 2)) > 0]:
        sites, named, n = of_class.sum(axis=1), of_class.sum(axis=0), of_class.sum()
        by_site, by_name = right @ named / n, sites @ right / n
        beside = right - by_site[:, None] - by_name + sites @ by_site / n
        mean += float(sites @ by_site)
        variance += float(sites @ beside**2 @ named) / max(1, n - 1)
    return Permuted(float((counts * right).sum()), mean, float(np.sqrt(variance)))
