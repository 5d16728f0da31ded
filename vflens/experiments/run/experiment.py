"""An experiment: one TOML file, from which the dealer writes a configuration per party and scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from vflens.config import (
    AGGREGATOR,
    ATTACKED_ROWS,
    DEVICE,
    MODEL,
    Device,
    Disclosure,
    Limits,
    Name,
    Plugin,
    Recording,
    Scoring,
    Settings,
    check_aggregator,
    check_sampling,
    read_toml,
    validate,
)
from vflens.experiments.run.dealing import VerticalSplit
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.family import AnyModel
from vflens.models.settings import Aggregator, Training
from vflens.names import Title
from vflens.tables.description import PartyFile
from vflens.types import Role


class Data(BaseModel):
    """A data set by name; every other key is one of its options."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str = Field(description="a name of `vflens datasets list`, or `openml:ID`")
    sample: int | None = Field(
        None, ge=2, description="use so many of its rows, drawn by the seed; default: all"
    )


class Grant(Disclosure):
    """A disclosure; ``by`` names one passive party, by default every one grants it."""

    by: Name | None = Field(
        None, description="the passive party that grants it; default: every one. Labels: the active party"
    )


class DefenseAt(Plugin):
    """A defence and the party that runs it."""

    at: Name = Field(description="the party that runs it")

    @property
    def parameters(self) -> dict[str, object]:
        """The plug-in's own keys."""
        return dict(self.__pydantic_extra__ or {})


class AttackAt(Plugin):
    """An attack and the party that it sits in."""

    at: Name | None = Field(
        None,
        description="the party that it sits in; default: the active one. Attacks on labels: a passive one",
    )

    @property
    def parameters(self) -> dict[str, object]:
        """The plug-in's own keys."""
        return dict(self.__pydantic_extra__ or {})


class Scenario(Settings):
    """One run of the experiment."""

    name: Title
    defenses: tuple[DefenseAt, ...] = ()


class Members(Settings):
    """The names of the parties."""

    passive: tuple[Name, ...] = Field(
        ("passive",),
        min_length=1,
        description="default: one, called passive; the first by name holds the bias",
    )
    active: Name = "active"
    coordinator: Name = "coordinator"


class Network(Settings):
    """How the processes reach each other."""

    transport: Literal["tcp", "unix"] = Field(
        "unix",
        description="sockets in the parties' folders (in a temporary one where their paths are long, or "
        "other users can change them), or free loopback ports, which any user of the machine can "
        "take first",
    )
    port: int = Field(
        50051, ge=1, le=65535, description="the port of every service, where parties are services by name"
    )


class Experiment(Settings):
    """The whole file. Data come from ``data`` and ``split``, or from ``files``, each party's own table."""

    name: Title
    seed: int = Field(
        0,
        ge=0,
        description="in lab mode every party's secret follows from it: one seed, one result; otherwise fresh "
        "randomness is mixed in",
    )
    out: Path = Field(Path("runs"), description="the run's folder is made in it")
    lab: bool = Field(
        True, description="one owner holds all parties: reconstruction errors go back to the adversary"
    )
    data: Data | None = Field(None, description="a data set, dealt to the parties")
    split: VerticalSplit | None = Field(None, description="who holds which columns of `data`")
    files: dict[Name, PartyFile] = Field({}, description="each data party's own table")
    predict_share: float = Field(
        0.2, gt=0, lt=1, description="share of the rows kept for prediction, where no split is given"
    )
    overlap: float = Field(1.0, gt=0, le=1, description="share of the rows that all parties hold")
    parties: Members = Members()
    training: Training = Training()
    model: AnyModel = Field(SOFTMAX_REGRESSION, description=MODEL)
    aggregator: Aggregator = Field("coordinator", description=AGGREGATOR)
    device: Device = Field("cpu", description=DEVICE)
    attacks: tuple[AttackAt, ...] = Field((), description="the adversary's")
    attacked_rows: int | None = Field(None, ge=1, description=ATTACKED_ROWS)
    disclose: tuple[Grant, ...] = Field((), description="what parties grant")
    scoring: Scoring = Scoring()
    scenarios: tuple[Scenario, ...] = Field((Scenario(name="run"),), min_length=1)
    limits: Limits = Limits()
    transcript: Recording = Recording()
    network: Network = Network()
    restart: int = Field(
        0,
        ge=0,
        le=100,
        description="how often `vflens run` starts a party again that was killed or crashed; "
        "`limits.rejoin_seconds` is then 60 where it is not set",
    )
    after: Literal["stop", "serve"] = Field(
        "stop", description="after the run: stop every party, or go on answering predictions"
    )

    @model_validator(mode="after")
    def _data_are_given_once(self) -> Experiment:
        if (self.data is None) == (not self.files):
            raise ValueError("give either [data] with [split], or [files.PARTY] for every data party")
        if self.data is not None and self.split is None:
            raise ValueError("split is missing: say who holds which columns")
        if self.files and set(self.files) != {*self.parties.passive, self.parties.active}:
            raise ValueError(
                f"files names {sorted(self.files)}, the data parties are "
                f"{sorted({*self.parties.passive, self.parties.active})}"
            )
        return self

    @model_validator(mode="after")
    def _aggregates_somewhere(self) -> Experiment:
        check_aggregator(self.aggregator, self.model, self.training)
        return self

    @model_validator(mode="after")
    def _models_have_devices(self) -> Experiment:
        if self.device not in self.model.devices:
            raise ValueError(
                f"device = {self.device!r}: {self.model.title} computes on the processor, leave device out "
                "or train a split network"
            )
        return self

    @model_validator(mode="after")
    def _attacks_are_distinct(self) -> Experiment:
        places = [(a.name, self.seat(a)) for a in self.attacks]
        repeated = sorted({p for p in places if places.count(p) > 1})
        if repeated:
            name, at = repeated[0]
            raise ValueError(f"attack {name!r} is configured twice at {at!r}: results are kept by its name")
        return self

    @model_validator(mode="after")
    def _the_last_epoch_is_kept(self) -> Experiment:
        check_sampling(self.transcript, self.training)
        return self

    @model_validator(mode="after")
    def _names_exist(self) -> Experiment:
        members = [*self.parties.passive, self.parties.active, self.parties.coordinator]
        if len(set(members)) < len(members):
            raise ValueError(f"parties {members}: give every party its own name")
        named = [d.at for s in self.scenarios for d in s.defenses] + [g.to for g in self.disclose]
        named += [g.by for g in self.disclose if g.by] + [self.seat(a) for a in self.attacks]
        for name in named:
            if name not in members:
                raise ValueError(f"party {name!r} is none of {members}")
        titles = [s.name.replace(" ", "-") for s in self.scenarios]  # the names of their folders
        if len(set(titles)) < len(titles):
            raise ValueError(f"scenarios {titles}: give every scenario its own name")
        return self

    def seat(self, attack: AttackAt) -> str:
        """The party that ``attack`` sits in."""
        return attack.at or self.parties.active

    def roles(self) -> dict[str, Role]:
        """Every party's role."""
        passive = dict.fromkeys(self.parties.passive, Role.PASSIVE)
        return {self.parties.coordinator: Role.COORDINATOR, self.parties.active: Role.ACTIVE, **passive}


AnyExperiment = TypeVar("AnyExperiment", bound=Experiment)


def load_experiment(file: Path) -> Experiment:
    """The experiment in ``file``; relative paths in it are relative to the file's folder, ``out`` to the
    current one.

    Raises:
        ConfigError: unreadable, not TOML, or a setting that is missing, unknown or out of range.
    """
    return load_as(Experiment, file)


def load_as(kind: type[AnyExperiment], file: Path) -> AnyExperiment:
    """As :func:`load_experiment`, for a file that holds more than an experiment."""
    experiment = validate(TypeAdapter(kind), read_toml(file), str(file))
    base = file.resolve().parent
    files = {
        name: spec.model_copy(update={"file": base / spec.file}) for name, spec in experiment.files.items()
    }
    return experiment.model_copy(update={"files": files})
