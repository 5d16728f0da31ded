"""The labels that SplitFed sends beside its embeddings (Thapa et al., 2022, algorithm 1)."""

from typing import ClassVar, Literal

import numpy as np

from vflens.plugins.attack import Attack
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Estimate, Knowledge, Phase, Setting, statuses


class SentLabels(Attack):
    """What a defence of labels left of them, row by row in the first round."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.EMBEDDINGS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    settings: ClassVar[frozenset[Setting]] = frozenset({Setting.HORIZONTAL})
    estimates: ClassVar[Literal["labels"]] = "labels"

    @property
    def estimated_round(self) -> Literal["first"]:
        return "first"

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (n, k): the labels as they came."""
        labels = np.concatenate([y for _, y in view.batches()])
        return Estimate(view.target, view.rows, labels, statuses(len(labels)))
