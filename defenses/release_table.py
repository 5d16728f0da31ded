"""Release the party's table once under optimal noise; all that leaves the party is then made from it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal

import numpy as np
from pydantic import Field, FiniteFloat, model_validator

from vflens.errors import ConfigError
from vflens.plugins.defense import Context, Defense
from vflens.table_noise.bounded import Bounded
from vflens.table_noise.bounds import bounds
from vflens.table_noise.mechanisms import Gaussian, Laplace, Mechanism
from vflens.table_noise.moments import TableMoments
from vflens.table_noise.parameters import identity_pi
from vflens.table_noise.preserving import preserving_noise
from vflens.types import Array, Claim, Owner


class ReleaseTable(Defense):
    """x̄ = x + n on columns scaled to [0, 1] (FAR): the active party gets x̄ and this party's model works on
    it.

    Nothing else leaves: embeddings are functions of x̄. The noise is a function of the party's secret, of the
    run, of these settings and of the table, so that no two releases share draws whose difference would show
    it.
    """

    mechanism: Literal["gaussian", "laplace", "bounded", "correlated"] = "gaussian"
    lam: FiniteFloat = Field(
        100.0, gt=0, le=1e40, description="all but correlated: weight of utility; Gaussian deviation λ^-¼"
    )
    low: FiniteFloat = Field(-0.5, description="bounded: least noise")
    high: FiniteFloat = Field(0.5, description="bounded: largest noise")
    m: FiniteFloat = Field(0.1, gt=0, description="correlated: variance of the noise before projection")
    theta: FiniteFloat = Field(1.0, gt=0, description="correlated: the SVM's weight of slacks")
    rho: FiniteFloat = Field(0.01, gt=0, description="correlated: the SVM's weight of squares")

    @model_validator(mode="after")
    def _box_is_not_empty(self) -> ReleaseTable:
        if not self.low < self.high:
            raise ValueError(f"low = {self.low} and high = {self.high}: low must be below high")
        return self

    @property
    def needs_labels(self) -> bool:
        """Correlated noise keeps the classifier of the owner's own labels."""
        return self.mechanism == "correlated"

    def check(self, party: str, n_classes: int) -> None:
        """See :meth:`vflens.plugins.defense.Defense.check`.

        Raises:
            ConfigError: correlated noise, and the owner's labels are not of two classes.
        """
        if self.mechanism == "correlated" and n_classes != 2:
            raise ConfigError(
                f"release_table at {party!r}: correlated noise keeps a classifier of two classes, and "
                f"data.label_column holds {n_classes}"
            )

    def fit(self, owner: Owner, rng: np.random.Generator) -> Mapping[str, Array]:
        """By cell on average: the Cramér–Rao bound and the error of the best linear estimate."""
        x = np.zeros((0, 0)) if owner.features is None else owner.features
        if not x.size:
            return {}
        found = bounds(self._mechanism(x, owner), TableMoments.of(x))
        return {"bound": found.cramer_rao.mean(), "linear": found.linear.mean()}

    def on_inputs(self, x: Array, ctx: Context) -> Array:
        """X̄: the party's own model sees no more than the others."""
        return self._noisy(x, ctx)

    def on_dataset(self, x: Array, ctx: Context) -> Array:
        """X̄, the same as for the model."""
        return self._noisy(x, ctx)

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """The deviation of Gaussian noise; of the table that ``state`` was fitted to, its error bounds."""
        return Claim(
            noise_std=self.lam**-0.25 if self.mechanism == "gaussian" else None,
            error_bound=float(state["bound"]) if "bound" in state else None,
            linear_error=float(state["linear"]) if "linear" in state else None,
        )

    def _noisy(self, x: Array, ctx: Context) -> Array:
        if not x.size:
            return x
        digest = hashlib.blake2b(np.ascontiguousarray(x).data, digest_size=32).hexdigest()
        key = ctx.key(self.model_dump_json(), digest)
        return self._mechanism(x, ctx.owner).release(x, 0, key)

    def _mechanism(self, x: Array, owner: Owner) -> Mechanism:
        pi = identity_pi(x.shape[1])
        if self.mechanism == "gaussian":
            return Gaussian(pi, self.lam)
        if self.mechanism == "laplace":
            return Laplace(pi, self.lam)
        if self.mechanism == "bounded":
            return Bounded(np.full(len(pi), self.low), np.full(len(pi), self.high), pi, self.lam)
        labels = np.zeros(0) if owner.labels is None else owner.labels
        classes = np.unique(labels)
        self.check(owner.name, len(classes))  # of the aligned rows
        y = np.where(labels == classes[1], 1.0, -1.0)
        return preserving_noise(x, y, theta=self.theta, rho=self.rho, m=self.m)[0]
