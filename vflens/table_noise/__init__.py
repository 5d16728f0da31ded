"""Releasing a table under noise: mechanisms, bounds and the certificate (FAR).

A release is x̄ = x + n, row by row. The modules:

* :mod:`vflens.table_noise.mechanisms` – ``Gaussian``, ``Laplace`` and their base
  ``Mechanism``; :mod:`vflens.table_noise.bounded` – ``Bounded``;
  :mod:`vflens.table_noise.correlated` – ``Correlated``. ``mechanism.sample(start, n_rows, key)`` draws
  rows start … start + n_rows of the noise, the same bits for any division of the table into blocks. ``key``
  is the owner's secret (bytes, at most 64), never published.
* :mod:`vflens.table_noise.parameters` – Π (identity, standardising, given) and λ (from a target error, from ε
  and δ).
* :mod:`vflens.table_noise.svm` – the regularised SVM (2), exact, with multipliers;
  :mod:`vflens.table_noise.preserving` builds the classifier-preserving noise and re-solves the released
  table. :mod:`vflens.table_noise.regression` – linear regression.
* :mod:`vflens.table_noise.moments` – ``TableMoments``, added block by block.
* :mod:`vflens.table_noise.accounting` – ε; :mod:`vflens.table_noise.bounds` – lower bounds of an adversary's
  error.
* :mod:`vflens.table_noise.certificate` – ``certify`` makes the ``Certificate`` from mechanism +
  moments.
"""
