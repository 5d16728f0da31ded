"""FedAdOb's passport: a layer's scale and shift follow from secret keys that are redrawn each batch.

Split networks only (the extra ``deep``). Keys and autoencoder never leave their owner.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator
from torch import nn

from vflens.errors import ConfigError
from vflens.models.networks.passport import (
    PassportLayer,
    open_layers,
    passport_place,
    with_passport,
    without_norm,
)
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim, Role


class Passport(Defense):
    """out = γ ⊙ (W ∗ x) + β with γ, β = Avg(D(E(W ∗ s))); see :mod:`vflens.models.networks.passport`.

    At a passive party around the last convolution (else the last linear layer) of the bottom model, at the
    active party around the first linear layer of the top (FedAdOb, appendix A.4.1); ``layer`` chooses
    another. A layer has one passport: a second one at the same party goes around the next of these that has
    none.
    """

    largest_mean: float = Field(
        10.0, gt=0, allow_inf_nan=False, description="N: means of the keys are drawn from U(−N, 0)"
    )
    sigma: float = Field(1.0, ge=0, allow_inf_nan=False, description="σ, the keys' spread around their means")
    mean: Literal["once", "each"] = Field(
        "once", description="draw the means once per training, or with every batch"
    )
    order: Literal["paper", "pool_first"] = Field(
        "paper", description="autoencoder, then average over an image's places; or the average first"
    )
    keys: Literal["redrawn", "fixed"] = Field(
        "redrawn", description="new keys with every batch, or one pair for training and predictions"
    )
    normalise: Literal["none", "authors"] = Field(
        "none",
        description="as the paper prints the layer; or as its authors' code has it: a batch norm before a "
        "convolution's γ and β, tanh of a linear layer's",
    )
    layer: str | None = Field(
        None, coerce_numbers_to_str=True, description="name of the layer, such as `4`; default: see above"
    )

    @model_validator(mode="after")
    def _fixed_keys_have_fixed_means(self) -> "Passport":
        if self.keys == "fixed" and self.mean == "each":
            raise ValueError("mean = 'each' with keys = 'fixed': fixed keys are drawn once, leave mean out")
        return self

    def wrap_model(self, m: nn.Module, ctx: Context) -> nn.Module:
        """``m`` with one of its layers behind a passport.

        Raises:
            ConfigError: the model has no such layer, or it has a passport already.
        """
        place = self.layer or passport_place(m, at_top=ctx.owner.role is Role.ACTIVE)
        layers = open_layers(m)
        if place is None:
            raise ConfigError(
                f"passport at {ctx.owner.name!r} finds no layer of its model without a passport: leave it out"
            )
        if place not in layers:
            raise ConfigError(
                f"passport layer {place!r} at {ctx.owner.name!r} is no linear or convolution layer of its "
                f"model without a passport: name one of {list(layers)}"
            )
        passport = PassportLayer(
            layers[place],
            largest_mean=self.largest_mean,
            sigma=self.sigma,
            redraw_means=self.mean == "each",
            order=self.order,
            rng=ctx.stream(),
            keys=self.keys,
            normalise=self.normalise,
        )
        without_norm(m, place)
        return with_passport(m, place, passport)

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """What FedAdOb's Theorem 1 rests on: the variance N²/12 + σ² of a number of the key, of the keys
        alone.

        In the theorem's setting (H = W(x + s), W of full column rank and known, a guess of s independent of
        all that was observed) the input then errs as the guess does. This layer scales too and passes its
        keys through an autoencoder, and who was granted rows does not guess γ and β but estimates them: of
        inputs and of such adversaries nothing is claimed.
        """
        return Claim(key_error=self.largest_mean**2 / 12 + self.sigma**2, key_range=self.largest_mean)
