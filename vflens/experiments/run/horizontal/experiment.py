"""A horizontal experiment: clients with rows of their own, dealt evenly or by a Dirichlet law."""

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import Field, model_validator

from vflens.config import (
    MALICIOUS_SERVER,
    AttackTable,
    Disclosure,
    Name,
    Settings,
    check_absence,
    check_client_grants,
    check_method,
    check_rounds,
)
from vflens.config.compatibility import check_wrapped
from vflens.experiments.run.any_experiment import (
    AnyPartiesExperiment,
    AttackAt,
    Grant,
    check_colluders,
    check_seats,
)
from vflens.experiments.run.horizontal.dealt_rows import ClientRows, deal_rows
from vflens.models.settings import Horizontal
from vflens.plugins.attack import Attack
from vflens.plugins.defense import NamedDefense
from vflens.tables.table import Table
from vflens.types import Document, Role, Setting
from vflens.words import counted

_MOST_CLIENTS = 1000


class Group(Settings):
    """The names of the parties."""

    clients: int | tuple[Name, ...] = Field(
        3, description="their names, or how many: client-1, client-2, …; ten of them: client-01, …"
    )
    server: Name = "server"
    processes: int | None = Field(
        None,
        ge=1,
        description="that the clients share; default: one each, of more than 32 clients as many as cores",
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The clients' names."""
        if isinstance(self.clients, tuple):
            return self.clients
        width = len(str(self.clients))
        return tuple(f"client-{i:0{width}d}" for i in range(1, self.clients + 1))

    @model_validator(mode="after")
    def _some_clients(self) -> Self:
        if not 1 <= len(self.names) <= _MOST_CLIENTS:
            raise ValueError(f"parties.clients: from 1 to {_MOST_CLIENTS} clients, not {len(self.names)}")
        if len({*self.names, self.server}) < len(self.names) + 1:
            raise ValueError(f"parties {[*self.names, self.server]}: give every party its own name")
        return self


class HorizontalExperiment(AnyPartiesExperiment):
    """The whole file of a horizontal experiment, which has a table ``[horizontal]``."""

    setting = Setting.HORIZONTAL
    table = "horizontal"

    horizontal: Horizontal
    split: ClientRows = Field(ClientRows(), description="who holds which rows of `data`")
    parties: Group = Group()
    attacks: tuple[AttackAt, ...] = Field(
        (), description="the server's, against every client; those of clients that collude without it"
    )
    malicious: bool = Field(False, description=MALICIOUS_SERVER)
    disclose: tuple[Grant, ...] = Field(
        (), description="what clients grant to the server; `by` one client, by default every one"
    )

    @model_validator(mode="after")
    def _has_no_passive_party(self) -> Self:
        if self.limits.worst_error is not None:
            raise ValueError(
                "limits.worst_error is that of a passive party's scores, and here is none: leave it out"
            )
        return self

    @model_validator(mode="after")
    def _has_rows_of_clients_alone(self) -> Self:
        if self.data is not None and self.data.public is not None:
            raise ValueError(
                f"data.public = {self.data.public}: attacks in a server take no public rows, leave it out"
            )
        if self.data is not None and self.data.returning is not None:
            raise ValueError(
                f"data.returning = {self.data.returning}: clients grant candidates of their own, leave it out"
            )
        return self

    @model_validator(mode="after")
    def _attacks_are_distinct(self) -> Self:
        check_seats(self.seated())
        for attack in self.attacks:
            check_colluders(attack, self.seat(attack), self.parties.names)
            if self.seat(attack) != self.parties.server:
                self._check_without_server(attack)
        return self

    @model_validator(mode="after")
    def _grants_fit(self) -> Self:
        for client in self.parties.names:
            check_client_grants(self.granted_by(client), self.parties.server)
        return self

    @model_validator(mode="after")
    def _rounds_fit(self) -> Self:
        self.horizontal.check_clients(len(self.parties.names))
        check_absence(self.horizontal, waits=bool(self.limits.rejoin_seconds or self.restart))
        check_rounds(self.transcript, self.horizontal, self.training)
        check_method(self.model, self.horizontal, malicious=self.malicious)
        return self

    @property
    def processes(self) -> int | None:
        return self.parties.processes

    def granted_by(self, client: str) -> list[Disclosure]:
        """What ``client`` grants."""
        granted = [g for g in self.disclose if g.by in (None, client)]
        return [Disclosure(**g.model_dump(exclude={"by"})) for g in granted]

    def named(self) -> list[str]:
        adversaries = (name for a in self.attacks for name in (self.seat(a), *a.colluders))
        return [*super().named(), *(g.by for g in self.disclose if g.by), *adversaries]

    def seat(self, attack: AttackAt) -> str:
        """The party that ``attack`` sits in."""
        return attack.at or self.parties.server

    def _check_without_server(self, attack: AttackAt) -> None:
        """Refuse an ``attack`` of clients who cannot know an update of another one."""
        seat, server = self.seat(attack), self.parties.server
        given = f"attack {attack.name!r} at {seat!r}"
        if server in attack.colluders:
            raise ValueError(
                f"{given} with colluders {server}: with the server it sits there, set at = {server!r}"
            )
        left = set(self.parties.names) - {seat, *attack.colluders}
        if len(left) > 1:
            raise ValueError(
                f"{given} without the server: of {counted(len(left), 'other client')} it knows the sum of "
                "their updates alone, name all but one as colluders"
            )
        if self.horizontal.has_gaps:
            raise ValueError(
                f"{given} without the server: clients do not know who trained in a round, let all train in "
                "every one, by fedavg or lg_fedavg"
            )
        if self.transcript.every > 1:
            raise ValueError(
                f"{given} without the server: transcript.every = {self.transcript.every} drops models whose "
                "differences give the updates, set it to 1"
            )

    @property
    def data_parties(self) -> tuple[str, ...]:
        """The clients."""
        return self.parties.names

    def roles(self) -> dict[str, Role]:
        return {self.parties.server: Role.SERVER, **dict.fromkeys(self.parties.names, Role.CLIENT)}

    def are_peers(self, one: Role, other: Role) -> bool:
        """See :meth:`AnyPartiesExperiment.are_peers`: the server and each client."""
        return Role.SERVER in (one, other)

    def seated(self) -> list[tuple[AttackTable, str]]:
        return [(attack, self.seat(attack)) for attack in self.attacks]

    def attacked_by(self, attacks: Sequence[tuple[str, Attack]]) -> Self:
        """See :meth:`AnyPartiesExperiment.attacked_by`: in the server."""
        tables = [AttackAt(name=name, **a.model_dump(exclude_unset=True)) for name, a in attacks]
        return self.model_copy(update={"attacks": (*self.attacks, *tables)})

    def check_defenses(self, built: Mapping[str, Sequence[NamedDefense]]) -> None:
        """See :meth:`AnyPartiesExperiment.check_defenses`: those that the method leaves nothing to act on."""
        for party, defenses in built.items():
            check_wrapped(defenses, party, self.horizontal)

    def dealt(self, table: Table, secret: bytes) -> dict[str, Table]:
        return deal_rows(
            table, self.split, self.parties.names, secret=secret, predict_share=self.predict_share
        )

    def settings_of(self, party: str, root: str) -> Document:
        attacks = [a.dealt for a in self.attacks if self.seat(a) == party]
        if party == self.parties.server:
            return {
                "training": self.training.model_dump(),
                "model": self.model.model_dump(),
                "horizontal": self.horizontal.model_dump(exclude_none=True),
                "attacks": attacks,
                "device": self.device,
                **({"malicious": True} if self.malicious else {}),
            }
        own = {"secure_aggregation": True} if self.horizontal.secure_aggregation else {}
        granted = [g.model_dump() for g in self.granted_by(party)]
        shared = {"device": self.device, "disclose": granted, **({"attacks": attacks} if attacks else {})}
        return {"predict_share": self.predict_share, **shared, **own}
