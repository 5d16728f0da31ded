"""What experiments of both settings share: one TOML file, from which the dealer configures every party."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from vflens.config import (
    DEVICE,
    MODEL,
    AttackTable,
    Device,
    Disclosure,
    Limits,
    Name,
    Plugin,
    Recording,
    Scoring,
    Settings,
)
from vflens.errors import ConfigError
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.family import AnyModel
from vflens.models.settings import Training
from vflens.names import Title, did_you_mean, repeated
from vflens.plugins.attack import Attack
from vflens.plugins.defense import NamedDefense
from vflens.randomness import secret_from_seed
from vflens.tables.description import PartyFile
from vflens.tables.table import Table
from vflens.types import Document, Role, Setting


class Data(BaseModel):
    """A data set by name; every other key is one of its options."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str = Field(description="a name of `vflens datasets list`, or `openml:ID`")
    sample: int | None = Field(
        None, ge=2, description="use so many of its rows, drawn by the seed; default: all"
    )
    public: int | None = Field(
        None,
        ge=2,
        description="hold so many rows out of the run: attacks of the active party may learn from them; "
        "vertical experiments only",
    )
    returning: int | None = Field(
        None,
        ge=1,
        description="so many training rows come back as prediction rows, `again-ID`, for attacks on "
        "membership; no part of the utility; vertical experiments only",
    )


class DefenseAt(Plugin):
    """A defence and the party that runs it."""

    at: Name = Field(description="the party that runs it")


class AttackAt(AttackTable):
    """An attack and the party that it sits in."""

    at: Name | None = Field(
        None,
        description="the party that it sits in; default: the active one, or the server. In a vertical run "
        "attacks on labels: a passive one, on membership: `operator`, who gets the predictions",
    )


class Grant(Disclosure):
    """A disclosure; ``by`` names one passive party, by default every one grants it."""

    by: Name | None = Field(
        None, description="the passive party that grants it; default: every one. Labels: the active party"
    )


class Scenario(Settings):
    """One run of the experiment."""

    name: Title
    defenses: tuple[DefenseAt, ...] = ()


class NetworkSettings(Settings):
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


class AnyPartiesExperiment(Settings, ABC):
    """What experiments of both settings share. Data come from ``data`` and ``split``, or from ``files``, each
    party's own table.
    """

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
    files: dict[Name, PartyFile] = Field({}, description="each data party's own table")
    predict_share: float = Field(
        0.2, gt=0, lt=1, description="share of the rows kept for prediction, where no split is given"
    )
    training: Training = Training()
    model: AnyModel = Field(SOFTMAX_REGRESSION, description=MODEL)
    device: Device = Field("cpu", description=DEVICE)
    scenarios: tuple[Scenario, ...] = Field((Scenario(name="run"),), min_length=1)
    limits: Limits = Limits()
    transcript: Recording = Recording()
    scoring: Scoring = Scoring()
    network: NetworkSettings = NetworkSettings()
    restart: int = Field(
        0,
        ge=0,
        le=100,
        description="how often `vflens run` starts a party again that was killed or crashed; "
        "`limits.rejoin_seconds` is then 60 where it is not set",
    )

    setting: ClassVar[Setting]
    #: The table of a file that says that it is of this setting; None: of no table.
    table: ClassVar[str | None]

    @property
    @abstractmethod
    def data_parties(self) -> tuple[str, ...]:
        """The names of the parties that hold rows."""

    @abstractmethod
    def roles(self) -> dict[str, Role]:
        """Every party's role, the leader first."""

    @abstractmethod
    def are_peers(self, one: Role, other: Role) -> bool:
        """Whether parties of these roles exchange messages."""

    @abstractmethod
    def dealt(self, table: Table, secret: bytes) -> dict[str, Table]:
        """Each data party's part of ``table``; all draws follow from ``secret``.

        Raises:
            DataError, ConfigError: the table or the split is unusable.
        """

    @abstractmethod
    def settings_of(self, party: str, root: str) -> Document:
        """What the configuration of ``party`` has beside the settings of every party; its secrets follow from
        ``root``.
        """

    @abstractmethod
    def check_defenses(self, built: Mapping[str, Sequence[NamedDefense]]) -> None:
        """Refuse defences, by party, that the setting or its parties together do not allow.

        Raises:
            ConfigError: naming one.
        """

    def within(self, tolerance: Mapping[str, float]) -> Self:
        """Itself with the ``tolerance`` of these columns, by which answers count as found.

        Raises:
            ConfigError: it has another one of a column.
        """
        stated = self.scoring.tolerance
        for column, own in stated.items():
            if tolerance.get(column, own) != own:
                raise ConfigError(
                    f"scoring.tolerance.{column} = {own:g}, and a threshold states {tolerance[column]:g}: "
                    "state one distance"
                )
        scoring = self.scoring.model_copy(update={"tolerance": {**stated, **tolerance}})
        return self.model_copy(update={"scoring": scoring}) if tolerance else self

    def seated(self) -> list[tuple[AttackTable, str]]:
        """Each of its attacks, and the party that it sits in; none in a setting where nobody attacks."""
        return []

    def attacked_by(self, attacks: Sequence[tuple[str, Attack]]) -> Self:
        """Itself with ``attacks`` by name beside its own, each at a party that it is made for.

        Raises:
            ConfigError: nobody attacks in its setting.
        """
        raise ConfigError(f"attacks in a {self.setting} run: nobody attacks there, leave them out")

    @property
    def processes(self) -> int | None:
        """How many processes its clients share; None: the launcher decides."""
        return None

    def learns_from_public(self, party: str) -> bool:
        """Whether attacks in ``party`` may learn from the public rows."""
        return False

    @model_validator(mode="after")
    def _data_are_given_once(self) -> Self:
        if (self.data is None) == (not self.files):
            raise ValueError("give either [data] with [split], or [files.PARTY] for every data party")
        if self.files and set(self.files) != set(self.data_parties):
            raise ValueError(
                f"files names {sorted(self.files)}, the data parties are {sorted(self.data_parties)}"
            )
        return self

    @model_validator(mode="after")
    def _models_have_devices(self) -> Self:
        if self.device not in self.model.devices:
            raise ValueError(
                f"device = {self.device!r}: {self.model.title} computes on the processor, leave device out "
                "or train a split network"
            )
        return self

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        members = list(dict.fromkeys([*self.data_parties, *self.roles()]))
        for name in self.named():
            if name not in members:
                shown = members if len(members) < 9 else [*members[:3], "…", *members[-3:]]
                near = did_you_mean(name, members)
                raise ValueError(f"party {name!r} is none of {', '.join(shown)}{near}")
        titles = [s.name.replace(" ", "-") for s in self.scenarios]  # the names of their folders
        if len(set(titles)) < len(titles):
            raise ValueError(f"scenarios {titles}: give every scenario its own name")
        return self

    def named(self) -> list[str]:
        """The parties that other settings name."""
        return [d.at for s in self.scenarios for d in s.defenses]


def check_seats(seated: Sequence[tuple[AttackTable, str]]) -> None:
    """Refuse an attack that sits twice in a party.

    Raises:
        ValueError: names both, for pydantic.
    """
    twice = repeated([(table.called, seat) for table, seat in seated])
    if twice is not None:
        name, at = twice
        raise ValueError(f"attack {name!r} is configured twice at {at!r}: results are kept by its name")


def check_colluders(table: AttackTable, seat: str, aims: Collection[str]) -> None:
    """Refuse colluders of the attack in the party ``seat`` on the parties ``aims`` that it cannot have.

    Raises:
        ValueError: names the attack, for pydantic.
    """
    given = f"attack {table.name!r} at {seat!r}"
    given += f" with colluders {', '.join(table.colluders)}" if table.colluders else ""
    if repeated([seat, *table.colluders]) is not None:
        raise ValueError(f"{given}: name other parties, each once")
    if set(aims) <= {seat, *table.colluders}:
        raise ValueError(f"{given}: nobody is left to attack")


def token(root: str, a: str, b: str) -> str:
    """What the parties ``a`` and ``b`` share."""
    return secret_from_seed(root, "token", *sorted((a, b))).hex()
