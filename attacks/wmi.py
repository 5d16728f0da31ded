"""White-box model inversion: the input whose embedding comes nearest to the one received (FedAdOb, WMI).

Step 2 of CAFE (Jin et al., 2021), from several starts. Needs the target's bottom model and its embeddings in
prediction.
"""

from copy import deepcopy
from dataclasses import replace
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
from pydantic import Field, model_validator
from torch import nn

from vflens.attacks.helpers.networks.embeddings import EmbeddingsAttack, sent_batches
from vflens.attacks.helpers.networks.inversion import Inversion, target_model
from vflens.attacks.helpers.networks.passports import GuessedPassport, behind, drawn
from vflens.models.networks.parameters import from_arrays
from vflens.plugins.declared import Declared, Stated
from vflens.plugins.views.horizontal import ServerView
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, statuses

Start: TypeAlias = Literal["spread", "half", "zero", "granted"]


#: Settings that are read with some values of ``passport`` only.
_READ_WITH = {"layer": ("random", "joint"), **dict.fromkeys(("order", "largest_mean", "sigma"), ("random",))}


class WhiteBoxInversion(EmbeddingsAttack, Inversion):
    """G is the disclosed bottom model; it is inverted from ½, 0 and points drawn in the box, the same for all
    rows, or each row from the granted rows of nearest embedding.

    FedAdOb's own attack is ``start = "zero"``, ``smoothness = 0.1`` that is ``absolute``, ``box = false``.

    A passport around one of its layers is ignored, guessed (its keys and its autoencoder drawn anew), or its
    γ and β are learned together with x: one pair for all rows, which are then no longer estimated one by one.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.EMBEDDINGS, Knowledge.PARAMETERS, Knowledge.ARCHITECTURE, Knowledge.METADATA}
    )
    stated: ClassVar[Stated | None] = Stated(key_guess={"passport": "random"})

    start: Start = Field(
        "spread",
        description="½, 0 and points drawn in the box, as many as `starts`; one of the two alone; or each "
        "row's nearest granted rows, as many as `starts`",
    )
    passport: Literal["none", "random", "joint"] = Field(
        "none", description="γ = 1 and β = 0; a passport drawn at random; or γ and β learned with x"
    )
    layer: str | None = Field(
        None,
        coerce_numbers_to_str=True,
        description="the layer behind the passport; default: the last convolution, else the last linear",
    )
    order: Literal["paper", "pool_first"] = Field(
        "paper", description="random: autoencoder, then average over an image's places; or the average first"
    )
    largest_mean: float = Field(10.0, gt=0, allow_inf_nan=False, description="random: N of the drawn keys")
    sigma: float = Field(1.0, ge=0, allow_inf_nan=False, description="random: σ of the drawn keys")

    @model_validator(mode="after")
    def _settings_are_read(self) -> Self:
        for name, passports in _READ_WITH.items():
            value = getattr(self, name)
            if self.passport not in passports and value != type(self).model_fields[name].default:
                raise ValueError(
                    f"{name} = {value!r}: passport = {self.passport!r} does not read it, leave it out, or "
                    f"set passport = {' or '.join(map(repr, passports))}"
                )
        return self

    @model_validator(mode="after")
    def _sent_embeddings_have_no_passport(self) -> Self:
        if self.estimated_round and self.passport != "none":
            raise ValueError(
                f'passport = {self.passport!r} with embeddings = "sent": SplitFed averages bottom models, '
                "which have no passport, leave it out"
            )
        return self

    @model_validator(mode="after")
    def _joint_has_one_start(self) -> Self:
        if self.start == "granted" and self.passport == "joint":
            raise ValueError(
                'start = "granted" gives each row starts of its own, passport = "joint" all rows one: leave '
                "one of them out"
            )
        return self

    def declared(self) -> Declared:
        """With ``start = "granted"`` also granted rows, and with embeddings of a round its update."""
        found = super().declared()
        granted = {Knowledge.AUXILIARY} if self.start == "granted" else set()
        update = {Knowledge.GRADIENTS} if self.estimated_round else set()
        return replace(found, needs=found.needs | granted | update)

    def check(self, bottom: nn.Module) -> None:
        """See :meth:`vflens.plugins.attack.Attack.check`: ``layer`` is one of the model's, if it is used."""
        if self.passport != "none":
            behind(bottom, self.layer, GuessedPassport)

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); extra "residual" (N,): ‖G(x̂) − H‖. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.
        """
        model, points = target_model(view), self._points(view, rng)
        if isinstance(view, ServerView) and self.estimated_round:
            return self._of_batches(view, model, points)
        from_arrays(model, view.target_network())
        if self.passport == "joint":
            return self._learned(view, behind(model, self.layer, GuessedPassport), points)
        if self.passport == "random":
            drawn_as = (self.largest_mean, self.sigma, self.order, rng)
            model = behind(model, self.layer, lambda layer: drawn(layer, *drawn_as))
        return self.inverted(view, model, points)

    def _of_batches(self, view: ServerView, model: nn.Module, points: Array) -> Estimate:
        """Each batch of a round through the bottom model that it met."""
        ends = []
        for parameters, h in sent_batches(view):
            from_arrays(model, parameters)
            ends.append(self.ends(h, view.metadata(), model, points, progress=view.progress))
        x, residual = (np.concatenate(part) for part in zip(*ends, strict=True))
        return Estimate(view.target, view.rows, x, statuses(len(x)), extras={"residual": residual})

    def _points(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        """Where the descents begin (m, d)."""
        if self.start == "granted":
            return view.auxiliary()[1]
        width = len(view.metadata())
        if self.start != "spread":
            return np.full((1, width), {"half": 0.5, "zero": 0.0}[self.start])
        points = rng.random((self.starts, width))
        points[:2] = np.array([[0.5], [0.0]])[: self.starts]
        return points

    def _learned(self, view: AdversaryView, model: nn.Module, points: Array) -> Estimate:
        """γ and β are one for all rows, and so is the start: that of the least sum of squared residuals."""
        tried = []
        for point in points:
            fresh = deepcopy(model)
            learned = [p for name, p in fresh.named_parameters() if name.endswith(("scale", "shift"))]
            tried.append(self.inverted(view, fresh, point[None], learned))
        return min(tried, key=lambda e: float((e.extras["residual"] ** 2).sum()))
