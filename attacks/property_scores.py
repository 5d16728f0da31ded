"""Properties of a population from its released scores alone, by shadow models.

Zhang, Tople and Ohrimenko, 2021. It reads no message of training: protected training does not hinder it.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from vflens.attacks.helpers.people.property import OWN, Features, PropertyAttack
from vflens.models.part import Keys, Site, plain
from vflens.models.together import scores_of_own_rows
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, RowStatus

_LEAST = np.log(1e-12)  # a released score may be 0


class PropertyScores(PropertyAttack):
    """A shadow model of all columns is trained on each population, with the federation's settings. The
    features are means over rows: of log-scores less their mean, of the own columns, and of products of both.
    """

    needs: ClassVar[frozenset[Knowledge]] = OWN | {
        Knowledge.SCORES,
        Knowledge.OWN_LABELS,
        Knowledge.METADATA,
    }
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.PREDICT, Phase.DISCLOSE})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.PREDICT})

    populations: int = Field(
        50, ge=2, le=100_000, description="shadow models for each column, and for each half of the known rows"
    )

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """See :meth:`PropertyAttack.reconstruct`; rows with a score of 0 are SATURATED."""
        found = super().reconstruct(view, rng=rng)
        found.status[~np.isfinite(view.scores()).all(axis=1)] = RowStatus.SATURATED
        return found

    def features(self, view: AdversaryView, known: Array, x: Array, rng: np.random.Generator) -> Features:
        own, labels = view.own("features", known), view.own("labels", known)
        table = np.concatenate([own, x], axis=1)
        site = site_of(view, table.shape[1], rng)

        def shadows(chosen: Array) -> Array:
            rows = np.asarray(chosen, np.int32)
            scores = scores_of_own_rows(view.model, site, table, labels, rows, rng=rng)
            return np.stack([averages(*both) for both in zip(scores, own[rows], strict=True)])

        return Features(averages(view.scores(), view.own("features")), shadows)


def averages(log_scores: Array, own: Array) -> Array:
    """Means of log-scores (n, k), of own columns (n, p) and of their products: (k + p + k p,)."""
    z = np.maximum(log_scores, _LEAST)
    z = z - z.mean(axis=1, keepdims=True)
    products = z.T @ own / len(own)
    return np.concatenate([z.mean(axis=0), own.mean(axis=0), products.ravel()])


def site_of(view: AdversaryView, features: int, rng: np.random.Generator) -> Site:
    """Where the adversary builds a model of its own and the target's columns, ``features`` in all."""
    assert view.schedule is not None, "a party knows how its federation trains"
    model, columns = view.model, [*view.own_columns(), *view.metadata()]
    width = model.width_of(view.metadata(), view.n_classes)
    return Site(
        party=view.party,
        columns=columns,
        features=features,
        classes=view.n_classes,
        training=view.schedule,
        keys=Keys.under(rng.bytes(32)),
        wrap=plain,
        device=view.device,
        received=model.combined_width([width], view.n_classes),
        holds_bias=True,
    )
