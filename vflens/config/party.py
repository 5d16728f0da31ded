"""The configuration of one party: what all roles share."""

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from vflens.config.secrets import EXAMPLE
from vflens.config.settings import (
    AttackTable,
    Limits,
    MemberRole,
    MetricsPage,
    Peer,
    Plugin,
    Recording,
    Scoring,
    Settings,
    Tls,
)
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.family import AnyModel
from vflens.models.settings import Training
from vflens.names import Name, repeated
from vflens.protocol.access import Access
from vflens.protocol.roles import ROLES, RoleFacts
from vflens.tables.description import PartyFile
from vflens.types import AlignMode, Role
from vflens.words import counted

OPERATOR = "operator"  # the name of a person who asks a running party; no party may have it
MODEL = (
    "the family of models and its settings, by default a split network (the extra `deep`); absent: "
    "softmax regression"
)
Device = Literal["cpu", "cuda"]
DEVICE = (
    "where a data party's part of a split network computes, and its attacks on embeddings: "
    "`cuda` is its machine's GPU (no test has run on one), whose results differ in the last bits"
)


class PartyConfig(Settings):
    """Settings of every party."""

    party: Name
    role: MemberRole
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
    def _examples_stay_on_this_machine(self) -> Self:
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
    def _tls_or_insecure(self) -> Self:
        if self.insecure and self.tls is not None:
            raise ValueError("insecure = true beside [tls]: every address has TLS, leave insecure out")
        return self

    @model_validator(mode="after")
    def _scores_have_a_limit_where_they_leave(self) -> Self:
        if self.limits.worst_error is not None and not self.facts.limits_scores:
            raise ValueError(
                f"limits.worst_error is that of a passive party's scores, and this is the {self.role}'s "
                "file: leave it out"
            )
        return self

    @model_validator(mode="after")
    def _peers_are_distinct(self) -> Self:
        names = [self.party, *(p.name for p in self.peers)]
        twice = repeated(names)
        if twice is not None:
            raise ValueError(f"party {twice!r} is named twice: give every party its own name")
        if OPERATOR in names:
            raise ValueError(f"party {OPERATOR!r}: this name is reserved for operators, choose another")
        alike = {p.address for p in self.peers if ROLES[p.role].alike and self.tls is None}  # of one process
        shared = repeated([self.address, *alike, *(p.address for p in self.peers if p.address not in alike)])
        if shared is not None:
            raise ValueError(f"address {shared!r} is given twice: every party listens at its own")
        return self

    @model_validator(mode="after")
    def _peers_are_of_one_setting(self) -> Self:
        asked = {role for pairs in self.access.values() for pair in pairs for role in pair}
        foreign = next((p for p in self.peers if p.role not in asked), None)
        if foreign is not None:
            roles = ", ".join(sorted(asked - {Role.OPERATOR}))
            raise ValueError(
                f"peer {foreign.name!r} is a {foreign.role}: the parties of this federation are {roles}"
            )
        return self

    @model_validator(mode="after")
    def _secrets_are_distinct(self) -> Self:
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

    @property
    def facts(self) -> RoleFacts:
        """Those of its role."""
        return ROLES[self.role]

    @property
    def hooks(self) -> frozenset[str]:
        """The hooks at which its defences may act."""
        return self.facts.hooks

    @property
    def own_attacks(self) -> tuple[AttackTable, ...]:
        """The adversary's plug-ins, those with colluders among them."""
        return ()

    @property
    def attacks_afterwards(self) -> tuple[AttackTable, ...]:
        """Those of them that run on folders of the finished run, in a lab: with colluders."""
        return tuple(table for table in self.own_attacks if table.colluders)

    def seat_of(self, table: AttackTable) -> tuple[Role, str]:
        """Role and name of who runs one of :attr:`own_attacks`."""
        return self.role, self.party

    @property
    def aligns_by(self) -> AlignMode | None:
        """How its rows are aligned; None: it has none that are."""
        return None

    @property
    def draws_together(self) -> bool:
        """Whether its defences can draw what those of other holders of its rows draw."""
        return True

    @property
    def breaks_protocol(self) -> bool:
        """Whether its attack sends other messages than the protocol's."""
        return False

    @property
    def operators_token(self) -> str | None:
        """What an operator shows who asks it for predictions; None: nobody may ask."""
        return None

    @property
    def stays(self) -> bool:
        """Whether it goes on answering after the run."""
        return False

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


class DataPartyConfig(PartyConfig):
    """A party that holds rows."""

    data: PartyFile
    device: Device = Field("cpu", description=DEVICE)


class LedConfig(DataPartyConfig):
    """A data party that another party leads."""

    scoring: Scoring = Scoring()

    @property
    @abstractmethod
    def leader(self) -> Peer:
        """The peer that leads its runs."""


class LeaderConfig(PartyConfig):
    """A party that leads a run."""

    training: Training = Training()
    model: AnyModel = Field(SOFTMAX_REGRESSION, description=MODEL)


def require_one(config: PartyConfig, role: Role) -> None:
    """Refuse a configuration that names no or several peers of this role.

    Raises:
        ValueError: names the role, for pydantic.
    """
    count = len(config.peers_of(role))
    if count != 1:
        raise ValueError(
            f"peers name {counted(count, 'party')} with role {role.value!r}: exactly one is needed"
        )


def is_local(address: str) -> bool:
    """Whether only this machine can reach ``address``: a loopback host or a Unix socket."""
    host = (address.rpartition(":")[0] or address).strip("[]")
    return address.startswith("unix:") or host in ("127.0.0.1", "::1", "localhost")
