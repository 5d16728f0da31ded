"""The configurations of a horizontal federation: clients, and the server."""

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from vflens.config.party import Device, LeaderConfig, LedConfig, PartyConfig, require_one
from vflens.config.settings import AttackTable, Disclosure, Peer, Recording, check_attacks
from vflens.models.family import ModelFamily
from vflens.models.settings import Horizontal, Training
from vflens.names import repeated
from vflens.protocol.access import Access
from vflens.protocol.horizontal.access import HORIZONTAL_ACCESS
from vflens.types import Role
from vflens.words import counted

MALICIOUS_SERVER = "the first model that the server sends is made for its attack (`imprint`)"
#: The hooks that a client has for what it grants.
_GRANTED = {"embeddings": "on_embedding", "gradients": "on_gradient", "parameters": "on_parameters"}


class HorizontalConfig(PartyConfig):
    """A party of a horizontal federation, whose clients hold the same columns of other rows."""

    attacks: tuple[AttackTable, ...] = Field(
        (),
        description="the adversary's plug-ins: in the server against every client; in a client, in lab mode, "
        "after the run, against the one that is neither itself nor a colluder",
    )

    @property
    def access(self) -> Access:
        return HORIZONTAL_ACCESS

    @property
    def own_attacks(self) -> tuple[AttackTable, ...]:
        return self.attacks

    @model_validator(mode="after")
    def _attacks_are_distinct(self) -> Self:
        check_attacks(self.attacks)
        return self


class ClientConfig(HorizontalConfig, LedConfig):
    """A party with rows of its own: columns and labels."""

    role: Literal[Role.CLIENT]
    predict_share: float = Field(
        0.2, gt=0, lt=1, description="share of its rows kept for prediction, where its file has no split"
    )

    secure_aggregation: bool = Field(
        False,
        description="mask its updates, and refuse a server that asks for them in the clear; the same as in "
        "`[horizontal]` of the server",
    )

    disclose: tuple[Disclosure, ...] = Field((), description="its disclosures, all to the server")

    @property
    def hooks(self) -> frozenset[str]:
        """See :attr:`PartyConfig.hooks`; with those for what it grants."""
        granted = {d.what for d in self.disclose}
        return self.facts.hooks | {hook for what, hook in _GRANTED.items() if what in granted}

    @property
    def attacks_afterwards(self) -> tuple[AttackTable, ...]:
        """All: what a client knows of another one follows from the finished run."""
        return self.own_attacks

    @property
    def leader(self) -> Peer:
        """The server."""
        return self.peers_of(Role.SERVER)[0]

    @model_validator(mode="after")
    def _knows_one_server(self) -> Self:
        require_one(self, Role.SERVER)
        return self

    @model_validator(mode="after")
    def _labels_are_named(self) -> Self:
        if self.data.label_column is None:
            raise ValueError("data.label_column is missing: a client trains on labels, name their column")
        if self.data.label_kind != "classes":
            raise ValueError("data.label_kind = 'number': clients train on classes, leave it out")
        return self

    @model_validator(mode="after")
    def _grants_fit(self) -> Self:
        check_client_grants(self.disclose, self.leader.name)
        return self


class ServerConfig(HorizontalConfig, LeaderConfig):
    """The party that sends parameters and averages the clients' updates."""

    role: Literal[Role.SERVER]
    horizontal: Horizontal = Horizontal()
    malicious: bool = Field(False, description=MALICIOUS_SERVER)
    device: Device = Field("cpu", description="where its attacks compute: `cpu`, or `cuda` for a GPU")

    @property
    def breaks_protocol(self) -> bool:
        return self.malicious

    @model_validator(mode="after")
    def _knows_clients(self) -> Self:
        if not self.peers_of(Role.CLIENT):
            raise ValueError("peers name no client: a federation needs at least one")
        return self

    @model_validator(mode="after")
    def _rounds_fit(self) -> Self:
        check_absence(self.horizontal, waits=self.limits.rejoin_seconds > 0)
        self.horizontal.check_clients(len(self.peers_of(Role.CLIENT)))
        check_rounds(self.transcript, self.horizontal, self.training)
        check_method(self.model, self.horizontal, malicious=self.malicious)
        return self


def check_method(model: ModelFamily, horizontal: Horizontal, *, malicious: bool) -> None:
    """Refuse a method that treats bottom and top model differently of a family that has none, or of a server
    that makes a whole first model for its attack.

    Raises:
        ValueError: names the setting, for pydantic.
    """
    if horizontal.method != "fedavg" and model.linear:
        raise ValueError(
            f"horizontal.method = {horizontal.method!r} needs bottom and top models, {model.title} has none: "
            "choose 'fedavg' or a split network"
        )
    if horizontal.method != "fedavg" and malicious:
        raise ValueError(
            f"malicious = true makes a whole first model, horizontal.method = {horizontal.method!r} averages "
            "a part of it: choose 'fedavg', or leave it out"
        )


def check_absence(horizontal: Horizontal, *, waits: bool) -> None:
    """Refuse to leave a client out by a server that never ``waits`` for one.

    Raises:
        ValueError: names the settings, for pydantic.
    """
    if horizontal.absent == "leave_out" and not waits:
        raise ValueError(
            "horizontal.absent = 'leave_out' with limits.rejoin_seconds = 0: set how long the server waits "
            "for a client that died"
        )


def check_client_grants(grants: Sequence[Disclosure], server: str) -> None:
    """Refuse grants that a client cannot make, or that give attacks different rows.

    Raises:
        ValueError: names the grant, for pydantic.
    """
    twice = repeated([g.what for g in grants])
    if twice is not None:
        raise ValueError(f"disclose {twice!r} is given twice: a client grants each once, to its server")
    for grant in grants:
        if grant.to != server:
            raise ValueError(f"disclose.to = {grant.to!r} is not the server: name {server!r}")
    numbers = {g.rows for g in grants if g.what in ("embeddings", "gradients")}
    if len(numbers) > 1:
        raise ValueError(
            f"disclose embeddings and gradients of {sorted(numbers)} rows: attacks need both of the same "
            "rows, grant as many"
        )


def check_rounds(transcript: Recording, horizontal: Horizontal, training: Training) -> None:
    """Refuse a sampling without the last round, and settings of training that rounds do not have.

    Raises:
        ValueError: names the settings, for pydantic.
    """
    if horizontal.rounds % transcript.every:
        raise ValueError(
            f"transcript.every = {transcript.every} of {counted(horizontal.rounds, 'round')} leaves out the "
            "last: choose a divisor"
        )
    foreign = sorted({"epochs", "patience", "tolerance", "staleness"} & _changed(training))
    if foreign:
        raise ValueError(
            f"training.{foreign[0]} has no meaning in rounds: leave it out, and set rounds and local_epochs "
            "in [horizontal]"
        )


def _changed(training: Training) -> set[str]:
    """The fields that are not as by default."""
    default = Training()
    return {n for n in Training.model_fields if getattr(training, n) != getattr(default, n)}
