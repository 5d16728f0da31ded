"""Releasing a table under noise: mechanisms, learners, bounds and the certificate (FAR).

A release is x̄ = x + n, row by row. What is where:

* :mod:`vfl.release.mechanisms` – :class:`Gaussian`, :class:`Laplace` and their base :class:`Mechanism`;
  :mod:`vfl.release.bounded` – :class:`Bounded`; :mod:`vfl.release.correlated` – :class:`Correlated`.
  ``mechanism.sample(start, n_rows, key)`` draws rows start … start + n_rows of the noise: the same bits
  however a table is cut into blocks. ``key`` is the owner's secret (bytes, at most 64), never published.
* :mod:`vfl.release.parameters` – Π (identity, standardising, given) and λ (from a target error, from ε and δ).
* :mod:`vfl.release.svm` – the regularised SVM (2), exact, with duals; :mod:`vfl.release.preserving` builds the
  classifier-preserving noise and re-solves the released table. :mod:`vfl.release.learners` – the others.
* :mod:`vfl.release.moments` – :class:`TableMoments`, added block by block.
* :mod:`vfl.release.accounting` – ε; :mod:`vfl.release.bounds` – what an adversary's error cannot go below.
* :mod:`vfl.release.certificate` – :func:`certify` makes the :class:`Certificate` from mechanism + moments.
"""
