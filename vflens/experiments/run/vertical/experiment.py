"""An experiment: one TOML file, from which the dealer writes a configuration per party and scenario."""

from collections.abc import Mapping, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from vflens.config import (
    AGGREGATOR,
    ATTACKED_ROWS,
    MALICIOUS,
    OPERATOR,
    Align,
    AttackTable,
    Name,
    Settings,
    check_aggregator,
    check_sampling,
)
from vflens.config.compatibility import check_fed, check_together, check_worst_error
from vflens.experiments.run.any_experiment import (
    AnyPartiesExperiment,
    AttackAt,
    Grant,
    check_colluders,
    check_seats,
    token,
)
from vflens.experiments.run.dealing import VerticalSplit, deal
from vflens.models.settings import Aggregator
from vflens.names import repeated
from vflens.plugins.attack import Attack, installed_attack
from vflens.plugins.defense import NamedDefense
from vflens.plugins.malicious import breaks_protocol
from vflens.protocol.vertical.shares import check_protection
from vflens.randomness import secret_from_seed
from vflens.tables.table import Table
from vflens.types import Document, Role, Setting


class Members(Settings):
    """The names of the parties."""

    passive: tuple[Name, ...] = Field(
        ("passive",),
        min_length=1,
        description="default: one, called passive; the first by name holds the bias",
    )
    active: Name = "active"
    coordinator: Name = "coordinator"

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [*self.passive, self.active, self.coordinator]
        if repeated(names) is not None:
            raise ValueError(f"parties {names}: give every party its own name")
        return self


class Experiment(AnyPartiesExperiment):
    """The whole file of a vertical experiment."""

    setting = Setting.VERTICAL
    table = None

    split: VerticalSplit | None = Field(None, description="who holds which columns of `data`")
    overlap: float = Field(1.0, gt=0, le=1, description="share of the rows that all parties hold")
    parties: Members = Members()
    align: Align = Align()
    aggregator: Aggregator = Field("coordinator", description=AGGREGATOR)
    attacks: tuple[AttackAt, ...] = Field((), description="the adversary's")
    malicious: bool = Field(False, description=MALICIOUS)
    attacked_rows: int | None = Field(None, ge=1, description=ATTACKED_ROWS)
    disclose: tuple[Grant, ...] = Field((), description="what parties grant")
    after: Literal["stop", "serve"] = Field(
        "stop", description="after the run: stop every party, or go on answering predictions"
    )

    @model_validator(mode="after")
    def _columns_are_split(self) -> Self:
        if self.data is not None and self.split is None:
            raise ValueError("split is missing: say who holds which columns")
        return self

    @model_validator(mode="after")
    def _training_fits(self) -> Self:
        check_aggregator(self.aggregator, self.model, self.training)
        check_protection(self.model, self.training)
        check_worst_error(self.model, self.limits, len(self.parties.passive))
        check_sampling(self.transcript, self.training)
        return self

    @model_validator(mode="after")
    def _attacks_have_targets(self) -> Self:
        check_seats(self.seated())
        active = self.parties.active
        for attack in self.attacks:
            seat = self.seat(attack)
            if seat == OPERATOR and attack.colluders:
                raise ValueError(
                    f"attack {attack.name!r} at {seat!r} with colluders: it sees predictions alone, leave "
                    "colluders out"
                )
            check_colluders(attack, seat, self.parties.passive if seat == active else (active,))
        return self

    @model_validator(mode="after")
    def _candidates_come_back(self) -> Self:
        due = max((g.rows for g in self.disclose if g.what == "candidates"), default=0) // 2
        back = (self.data and self.data.returning) or 0
        if due > back:
            raise ValueError(
                f"disclose candidates with rows = {2 * due}: half of them are of people who trained, set "
                f"data.returning to at least {due}"
            )
        return self

    def named(self) -> list[str]:
        granted = [g.to for g in self.disclose] + [g.by for g in self.disclose if g.by]
        adversaries = (name for a in self.attacks for name in (self.seat(a), *a.colluders))
        return [name for name in (*super().named(), *granted, *adversaries) if name != OPERATOR]

    def seat(self, attack: AttackAt) -> str:
        """The party that ``attack`` sits in."""
        return attack.at or self.parties.active

    def _malicious(self) -> set[str]:
        """Who has an attack that breaks the protocol; if nobody has, the active party, which refuses it."""
        if not self.malicious:
            return set()
        kinds = [(self.seat(a), installed_attack(a.name)) for a in self.attacks]
        return {seat for seat, kind in kinds if kind and breaks_protocol(kind)} or {self.parties.active}

    @property
    def data_parties(self) -> tuple[str, ...]:
        """The passive parties, and the active one."""
        return (*self.parties.passive, self.parties.active)

    def roles(self) -> dict[str, Role]:
        passive = dict.fromkeys(self.parties.passive, Role.PASSIVE)
        return {self.parties.coordinator: Role.COORDINATOR, self.parties.active: Role.ACTIVE, **passive}

    def are_peers(self, one: Role, other: Role) -> bool:
        """See :meth:`AnyPartiesExperiment.are_peers`: all but two passive parties."""
        return not one is other is Role.PASSIVE

    def learns_from_public(self, party: str) -> bool:
        """See :meth:`AnyPartiesExperiment.learns_from_public`: in the active party."""
        return party == self.parties.active

    def seated(self) -> list[tuple[AttackTable, str]]:
        return [(attack, self.seat(attack)) for attack in self.attacks]

    def attacked_by(self, attacks: Sequence[tuple[str, Attack]]) -> Self:
        """See :meth:`AnyPartiesExperiment.attacked_by`: on columns in the active party, on labels in the
        first passive one.
        """
        seats = {"features": self.parties.active, "labels": self.parties.passive[0]}
        tables = [
            AttackAt(name=name, at=seats.get(a.estimates), **a.model_dump(exclude_unset=True))
            for name, a in attacks
        ]
        return self.model_copy(update={"attacks": (*self.attacks, *tables)})

    def check_defenses(self, built: Mapping[str, Sequence[NamedDefense]]) -> None:
        """See :meth:`AnyPartiesExperiment.check_defenses`: those that data parties draw together differ, or
        the coordinator's lack a disclosure.
        """
        coordinator = self.parties.coordinator
        check_together({party: found for party, found in built.items() if party != coordinator})
        grants = [g for g in self.disclose if g.what == "parameters" and g.to == coordinator]
        disclosing = {p: any(g.by in (None, p) for g in grants) for p in self.parties.passive}
        check_fed(coordinator, [d for _, d in built[coordinator]], disclosing)

    def dealt(self, table: Table, secret: bytes) -> dict[str, Table]:
        assert self.split is not None
        return deal(
            table,
            self.split,
            self.parties.passive,
            self.parties.active,
            secret=secret,
            predict_share=self.predict_share,
            overlap=self.overlap,
            returning=(self.data and self.data.returning) or 0,
        )

    def settings_of(self, party: str, root: str) -> Document:
        role = self.roles()[party]
        common: Document = {"aggregator": self.aggregator}
        if role is Role.COORDINATOR:
            return {
                **common,
                "training": self.training.model_dump(),
                "model": self.model.model_dump(),
                "predict_share": self.predict_share,
                "after": self.after,
            }
        granted = [
            g.model_dump(exclude={"by"})
            for g in self.disclose
            if g.by in (None, party) and (g.what in ("labels", "candidates")) == (role is Role.ACTIVE)
        ]
        common |= self.training.model_dump(include={"protection"})
        shared = {
            **common,
            "alignment_key": secret_from_seed(root, "alignment").hex(),
            **({"align": {"mode": self.align.mode}} if self.align.mode else {}),
            "attacks": [a.dealt for a in self.attacks if self.seat(a) == party],
            "disclose": granted,
            "device": self.device,
        }
        shared |= {"malicious": True} if party in self._malicious() else {}
        if role is Role.PASSIVE:
            return shared
        attacked: Document = {} if self.attacked_rows is None else {"attacked_rows": self.attacked_rows}
        tried = [a.dealt for a in self.attacks if self.seat(a) == OPERATOR]
        attacked |= {"operator_attacks": tried} if tried else {}
        return {**shared, **attacked, "operator_token": token(root, party, "operator")}
