"""Randomised response on the labels, drawn once per run, before anything is trained on them.

ε-label differential privacy for all that follows, however many exchanges (Ghazi et al., 2021: RR without a
prior, RRWithPrior with one).
"""

import math
from collections.abc import Mapping

import numpy as np
from pydantic import Field

from vflens.errors import ConfigError
from vflens.numerics.discrete_noise import fresh_words
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Claim, Owner
from vflens.words import counted


class LabelDP(Defense):
    """A row keeps its label with probability e^ε/(e^ε + m − 1); else it gets one of the others, uniformly.

    Without ``prior`` all k classes are answers, m = k. With it only the m likeliest are, and a row of another
    class gets one of these, uniformly. m is the number that keeps most labels under the prior.
    """

    epsilon: float = Field(1.0, gt=0, le=700, description="ε of the label differential privacy")
    prior: tuple[float, ...] | None = Field(
        None,
        description="what is public of the classes' shares, one for each, of sum 1; never computed from the "
        "labels that it protects",
    )

    def check(self, party: str, n_classes: int) -> None:
        """See :meth:`vflens.plugins.defense.Defense.check`.

        Raises:
            ConfigError: ``prior`` is no distribution over the classes.
        """
        prior = self.prior
        if prior is not None and not (
            len(prior) == n_classes and min(prior) >= 0 and abs(sum(prior) - 1) <= 1e-6
        ):
            raise ConfigError(
                f"label_dp at {party!r}: prior = {list(prior)} must have one share for each of the "
                f"{counted(n_classes, 'class')}, none below 0, of sum 1"
            )

    def fit(self, owner: Owner, rng: np.random.Generator) -> Mapping[str, Array]:
        """Nothing; refuses what :meth:`check` does."""
        self.check(owner.name, owner.n_classes)
        return {}

    def on_labels(self, y: Array, ctx: Context) -> Array:
        """One-hot rows (n, k) of the drawn labels; of ``y`` only the arg-max counts."""
        n, k = y.shape
        answers = self._answers(k)
        m = len(answers)
        rng = ctx.stream()
        moves = np.where(fresh_words(rng, n)() < self._kept(max(m, 2)), 0, rng.integers(1, max(m, 2), n))
        place = np.full(k, -1)
        place[answers] = np.arange(m)
        own = place[y.argmax(axis=1)]
        drawn = np.where(own < 0, rng.integers(0, m, n), (own + moves) % m)
        return np.eye(k)[answers[drawn]]

    def _answers(self, k: int) -> Array:
        """The classes that a row may get, (m,): of equally likely ones the first."""
        if self.prior is None:
            return np.arange(k)
        likeliest = np.argsort(-np.asarray(self.prior), kind="stable")
        covered = np.cumsum(np.asarray(self.prior)[likeliest])
        kept = covered / (1 + np.arange(k) * math.exp(-self.epsilon))  # e^ε/(e^ε + m − 1) of what m cover
        return np.sort(likeliest[: 1 + int(kept.argmax())])

    def _kept(self, m: int) -> int:
        """How many of 2⁶⁴ words keep the label: rounded down, so that float64 adds nothing to ε."""
        others = (m - 1) * math.exp(-self.epsilon)
        return 2**64 - math.ceil(2**64 * others / (1 + others) * (1 + 2.0**-48))

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """ε for each row's label over the whole run: it is drawn once."""
        return Claim(epsilon=self.epsilon, delta=0.0)
