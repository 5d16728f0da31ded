"""The configuration of one party: a TOML file per process, checked whole before the start."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from os.path import realpath
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter, model_validator

from vflens.config.addresses import is_local, seen_from
from vflens.config.reading import read_toml, validate
from vflens.config.secrets import EXAMPLE, check_secrets
from vflens.config.settings import (
    Disclosure,
    Limits,
    MetricsPage,
    Peer,
    Plugin,
    Recording,
    Scoring,
    Settings,
    Tls,
    Token,
)
from vflens.errors import ConfigError
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.family import AnyModel, ModelFamily
from vflens.models.settings import Aggregator, Training
from vflens.names import Name, repeated
from vflens.protocol.acts import ACCESS, DIRECT_ACCESS, Access
from vflens.tables.description import PartyFile
from vflens.types import Role

OPERATOR = "operator"  # the name of a person who asks a running party; no party may have it
MODEL = (
    "the family of models and its settings, by default a split network (the extra `deep`); absent: "
    "softmax regression"
)
AGGREGATOR = (
    "who receives the passive parties' embeddings, the same at every party; `active`: split networks only"
)
Device = Literal["cpu", "cuda"]
DEVICE = (
    "where a data party's part of a split network computes, and its attacks on embeddings: "
    "`cuda` is its machine's GPU (no test has run on one), whose results differ in the last bits"
)
ATTACKED_ROWS = (
    "attacks on columns estimate the first so many prediction rows, once; default: all of them, and before "
    "that 50, 100, 200, 500, …. Utility is that of all prediction rows"
)


class PartyConfig(Settings):
    """Settings of every party."""

    party: Name
    run: str = Field(min_length=1, max_length=160, description="the run's name: the same at every party")
    address: str = Field(
        description='where this party listens: "host:port" or "unix:PATH", a socket in a folder that it '
        "alone can write"
    )
    insecure: bool = Field(False, description="allow an address other than loopback without TLS")
    tls: Tls | None = Field(None, description="mutual TLS with every peer, at every address; absent: no TLS")
    out: Path = Field(description="this party's own run folder")
    resume: bool = Field(
        False,
        description="go on with an unfinished run in `out` instead of a new one, for restart policies of "
        "containers and services; `--resume` and `--no-resume` come first",
    )
    seed: str = Field(
        min_length=1,
        description="this party's secret, random where `lab` is false: its noise and its draws follow from "
        "it",
    )
    lab: bool = Field(False, description="one owner holds all parties: errors go back to the adversary")
    peers: tuple[Peer, ...] = Field(description="the parties that it exchanges messages with")
    defenses: tuple[Plugin, ...] = Field((), description="in the order in which they act")
    limits: Limits = Limits()
    transcript: Recording = Recording()
    metrics: MetricsPage = MetricsPage()

    @model_validator(mode="after")
    def _examples_stay_on_this_machine(self) -> PartyConfig:
        addresses = [self.address, *(p.address for p in self.peers)]
        outside = next((a for a in addresses if not is_local(a)), None)
        published = next((name for name, value in self.secrets() if value.startswith(EXAMPLE)), None)
        if outside is not None and published is not None:
            raise ValueError(
                f"{published} begins with {EXAMPLE!r} and address {outside!r} is not on this machine: "
                "the example values are public, draw your own with: vflens secrets init FILE"
            )
        return self

    @model_validator(mode="after")
    def _tls_or_insecure(self) -> PartyConfig:
        if self.insecure and self.tls is not None:
            raise ValueError("insecure = true beside [tls]: every address has TLS, leave insecure out")
        return self

    @model_validator(mode="after")
    def _peers_are_distinct(self) -> PartyConfig:
        names = [self.party, *(p.name for p in self.peers)]
        twice = repeated(names)
        if twice is not None:
            raise ValueError(f"party {twice!r} is named twice: give every party its own name")
        if OPERATOR in names:
            raise ValueError(f"party {OPERATOR!r}: this name is reserved for operators, choose another")
        shared = repeated([self.address, *(p.address for p in self.peers)])
        if shared is not None:
            raise ValueError(f"address {shared!r} is given twice: every party listens at its own")
        return self

    @model_validator(mode="after")
    def _secrets_are_distinct(self) -> PartyConfig:
        """Refuse equal secrets: sharing one must not reveal another; a token proves a name, a seed gives all
        noise.
        """
        seen: dict[str, str] = {}
        for name, value in self.secrets():
            if value in seen:
                raise ValueError(
                    f"{name} is the same as {seen[value]}: give every pair of parties and every purpose a "
                    "secret of its own"
                )
            seen[value] = name
        return self

    @property
    @abstractmethod
    def access(self) -> Access:
        """Who may ask whom in its federation."""

    def peers_of(self, role: Role) -> tuple[Peer, ...]:
        """The peers of one role, sorted by name."""
        return tuple(sorted((p for p in self.peers if p.role == role), key=lambda p: p.name))

    def secrets(self) -> Iterator[tuple[str, str]]:
        """Every present secret, with the name of its field."""
        yield from ((f"peers.{p.name}.token", p.token) for p in self.peers)
        for name in ("seed", "alignment_key", "operator_token"):
            value = getattr(self, name, None)
            if value:
                yield name, value


class VerticalConfig(PartyConfig):
    """A party of a vertical federation, whose data parties hold columns of the same rows."""

    aggregator: Aggregator = Field("coordinator", description=AGGREGATOR)

    @property
    def access(self) -> Access:
        """See :attr:`PartyConfig.access`."""
        return DIRECT_ACCESS if self.aggregator == "active" else ACCESS


class DataPartyConfig(PartyConfig):
    """A party that holds rows."""

    data: PartyFile
    device: Device = Field("cpu", description=DEVICE)

    @property
    @abstractmethod
    def leader(self) -> Peer:
        """The peer that leads its runs."""


class VerticalDataConfig(VerticalConfig, DataPartyConfig):
    """A data party of a vertical federation."""

    alignment_key: str = Field(
        min_length=16,
        description="shared by the data parties, unknown to the coordinator, random where `lab` is false: "
        "row ids are hashed under it",
    )

    attacks: tuple[Plugin, ...] = Field(
        (), description="the adversary's plug-ins; at a passive party they estimate labels"
    )
    scoring: Scoring = Scoring()

    @property
    def leader(self) -> Peer:
        """The coordinator."""
        return self.peers_of(Role.COORDINATOR)[0]

    @model_validator(mode="after")
    def _attacks_are_distinct(self) -> VerticalDataConfig:
        twice = repeated([p.name for p in self.attacks])
        if twice is not None:
            raise ValueError(f"attack {twice!r} is configured twice: results are kept by its name")
        return self

    @model_validator(mode="after")
    def _knows_one_coordinator(self) -> VerticalDataConfig:
        _require_one(self, Role.COORDINATOR)
        return self


class PassiveConfig(VerticalDataConfig):
    """A party with features only."""

    role: Literal[Role.PASSIVE]
    disclose: tuple[Disclosure, ...] = Field((), description="its disclosures, and their receivers")

    @model_validator(mode="after")
    def _knows_who_receives_its_embeddings(self) -> PassiveConfig:
        if self.aggregator == "active":
            _require_one(self, Role.ACTIVE)
        return self

    @model_validator(mode="after")
    def _grants_go_to_peers(self) -> PassiveConfig:
        names = [p.name for p in self.peers if p.role != Role.PASSIVE]
        for grant in self.disclose:
            if grant.what == "labels":
                raise ValueError(f"disclose labels at passive {self.party!r}: the active party has them")
            if grant.to not in names:
                raise ValueError(
                    f"disclose.to = {grant.to!r} is no peer that takes disclosures: name one of {names}"
                )
        return self


class ActiveConfig(VerticalDataConfig):
    """The party with the labels."""

    role: Literal[Role.ACTIVE]
    disclose: tuple[Disclosure, ...] = Field((), description="its disclosures of labels, and their receivers")
    operator_token: Token | None = Field(
        None,
        description="random where `lab` is false; its holder may ask for predictions (vflens predict)",
    )
    predict_batch: int = Field(1024, ge=1, description="rows per prediction request")
    attacked_rows: int | None = Field(None, ge=1, description=ATTACKED_ROWS)

    @model_validator(mode="after")
    def _attacked_rows_are_scored(self) -> ActiveConfig:
        rows = self.attacked_rows
        if rows is not None and not self.lab and not (rows >= 50 and re.fullmatch("[125]0+", str(rows))):
            raise ValueError(
                f"attacked_rows = {rows}: outside lab mode a target scores 50, 100, 200, 500, … rows, "
                "choose one of them"
            )
        return self

    @model_validator(mode="after")
    def _labels_go_to_passive_peers(self) -> ActiveConfig:
        names = [p.name for p in self.peers_of(Role.PASSIVE)]
        for grant in self.disclose:
            if grant.what != "labels" or grant.to not in names:
                raise ValueError(
                    f"disclose {grant.what!r} to {grant.to!r}: the active party grants labels, to one of "
                    f"{names}"
                )
        return self

    @model_validator(mode="after")
    def _labels_are_named(self) -> ActiveConfig:
        if self.data.label_column is None:
            raise ValueError(
                "data.label_column is missing: the active party holds the labels, name their column"
            )
        return self


class CoordinatorConfig(VerticalConfig):
    """The party that aligns, drives and releases scores."""

    role: Literal[Role.COORDINATOR]
    training: Training = Training()
    model: AnyModel = Field(SOFTMAX_REGRESSION, description=MODEL)
    predict_share: float = Field(
        0.2, gt=0, lt=1, description="share of rows kept for prediction when no file has a split column"
    )
    after: Literal["stop", "serve"] = Field(
        "serve", description="after the run: stop every party, or go on answering predictions"
    )

    @model_validator(mode="after")
    def _aggregates_somewhere(self) -> CoordinatorConfig:
        check_aggregator(self.aggregator, self.model, self.training)
        return self

    @model_validator(mode="after")
    def _the_last_epoch_is_kept(self) -> CoordinatorConfig:
        check_sampling(self.transcript, self.training)
        return self

    @model_validator(mode="after")
    def _knows_everybody(self) -> CoordinatorConfig:
        _require_one(self, Role.ACTIVE)
        if not self.peers_of(Role.PASSIVE):
            raise ValueError("peers name no passive party: a federation needs at least one")
        return self


DataConfig: TypeAlias = PassiveConfig | ActiveConfig
LeaderConfig: TypeAlias = CoordinatorConfig
MemberConfig: TypeAlias = PassiveConfig | ActiveConfig | CoordinatorConfig
AnyConfig = Annotated[MemberConfig, Field(discriminator="role")]
_ANY: TypeAdapter[MemberConfig] = TypeAdapter(AnyConfig)


def load_party(file: Path) -> MemberConfig:
    """The party's configuration in ``file``; relative paths in it are relative to the file's folder.

    Raises:
        ConfigError: unreadable, not TOML, or a setting that is missing, unknown or out of range; outside lab
            mode also secrets that are weak or in a file that other users can open.
    """
    config = checked(read_toml(file), file)
    if not config.lab:
        check_secrets(file, config.secrets())
    base = file.resolve().parent
    updates: dict[str, Any] = {
        "out": Path(realpath(base / config.out)),
        "address": seen_from(base, config.address),
        "peers": tuple(p.model_copy(update={"address": seen_from(base, p.address)}) for p in config.peers),
    }
    if config.tls is not None:
        # A link stays one: whoever renews the certificate may let it lead to the next file.
        files = {name: base / file for name, file in config.tls}
        updates["tls"] = config.tls.model_copy(update=files)
    if not isinstance(config, CoordinatorConfig):
        updates["data"] = config.data.model_copy(update={"file": Path(realpath(base / config.data.file))})
    return config.model_copy(update=updates)


def checked(settings: dict[str, Any], file: Path) -> MemberConfig:
    """The party's configuration from ``settings`` of ``file``, with unchanged paths.

    Raises:
        ConfigError: a setting that is missing, unknown or out of range.
    """
    role = settings.get("role")
    if role not in [str(r) for r in Role if r is not Role.OPERATOR]:
        raise ConfigError(
            f"{file}: role is {'missing' if role is None else repr(role)}: a party is passive, active or "
            "coordinator (an experiment has none, `vflens run` takes it)"
        )
    return validate(_ANY, settings, str(file))


def check_aggregator(aggregator: Aggregator, model: ModelFamily, training: Training) -> None:
    """Refuse an aggregator that does not fit the model or the training.

    Raises:
        ValueError: names the setting, for pydantic.
    """
    if aggregator == "active" and model.scores_leave_at is Role.COORDINATOR:
        raise ValueError(
            f"aggregator = 'active': {model.title} releases its scores at the coordinator, leave aggregator "
            "out or train a split network"
        )
    if training.staleness and aggregator != "active":
        raise ValueError(
            "training.staleness = 1 needs aggregator = 'active': through the coordinator every step waits "
            "for its gradient"
        )


def check_sampling(transcript: Recording, training: Training) -> None:
    """Refuse a sampling without the last epoch.

    Raises:
        ValueError: names both settings, for pydantic.
    """
    if training.epochs % transcript.every:
        raise ValueError(
            f"transcript.every = {transcript.every} of {training.epochs} epochs leaves out the last: choose "
            "a divisor"
        )


def _require_one(config: PartyConfig, role: Role) -> None:
    count = len(config.peers_of(role))
    if count != 1:
        raise ValueError(f"peers name {count} parties with role {role.value!r}: exactly one is needed")
