"""Shared by all measurements of an audit: the plan, the attacked and the known rows, the attacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from vflens.errors import ConfigError, KnowledgeError, PluginError
from vflens.experiments.audit.models import World, simulate, simulate_several
from vflens.experiments.audit.subject import FEWEST_ROWS, AuditSubject, check_rows
from vflens.models.stacked import MOST, side_by_side
from vflens.numerics.estimators.affine import after_affine_map
from vflens.plugins.attack import FAIR_GUESS, Attack, installed_attack, knowing
from vflens.plugins.declared import Audited
from vflens.randomness import secret_from_seed, stream
from vflens.registry import ATTACKS, Registry
from vflens.storage.json_file import Share
from vflens.types import Array, Facts, Knowledge, Phase, Progress, Setting

#: Receives what runs now, before it does.
Tell: TypeAlias = Callable[[str], None]

#: Of attacks on training in the clear: their work grows with the cube of the columns, minutes from here on.
MOST_COLUMNS = 128
FEW_COLUMNS = 16
_MOST_LEAK = 0.2
_CELLS, _KEPT = 2_000_000, 3  # of models made side by side; so many times as many are kept
#: What the adversary of an audit has: scores, disclosed parameters, some rows, and its own data.
KNOWN = frozenset(
    {
        *(Knowledge.SCORES, Knowledge.PARAMETERS, Knowledge.OWN_FEATURES, Knowledge.OWN_LABELS),
        *(Knowledge.AUXILIARY, Knowledge.MOMENTS, Knowledge.METADATA),
    }
)


@dataclass(frozen=True)
class Wanted:
    """What a party asks for: ``most_leak`` of a column or ``least_error`` over all, the other is None; and
    what a defence may cost, ``most_loss``.
    """

    most_leak: Share | None
    least_error: Share | None
    most_loss: Share

    def __post_init__(self) -> None:
        if (self.most_leak is None) == (self.least_error is None):
            raise ValueError("most_leak, least_error: one of them is asked for")

    def keeps(self, mse: float, leak: float) -> bool:
        """Whether an error and the largest leak of a column are what the party asks for."""
        if self.least_error is not None:
            return mse >= self.least_error
        return self.most_leak is not None and leak <= self.most_leak


@dataclass(frozen=True)
class Plan:
    """The audit's assumptions and the party's aims.

    ``models`` of each kind, ``known`` rows in the adversary's hands, at most ``rows`` used, ``seed``. No
    attack may take more than ``most_leak`` of what a blind guess leaves open of any column (None: .2); or
    instead of that all err by at least ``least_error`` over all columns. A defence may cost ``most_loss`` of
    the AUC of two classes, of R² of a number, else of accuracy. ``training`` "clear": whoever receives its
    messages reads them; "secure": nobody does. ``tolerance``: column → how far from the truth, in its own
    unit, an answer counts as found. ``slow_rows``: of each model a slow attack tries at most so many rows;
    None: as many as it declares.
    """

    models: Annotated[int, Field(ge=1, le=1000)] = 10
    known: Annotated[int, Field(ge=0)] = 50
    rows: Annotated[int, Field(ge=FEWEST_ROWS)] = 1000
    seed: Annotated[int, Field(ge=0)] = 0
    most_leak: Share | None = None
    least_error: Share | None = None
    most_loss: Share = 0.01
    training: Literal["clear", "secure"] = "clear"
    tolerance: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = field(default_factory=dict)
    slow_rows: Annotated[int, Field(ge=1)] | None = None

    def wanted(self) -> Wanted:
        """What the party asks for.

        Raises:
            ConfigError: it asks for both.
        """
        if self.most_leak is not None and self.least_error is not None:
            raise ConfigError("most_leak and least_error are two thresholds for the same: state one")
        leak = _MOST_LEAK if self.most_leak is None else self.most_leak
        return Wanted(leak if self.least_error is None else None, self.least_error, self.most_loss)

    def stated(self, key: str, value: object) -> str:
        """How ``value`` of ``key`` is stated where this plan came from, in words."""
        return f"{key} = {value!r} in [audit] of a description"

    def rng(self, *names: str | int) -> np.random.Generator:
        """The generator for what is called ``names``."""
        return stream(secret_from_seed(self.seed), "audit", *names)


class Answer(NamedTuple):
    """What ``attack`` submits for ``rows`` int32 (n,): ``values`` (n, d), which may lie outside the box."""

    attack: str
    rows: Array
    values: Array

    @property
    def inside(self) -> Array:
        """The values moved into the box, where the truth is: they are scored, as a target scores them."""
        inside: Array = np.clip(self.values, 0, 1)
        return inside


@dataclass(frozen=True, eq=False)
class Bench:
    """A sampled subject, the ``rows`` int32 that are attacked and those ``known`` to the adversary."""

    subject: AuditSubject
    plan: Plan
    rows: Array
    known: Array
    failed: dict[str, str] = field(default_factory=lambda: broken(ATTACKS))  # attacks, and what they raised
    read: dict[bytes, list[Answer]] = field(default_factory=dict)  # see of_training
    made: dict[tuple[str, int], World] = field(default_factory=dict)  # see worlds

    @classmethod
    def set_up(cls, subject: AuditSubject, plan: Plan) -> Bench:
        """Draw the rows.

        Raises:
            DataError: too many are known to leave two.
        """
        subject = subject.sample(plan.rows, plan.rng("rows"))
        check_rows(subject.name, len(subject.x), plan.known, plan.stated("known", len(subject.x) // 2))
        order = plan.rng("known").permutation(len(subject.x)).astype(np.int32)
        return cls(subject, plan, np.sort(order[plan.known :]), np.sort(order[: plan.known]))

    @property
    def names(self) -> list[str]:
        """The subject's columns."""
        return [c.name for c in self.subject.columns]

    @property
    def categories(self) -> dict[str, list[str]]:
        """The columns of the file that became one-hot columns, and these."""
        named = {name: [self.names[j] for j in places] for name, places in self.subject.whole}
        return {name: of for name, of in named.items() if of != [name]}

    @cached_property
    def truth(self) -> Array:
        """The attacked rows (n, d)."""
        return self.subject.x[self.rows]

    @cached_property
    def blind(self) -> dict[str, float]:
        """MSE per feature of blind guesses; "random" in expectation."""
        return blind_errors(self.truth, self.guesses(self.rows))

    @property
    def blind_guess(self) -> str:
        """The best of them."""
        return min(self.blind, key=self.blind.__getitem__)

    def world(self, kind: str, model: int) -> World:
        """One of the simulated models of a ``kind``, made beside others of the plan."""
        several = next(of for of in side_by_side(self.plan.models, self.together) if model in of)
        return self.worlds(kind, several)[model - several.start]

    def worlds(self, kind: str, models: range) -> list[World]:
        """The simulated ``models`` of a ``kind``; the last ones are kept, as memory allows."""
        new = [i for i in models if (kind, i) not in self.made]
        made = simulate_several(self.subject, kind, [self.plan.rng(kind, i) for i in new])
        self.made.update({(kind, i): world for i, world in zip(new, made, strict=True)})
        found = [self.made[kind, i] for i in models]
        while len(self.made) > _KEPT * self.together:
            del self.made[next(iter(self.made))]
        return found

    @property
    def together(self) -> int:
        """How many models are made side by side, as memory allows."""
        return min(MOST, max(1, _CELLS // self.subject.x.size))

    @cached_property
    def _imputed(self) -> Array | None:
        """What the active party's own columns say of all rows (n, d), learnt from the known ones; None where
        the audit has no such columns, or too few rows are known.
        """
        kind = installed_attack(FAIR_GUESS)
        if self.subject.other is None or kind is None or not self._informs(kind):
            return None
        world = simulate(self.subject, "random", self.plan.rng(FAIR_GUESS))
        everything = np.arange(len(self.subject.x), dtype=np.int32)
        return world.attack(kind(), everything, self.known, self.plan.rng(FAIR_GUESS)).values

    def guesses(self, rows: Array) -> dict[str, Array]:
        """The blind guesses (n, d) of ``rows`` that are learnt from known rows, by name: one or none."""
        return {} if self._imputed is None else {FAIR_GUESS: self._imputed[rows]}

    @cached_property
    def attacks(self) -> dict[str, Attack]:
        """The installed ones that fit the columns and what the adversary knows."""
        return self._fitting(Phase.PREDICT)

    @cached_property
    def training_attacks(self) -> dict[str, Attack]:
        """The same of those that read training in the clear; {} where nobody can, or the columns are many."""
        clear = self.plan.training == "clear" and len(self.subject.columns) <= MOST_COLUMNS
        return self._fitting(Phase.TRAIN) if clear else {}

    def _fitting(self, phase: Phase) -> dict[str, Attack]:
        found = {name: kind(**of.settings) for name, kind, of in audited(phase) if self._informs(kind)}
        return {name: attack for name, attack in found.items() if attack.suits(self.subject.columns)}

    def _informs(self, kind: type[Attack]) -> bool:
        """Whether its rows are enough for what ``kind`` needs."""
        return len(self.known) >= 2 or not kind.needs & {Knowledge.MOMENTS, Knowledge.AUXILIARY}

    @cached_property
    def _knowing(self) -> dict[str, frozenset[str]]:
        return knowing(Setting.VERTICAL, linear=True)

    def made_for(self, defense: str) -> list[str]:
        """The installed attacks behind linear models that know how ``defense`` works."""
        return [name for name, known in self._knowing.items() if defense in known]

    def knowing(self, defense: str, settings: Facts) -> dict[str, Attack]:
        """The attacks :meth:`made_for` ``defense`` that the adversary has enough for, told those of its
        ``settings`` that they have too.
        """
        clear = frozenset({Knowledge.EMBEDDINGS} if self.plan.training == "clear" else ())
        kinds = {name: installed_attack(name) for name in self.made_for(defense)}
        return {
            name: kind(**{key: value for key, value in settings.items() if key in kind.model_fields})
            for name, kind in kinds.items()
            if kind and kind.needs <= KNOWN | clear and self._informs(kind)
        }

    def estimates(
        self,
        world: World,
        kind: str,
        model: int,
        tell: Tell = lambda name: None,
        *,
        slow: bool = True,
        only: str = "",
        besides: Mapping[str, Attack] | None = None,
    ) -> Iterator[Answer]:
        """What each attack, or the ``only`` one, and those ``besides`` say of the rows that they see; those
        that lack knowledge or fail are left out, unless ``slow`` the slow ones too.
        """
        for name, attack in {**self.attacks, **(besides or {})}.items():
            most = attack.audited.rows if attack.audited else None
            if (most is not None and not slow) or only not in ("", name):
                continue
            tried = self.rows[: most and (self.plan.slow_rows or most)]
            yield from self._estimated(world, (name, attack), tried, (kind, model), tell)

    def of_training(self, world: World, model: int, tell: Tell = lambda name: None) -> list[Answer]:
        """The same of attacks on the messages of training of a trained ``world``, of its training rows but
        those known.

        Where an attack leaves an affine map open, half of the rows give the best one, and the others stand
        here. Worlds that trained alike, as under a defence of predictions, are attacked once. Of more than 16
        columns one model is: it takes seconds.
        """
        if model and len(self.subject.columns) > FEW_COLUMNS:
            return []
        if world.training not in self.read:
            rows = np.setdiff1d(world.trained, self.known)
            self.read[world.training] = [
                found
                for named in self.training_attacks.items()
                for found in self._estimated(world, named, rows, ("training", model), tell)
            ]
        return self.read[world.training]

    def _estimated(
        self, world: World, named: tuple[str, Attack], rows: Array, draws: tuple[str, int], tell: Tell
    ) -> Iterator[Answer]:
        """What one attack says of ``rows``; nothing where it lacks knowledge or fails."""
        name, attack = named
        tell(name)
        rng = self.plan.rng("attack", *draws, name)

        def steps(stage: str, done: int, total: int) -> None:
            tell(f"{name}, {stage} {done}/{total}")

        try:
            values = world.attack(attack, rows, self.known, rng, steps).values
        except KnowledgeError:
            return
        except PluginError as error:
            self.failed[name] = str(error).partition("\n")[0]
            return
        if attack.up_to_affine:
            rows, values = rows[1::2], after_affine_map(values, self.subject.x[rows])
        yield Answer(name, rows, values)


def running(progress: Progress, stage: str, done: int, total: int) -> Tell:
    """What says of a ``stage``, ``done`` of whose ``total`` parts are done, what of it runs now."""
    return lambda what: progress(f"{stage}: {what}", done, total)


def blind_errors(x: Array, learnt: Mapping[str, Array]) -> dict[str, float]:
    """MSE per feature of blind guesses at ``x`` (n, d), ``learnt`` ones too; "random" in expectation."""
    return {
        "zero": float((x**2).mean()),
        "half": float(((x - 0.5) ** 2).mean()),
        "random": float((x**2 - x + 1 / 3).mean()),
        "column_means": float(((x - x.mean(axis=0)) ** 2).mean()),
        **{name: float(((guess - x) ** 2).mean()) for name, guess in learnt.items()},
    }


def broken(registry: Registry) -> dict[str, str]:
    """The installed plug-ins that cannot be imported, and why; not our own of torch, which no audit runs."""
    found = {}
    for name in registry.without("torch"):
        try:
            registry.get(name)
        except ConfigError:
            continue
        except PluginError as error:
            found[name] = str(error).partition("\n")[0]
    return found


def audited(phase: Phase) -> Iterator[tuple[str, type[Attack], Audited]]:
    """Name, class and declaration of every installed attack that an audit can run.

    It estimates columns from what the adversary has: of PREDICT rows, or of TRAIN rows from the messages of
    training in the clear. What needs nothing is a blind guess, beside which the others stand.
    """
    clear = frozenset({Knowledge.EMBEDDINGS} if phase is Phase.TRAIN else ())
    for name in ATTACKS.without("torch"):
        kind = installed_attack(name)
        if kind is None or kind.audited is None or kind.estimates != "features":
            continue
        if kind.needs and clear <= kind.needs <= KNOWN | clear and phase in kind.estimated_rows:
            yield name, kind, kind.audited
