"""The control of an attack on labels: the same attack on the same messages, once labels are dealt anew.

The new ones follow from the party's own columns, and no training saw them. What the attack finds of them, it
would find without a leak of training (task reassignment, arXiv 2603.18680).
"""

from collections.abc import Callable

import numpy as np

from vflens.errors import ConfigError, KnowledgeError, PluginError
from vflens.member.adversary import reconstructed
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.score.labels import named
from vflens.types import Array, Estimate, Knowledge


def dealt(own: Array, known: Array, counts: Array, rng: np.random.Generator) -> Array:
    """Labels (N,) of another task: a drawn direction of the ``own`` columns (N, d), cut so that the ``known``
    rows have each class as often as ``counts`` (k,) say, the classes in a drawn order.
    """
    spread = own.std(axis=0)
    scores = (own / np.where(spread > 0, spread, 1)) @ rng.standard_normal(own.shape[1])
    order = rng.permutation(len(counts))
    shares = np.cumsum(counts[order]) / counts.sum()
    labels: Array = order[np.searchsorted(np.quantile(scores[known], shares[:-1]), scores)]
    return labels


def found_anew(
    attack: Attack,
    see: Callable[[Attack], AdversaryView],
    found: Estimate,
    own: Array,
    rng: np.random.Generator,
) -> float | None:
    """How much ``attack`` finds of labels dealt anew from the ``own`` columns (N, d), of what the most
    frequent of them leaves open; None where it does not run on them. What it ``found`` without a known label
    stands for these too.
    """
    view, supervised = see(attack), Knowledge.KNOWN_LABELS in attack.declared().needs
    k, known = view.n_classes, np.arange(len(own))
    counts = np.ones(k)
    if supervised:
        known, given = view.known_labels()
        counts = np.bincount(given, minlength=k).astype(float)
    labels = dealt(own, known, counts, rng)
    if supervised:
        view.deal(labels)
        try:
            found = reconstructed(attack, view, rng)
        except (KnowledgeError, PluginError, ConfigError):
            return None
    truth = labels[found.rows]
    values = named(found.values, truth) if attack.up_to_renaming else found.values
    blind = float((truth == np.bincount(labels, minlength=k).argmax()).mean())
    return (float((values.argmax(axis=1) == truth).mean()) - blind) / (1 - blind) if blind < 1 else None
