"""What every measurement of an audit shares: the plan, the rows that are attacked and known, the attacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from vflens.errors import ConfigError, KnowledgeError
from vflens.experiments.audit.models import World
from vflens.experiments.audit.subject import Subject
from vflens.numerics.estimators.combinations import halves
from vflens.plugins.attack import Attack
from vflens.randomness import secret_from_seed, stream
from vflens.registry import ATTACKS
from vflens.types import Array, Document, Knowledge

#: Those of them that are installed run. The blind guesses stand beside them.
_ATTACKS = ("lmmse", "mean_star", "finite_alphabet", "rcc1", "rcc2", "half_star", "ls", "black_box")
#: Attacks that take milliseconds a row (RCC1 where it is not certified) see so many rows of each model.
FEW_ROWS: Mapping[str, int] = {"rcc1": 20}
_SETTINGS: Mapping[str, Document] = {"black_box": {"signs": "unknown", "population_mean": "disclosed"}}


@dataclass(frozen=True)
class Plan:
    """What the audit assumes and what the party wants.

    ``models`` of each kind, ``known`` rows in the adversary's hands, at most ``rows`` used, ``seed``; an
    error of at least ``least_error`` (None: ``.8`` of the best blind guess's) at an accuracy loss of at most
    ``most_loss``.
    """

    models: Annotated[int, Field(ge=1, le=1000)] = 10
    known: Annotated[int, Field(ge=0)] = 50
    rows: Annotated[int, Field(ge=10)] = 1000
    seed: Annotated[int, Field(ge=0)] = 0
    least_error: Annotated[float, Field(ge=0, le=1)] | None = None
    most_loss: Annotated[float, Field(ge=0, le=1)] = 0.01

    def rng(self, *names: str | int) -> np.random.Generator:
        """The generator for what is called ``names``."""
        return stream(secret_from_seed(self.seed), "audit", *names)


@dataclass(frozen=True, eq=False)
class Bench:
    """A sampled subject, the ``rows`` int32 that are attacked and those ``known`` to the adversary."""

    subject: Subject
    plan: Plan
    rows: Array
    known: Array

    @classmethod
    def set_up(cls, subject: Subject, plan: Plan) -> Bench:
        """Draw the rows.

        Raises:
            ConfigError: too many are known to leave two.
        """
        subject = subject.sample(plan.rows, plan.rng("rows"))
        if plan.known > len(subject.x) - 2:
            raise ConfigError(
                f"--known {plan.known}: {subject.name} has {len(subject.x)} rows here and at least 2 must be "
                "left to attack, give fewer"
            )
        order = plan.rng("known").permutation(len(subject.x)).astype(np.int32)
        return cls(subject, plan, np.sort(order[plan.known :]), np.sort(order[: plan.known]))

    @property
    def truth(self) -> Array:
        """The attacked rows (n, d)."""
        attacked: Array = self.subject.x[self.rows]
        return attacked

    @cached_property
    def blind(self) -> dict[str, float]:
        """MSE per feature of the guesses that need no attack; "random" in expectation."""
        x = self.truth
        return {
            "zero": float((x**2).mean()),
            "half": float(((x - 0.5) ** 2).mean()),
            "random": float((x**2 - x + 1 / 3).mean()),
            "column_means": float(((x - x.mean(axis=0)) ** 2).mean()),
        }

    @property
    def blind_guess(self) -> str:
        """The best of them."""
        return min(self.blind, key=lambda name: self.blind[name])

    @cached_property
    def attacks(self) -> dict[str, Attack]:
        """The installed ones that fit the columns and what the adversary knows."""
        found: dict[str, Attack] = {}
        for name in (n for n in _ATTACKS if n in ATTACKS.names()):
            attack: Any = ATTACKS.get(name)
            fits = attack.unknown_columns in (None, len(self.subject.columns))
            informed = len(self.known) >= 2 or Knowledge.MOMENTS not in attack.needs
            if fits and informed:
                found[name] = attack(**_SETTINGS.get(name, {}))
        alphabets = [np.array(c.alphabet) for c in self.subject.columns if c.alphabet]
        search: Any = found.get("finite_alphabet")
        if search and not (alphabets and halves(alphabets, search.budget)):
            del found["finite_alphabet"]  # it would fall back to rcc2
        return found

    def estimates(
        self, world: World, kind: str, model: int, *, slow: bool = True
    ) -> Iterator[tuple[str, Array, Array]]:
        """Each attack's name, the rows that it sees and their estimates (n, d); those that lack knowledge are
        left out, unless ``slow`` the slow ones too.
        """
        rng = self.plan.rng("attack", kind, model)
        for name, attack in self.attacks.items():
            if name in FEW_ROWS and not slow:
                continue
            rows = self.rows[: FEW_ROWS.get(name)]
            try:
                yield name, rows, world.attack(attack, rows, self.known, rng).values
            except KnowledgeError:
                continue
