"""Was a candidate row in a client's training set? The server asks the client's own model.

A client's model after its local training is ω_t + Δ of the last round that it had a part in: it has just seen
the client's rows, more lately than the average has.
"""

from abc import abstractmethod
from collections import deque
from typing import ClassVar

import numpy as np

from vflens.errors import KnowledgeError
from vflens.models.part import Keys, Site, plain
from vflens.models.whole import WholeModel
from vflens.plugins.attack import Attack, Estimated
from vflens.plugins.declared import Audited
from vflens.plugins.views.horizontal import Parameters, ServerView
from vflens.types import Array, Estimate, Exchange, Knowledge, Phase, Setting, statuses


class MembershipAttack(Attack):
    """A score (n, 1) of each candidate, larger where it is more likely a training row."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.PARAMETERS, Knowledge.GRADIENTS, Knowledge.AUXILIARY}
    )
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimates: ClassVar[Estimated] = "membership"
    settings: ClassVar[frozenset[Setting]] = frozenset({Setting.HORIZONTAL})
    exact: ClassVar[bool] = False
    audited: ClassVar[Audited | None] = None

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """The scores of ``view.candidates()``."""
        x, y = view.candidates()
        scores = self.scores(view, clients_log_scores(view, view.target, x, rng), x, y, rng)
        return Estimate(view.target, view.rows, scores[:, None], statuses(len(x)))

    @abstractmethod
    def scores(self, view: ServerView, answers: Array, x: Array, y: Array, rng: np.random.Generator) -> Array:
        """Scores (n,) of candidates ``x`` (n, d), labels ``y`` (n,), from the client's ``answers`` (n, k)."""


def site_of(view: ServerView, rng: np.random.Generator) -> Site:
    """Where the server builds a model like the clients'.

    Raises:
        KnowledgeError: the server sees a part of the clients' models only.
    """
    run = view.agreement
    if run.horizontal.private_bottom or run.horizontal.is_split:
        raise KnowledgeError(
            f"horizontal.method = {run.horizontal.method!r}: an update holds a part of a client's model, and "
            "membership is asked of a whole model"
        )
    return Site(
        party=view.party,
        columns=run.columns,
        features=len(run.columns),
        classes=run.n_classes,
        training=run.training,
        keys=Keys.under(rng.bytes(32)),
        wrap=plain,
        device=view.device,
        received=run.received_width,
        holds_bias=True,
    )


def clients_log_scores(view: ServerView, client: str, x: Array, rng: np.random.Generator) -> Array:
    """Log-probabilities (n, k) of rows ``x`` (n, d) by the own model of ``client`` after its last local
    training.

    Raises:
        KnowledgeError: no update of it came in the clear.
    """
    last = next(iter(deque(view.updates(client), maxlen=1)), None)
    if last is None:
        raise KnowledgeError(
            f"no update of {client!r} reached {view.party!r} in the clear{view.sampling()}: its own "
            "model is not known"
        )
    exchange, update = last
    own = {}
    for name, start in view.parameters(exchange.round).items():
        learned = start + update[name].astype(start.dtype)
        own[name] = np.maximum(learned, 0) if name.endswith("running_var") else learned
    return log_scores(view, own, x, rng)


def log_scores(view: ServerView, parameters: Parameters, x: Array, rng: np.random.Generator) -> Array:
    """Log-probabilities (n, k) of rows ``x`` (n, d) by the whole model of these ``parameters``.

    Raises:
        KnowledgeError: as :func:`site_of`.
    """
    model = WholeModel(view.agreement.model, site_of(view, rng))
    model.take(parameters)
    return model.log_scores(x, Exchange("", Phase.PREDICT, 1, 0))
