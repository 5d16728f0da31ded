"""The file of a sweep: an experiment with a table ``[sweep]``, and the federations that it asks for."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from pydantic import Field, FiniteFloat, StrictBool, StrictInt, TypeAdapter, model_validator

from vflens.config import Name, Plugin, Settings, build_plugins, read_toml, validate
from vflens.errors import ConfigError, PluginError
from vflens.experiments.run.any_experiment import AnyPartiesExperiment, DefenseAt, Scenario
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.loading import experiment_kind, load_as
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.experiments.sweeps.pool import Cell
from vflens.experiments.sweeps.sweep_page import OF_ROUNDS, UNDEFENDED
from vflens.plugins.attack import up_to_affine
from vflens.plugins.defense import installed_defense
from vflens.plugins.malicious import breaks_protocol
from vflens.registry import ATTACKS
from vflens.types import Document, Facts, Phase, Setting

_MOST_SEEDS = 10_000  # each is a cell of every defence

Value: TypeAlias = StrictBool | StrictInt | FiniteFloat | str


class SweptDefense(Plugin):
    """A defence at several strengths; every other key is one of its parameters."""

    at: Name | None = Field(
        None, description="the party that runs it; default in a horizontal sweep: every client"
    )
    vary: str | None = Field(
        None, description="the parameter that is its strength; without one it is swept as it stands"
    )
    values: tuple[FiniteFloat, ...] = Field((), description="its strengths")
    label: str | None = Field(None, description="what plots call it; default: its name")

    @model_validator(mode="after")
    def _strengths_differ(self) -> SweptDefense:
        if bool(self.vary) != bool(self.values):
            raise ValueError("vary and values belong together: give both or neither")
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"values {[*self.values]}: give every strength once, more `seeds` repeat it")
        return self

    @property
    def title(self) -> str:
        """What plots call it."""
        return self.label or self.name

    def at_strength(self, value: float | None, everyone: Sequence[str]) -> list[DefenseAt]:
        """The defence with its parameter set, if one varies, at its party or at each of ``everyone``; a whole
        number stays one.
        """
        parameters = self.parameters
        if self.vary is not None and value is not None:
            parameters[self.vary] = int(value) if float(value).is_integer() else value
        return [DefenseAt(name=self.name, at=p, **parameters) for p in ([self.at] if self.at else everyone)]


class Sweep(Settings):
    """The variations. The undefended federation is always one of the cells."""

    seeds: StrictInt = Field(
        3, ge=1, le=_MOST_SEEDS, description="repetitions; their seeds count up from the experiment's"
    )
    defenses: tuple[SweptDefense, ...] = Field((), description="each at all of its strengths")

    @model_validator(mode="after")
    def _titles_differ(self) -> Sweep:
        titles = [d.title for d in self.defenses]
        if len({*titles, UNDEFENDED}) <= len(titles):
            raise ValueError(f"defenses {titles}: give each its own `label`, other than {UNDEFENDED!r}")
        return self


class HorizontalSweep(Sweep):
    """The variations of a horizontal experiment."""

    horizontal: dict[str, tuple[Value, ...]] = Field(
        {},
        description="several values of settings of `[horizontal]`: all cells under each combination of them",
    )

    @model_validator(mode="after")
    def _values_differ(self) -> HorizontalSweep:
        for name, values in self.horizontal.items():
            if not values or len({*map(repr, values)}) < len(values):
                raise ValueError(f"horizontal.{name} = {[*values]}: give at least one value, and each once")
        return self


class AnySweep(AnyPartiesExperiment):
    """What sweeps of both settings share: a table ``[sweep]``, and no scenarios."""

    trains_once: ClassVar[bool] = False  # whether one training serves all defences that act after it
    attacks: tuple[Plugin, ...] = ()
    sweep: Sweep

    @property
    @abstractmethod
    def everyone(self) -> Sequence[str]:
        """The parties that run a defence which names none."""

    def variants(self) -> Iterator[tuple[Facts, Document]]:
        """What varies beside defences and seeds, as keys of rows, and the settings that it changes."""
        yield {}, {}

    @model_validator(mode="after")
    def _cells_are_simulations(self) -> AnySweep:
        if self.model_fields_set & {"scenarios"}:
            raise ValueError("a sweep makes its own scenarios: remove [[scenarios]]")
        if not self.lab:
            raise ValueError("a sweep is a simulation: lab must be true")
        if not self.attacks:
            raise ValueError("a sweep without [[attacks]] measures nothing: add some")
        for a in self.attacks:
            if up_to_affine(a.name):
                raise ValueError(
                    f"attack {a.name!r} finds columns up to an affine map only: a sweep compares errors, it "
                    "belongs to `vflens run`"
                )
        return self

    @model_validator(mode="after")
    def _defenses_have_parties(self) -> AnySweep:
        for d in self.sweep.defenses:
            if d.at is None and not self.everyone:
                raise ValueError(f"defence {d.title!r} is nowhere: name the party that runs it, at = …")
            if d.at is not None and d.at not in self.roles():
                raise ValueError(
                    f"party {d.at!r} of defence {d.title!r} is none of {', '.join(self.roles())}"
                )
        return self


class SweepFile(Experiment, AnySweep):
    """A vertical experiment with a table ``[sweep]`` and without scenarios."""

    trains_once: ClassVar[bool] = True

    @property
    def everyone(self) -> Sequence[str]:
        """None: vertical parties have different hooks."""
        return ()


class HorizontalSweepFile(HorizontalExperiment, AnySweep):
    """A horizontal experiment with a table ``[sweep]`` and without scenarios."""

    sweep: HorizontalSweep

    @property
    def everyone(self) -> Sequence[str]:
        """The clients."""
        return self.parties.names

    def variants(self) -> Iterator[tuple[Facts, Document]]:
        """See :meth:`AnySweep.variants`: every combination of ``sweep.horizontal``."""
        own = self.horizontal.model_dump(mode="json", exclude_unset=True)
        for values in product(*self.sweep.horizontal.values()):
            varied = dict(zip(self.sweep.horizontal, values, strict=True))
            yield {f"{OF_ROUNDS}{k}": v for k, v in varied.items()}, {"horizontal": own | varied}

    @model_validator(mode="after")
    def _variants_fit(self) -> HorizontalSweepFile:
        kept = _plain(self)
        for varied, changed in self.variants():
            named = ", ".join(f"{name} = {value!r}" for name, value in varied.items())
            if named:
                validate(TypeAdapter(HorizontalExperiment), {**kept, **changed}, f"sweep of {named}")
        return self


_KINDS: Mapping[Setting, type[AnySweep]] = {k.setting: k for k in (SweepFile, HorizontalSweepFile)}


def load_sweep(file: Path) -> AnySweep:
    """The sweep in ``file``; see :func:`vflens.experiments.run.loading.load_experiment`.

    Raises:
        ConfigError: unreadable, not TOML, or a setting that is missing, unknown or out of range.
    """
    return load_as(sweep_kind(read_toml(file)), file)


def sweep_kind(settings: Mapping[str, Any]) -> type[AnySweep]:
    """Which sweep ``settings`` describe: a table ``[horizontal]`` makes it a horizontal one."""
    return _KINDS[experiment_kind(settings).setting]


def cells(sweep: AnySweep) -> list[Cell]:
    """One cell per variant, seed and defence at one strength, the undefended ones first.

    Their keys hold digests of the parties' own files: a resumed sweep never mixes rows of two tables.
    """
    plain, reads_training = _plain(sweep), _reads_training(sweep)
    contents = {name: _digest(spec.file) for name, spec in sweep.files.items()}
    return [
        Cell({"place": place, "experiment": settings, "files": contents}, (place, settings, trains), trains)
        for varied, changed in sweep.variants()
        for title, value, defenses in _strengths(sweep)
        for seed in range(sweep.seed, sweep.seed + sweep.sweep.seeds)
        for place in [{"defense": title, "strength": value, "seed": seed, **varied}]
        for shared in [{**plain, **changed, "seed": seed}]
        for settings in [{**shared, "scenarios": [_scenario(defenses)]}]
        for trains in [
            "" if reads_training or any(map(_trains, defenses)) else _text_digest([shared, contents])
        ]
    ]


def _reads_training(sweep: AnySweep) -> bool:
    """Whether its runs must train to give their rows: an attack reads messages of training or changes them,
    training is on shares, or it is in rounds.
    """
    if not sweep.trains_once or sweep.training.is_protected:
        return True
    try:
        attacks = [attack for _, attack in build_plugins(ATTACKS, sweep.attacks)]
    except (ConfigError, PluginError):  # each cell says so
        return True
    return any(Phase.TRAIN in a.declared().phases or breaks_protocol(type(a)) for a in attacks)


def _trains(defense: DefenseAt) -> bool:
    """Whether another model comes of ``defense``; of one that is not installed each cell says so."""
    kind = installed_defense(defense.name)
    return kind is None or kind.trains()


def _text_digest(facts: Any) -> str:
    return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=12).hexdigest()


def _plain(sweep: AnySweep) -> Document:
    """The settings that all cells share."""
    return sweep.model_dump(mode="json", exclude={"sweep", "scenarios", "out"}, exclude_none=True)


def _strengths(sweep: AnySweep) -> Iterator[tuple[str, float | None, list[DefenseAt]]]:
    """The title of each defence, each of its strengths, and what the parties then run."""
    yield UNDEFENDED, 0.0, []
    for d in sweep.sweep.defenses:
        yield from ((d.title, value, d.at_strength(value, sweep.everyone)) for value in d.values or (None,))


def _scenario(defenses: Sequence[DefenseAt]) -> Document:
    return Scenario(name="cell", defenses=tuple(defenses)).model_dump(mode="json")


def _digest(file: Path) -> str | None:
    """Digest of the file's bytes; None if it cannot be read: its reader gives the better error."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "blake2b").hexdigest()
    except OSError:
        return None
