"""Which client is a predicted row from, by released scores and those of rows whose client is known (ours).

MediSwarm's audit asks it of hospitals, by class and against permuted sites (pull request 571, 2026).
"""

from typing import ClassVar

import numpy as np

from vflens.attacks.helpers.people.membership import log_scores
from vflens.attacks.source_inference import SourceInference
from vflens.numerics.membership import source_beliefs
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Estimate, Knowledge, Phase, statuses


class SourceByScores(SourceInference):
    """What an outsider knows: scores by the model after the last round, and whose some rows are. No update is
    read, no label, and no column but through the scores.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.PARAMETERS, Knowledge.AUXILIARY})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.DISCLOSE})
    since: ClassVar[str] = "0.3"

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """The beliefs (n, K) of :func:`vflens.numerics.membership.source_beliefs`.

        Raises:
            KnowledgeError: a client granted no rows, or the clients keep a part of the model to themselves.
        """
        model = view.parameters(view.rounds)
        known = [log_scores(view, model, view.auxiliary(name)[1], rng) for name in view.members]
        asked = log_scores(view, model, view.candidates()[0], rng)
        return Estimate(view.target, view.rows, source_beliefs(asked, known), statuses(len(asked)))
