"""LiRA: a candidate's confidence beside that of models trained with it and without it.

Carlini et al. (2022), algorithm 1. The server trains shadow models of the clients' kind on halves of the
candidates, whose features and labels it was granted: as long as the client trained, but on fewer rows, and
without the other clients. The closer these models are to the client's, the better the attack.
"""

from dataclasses import replace

import numpy as np
from pydantic import Field, field_validator

from vflens.attacks.helpers.people.membership import MembershipAttack, site_of
from vflens.models.alone import train_alone
from vflens.numerics.membership import online_scores, scaled_confidences, shadow_members
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array

_FEW = 64  # shadow models: below it one variance for all rows is better estimated (§VI.C)


class LiRA(MembershipAttack):
    """ln N(φ; μ_in, σ²_in) − ln N(φ; μ_out, σ²_out) of φ = ln(p_y/(1 − p_y)), laws fitted to shadow models.

    Each candidate is in half of them.
    """

    models: int = Field(16, ge=4, le=256, description="shadow models, an even number")

    @field_validator("models")
    @classmethod
    def _even(cls, models: int) -> int:
        if models % 2:
            raise ValueError(f"models = {models}: each candidate is in half of them, give an even number")
        return models

    def scores(self, view: ServerView, answers: Array, x: Array, y: Array, rng: np.random.Generator) -> Array:
        """Log-likelihood ratios (n,); see :meth:`MembershipAttack.scores`."""
        run, members = view.agreement, shadow_members(self.models, len(x), rng)
        training = run.training.model_copy(update={"epochs": run.local_passes})
        shadows = np.empty(members.shape)
        for number, inside in enumerate(members):
            site = site_of(view, rng)
            rows = np.flatnonzero(inside).astype(np.int32)
            site = replace(site, training=training)
            ask = train_alone(run.model, site, x.__getitem__, y, rows, rng=rng)
            shadows[number] = scaled_confidences(ask(np.arange(len(x))), y)
            view.progress("shadow models", number + 1, self.models)
        observed = scaled_confidences(answers, y)
        return online_scores(observed, shadows, members, pooled=self.models < _FEW)
