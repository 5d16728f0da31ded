"""The configurations of a vertical federation: passive parties, the active one, the coordinator."""

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from vflens.config.party import OPERATOR, LeaderConfig, LedConfig, PartyConfig, require_one
from vflens.config.settings import AttackTable, Disclosure, Peer, Recording, Settings, Token, check_attacks
from vflens.models.family import ModelFamily
from vflens.models.settings import PROTECTION, Aggregator, Protection, Training
from vflens.names import repeated
from vflens.protocol.access import Access
from vflens.protocol.vertical.access import Way, way_of
from vflens.protocol.vertical.shares import check_protection
from vflens.tables.description import PartyFile
from vflens.types import AlignMode, Role
from vflens.words import counted

AGGREGATOR = (
    "who receives the passive parties' embeddings, the same at every party; `active`: split networks only"
)
MALICIOUS = "its attack sends other gradients (`fsha`, `urvfl`), or has its model learn otherwise (`amc`)"
ATTACKED_ROWS = (
    "attacks on columns estimate the first so many prediction rows, once; default: all of them, and before "
    "that 50, 100, 200, 500, …. Utility is that of all prediction rows"
)


class VerticalConfig(PartyConfig):
    """A party of a vertical federation, whose data parties hold columns of the same rows."""

    aggregator: Aggregator = Field("coordinator", description=AGGREGATOR)

    @property
    @abstractmethod
    def way(self) -> Way:
        """How the run trains."""

    @property
    def access(self) -> Access:
        return self.way.access

    @property
    def hooks(self) -> frozenset[str]:
        """See :attr:`PartyConfig.hooks`; not those that its way of training leaves nothing to do."""
        return super().hooks - self.way.unused


class Align(Settings):
    """How rows are aligned: the same at every data party."""

    mode: AlignMode | None = Field(
        None,
        description="`psi`: private set intersection, all data parties blind each row id under keys of the "
        "run; `hmac`: ids are hashed under `alignment_key`, whose holder can try ids against the digests; "
        "default: `hmac` with an `alignment_key`, else `psi`",
    )


class VerticalDataConfig(VerticalConfig, LedConfig):
    """A data party of a vertical federation."""

    alignment_key: str | None = Field(
        None,
        min_length=16,
        description="shared by the data parties, unknown to the coordinator, random where `lab` is false: "
        "with `align.mode` `hmac` row ids are hashed under it; what defences draw together follows from it",
    )
    align: Align = Align()

    protection: Protection = Field("none", description=f"{PROTECTION}; the same at every party")
    attacks: tuple[AttackTable, ...] = Field(
        (), description="the adversary's plug-ins; at a passive party they estimate labels"
    )
    malicious: bool = Field(False, description=MALICIOUS)

    @property
    def breaks_protocol(self) -> bool:
        return self.malicious

    @property
    def aligns_by(self) -> AlignMode:
        """How its rows are aligned."""
        return self.align.mode or ("hmac" if self.alignment_key else "psi")

    @property
    def way(self) -> Way:
        return way_of(self.aggregator, self)

    @property
    def draws_together(self) -> bool:
        """See :attr:`PartyConfig.draws_together`; under the key that the data parties share."""
        return self.alignment_key is not None

    @property
    def own_attacks(self) -> tuple[AttackTable, ...]:
        return self.attacks

    @property
    def leader(self) -> Peer:
        """The coordinator."""
        return self.peers_of(Role.COORDINATOR)[0]

    @model_validator(mode="after")
    def _digests_have_a_key(self) -> Self:
        if self.aligns_by == "hmac" and self.alignment_key is None:
            raise ValueError(
                "align.mode = 'hmac' without alignment_key: give all data parties the same, or leave "
                "align.mode out"
            )
        return self

    @model_validator(mode="after")
    def _attacks_and_coordinator_fit(self) -> Self:
        check_attacks(self.own_attacks)
        require_one(self, Role.COORDINATOR)
        return self


def _check_once(disclose: Sequence[Disclosure]) -> None:
    twice = repeated(f"{grant.what} to {grant.to}" for grant in disclose)
    if twice is not None:
        raise ValueError(f"disclose {twice} is given twice: grant each once to a party")


class PassiveConfig(VerticalDataConfig):
    """A party with features only."""

    role: Literal[Role.PASSIVE]
    disclose: tuple[Disclosure, ...] = Field((), description="its disclosures, and their receivers")

    @property
    def hooks(self) -> frozenset[str]:
        """See :attr:`PartyConfig.hooks`; parameters leave where they are disclosed."""
        discloses = any(d.what == "parameters" for d in self.disclose)
        return self.facts.hooks - self.way.unused_at_passive - (set() if discloses else {"on_parameters"})

    @model_validator(mode="after")
    def _knows_who_receives_its_embeddings(self) -> Self:
        if self.way.led_by_active:
            require_one(self, Role.ACTIVE)
        return self

    @model_validator(mode="after")
    def _grants_go_to_peers(self) -> Self:
        names = [p.name for p in self.peers if p.role != Role.PASSIVE]
        for grant in self.disclose:
            if grant.what == "labels":
                raise ValueError(f"disclose labels at passive {self.party!r}: the active party has them")
            if grant.what in ("embeddings", "gradients"):
                raise ValueError(
                    f"disclose {grant.what} at passive {self.party!r}: they cross the wire in a vertical "
                    "run, leave it out"
                )
            if grant.what == "candidates":
                raise ValueError(
                    f"disclose candidates at passive {self.party!r}: a client grants them to its server, "
                    "an active party to its operator, leave it out"
                )
            if grant.to not in names:
                raise ValueError(
                    f"disclose.to = {grant.to!r} is no peer that takes disclosures: name one of {names}"
                )
        _check_once(self.disclose)
        return self


class ActiveConfig(VerticalDataConfig):
    """The party with the labels."""

    role: Literal[Role.ACTIVE]
    disclose: tuple[Disclosure, ...] = Field(
        (), description="its disclosures: of labels to passive parties, of candidates to its operator"
    )
    operator_attacks: tuple[AttackTable, ...] = Field(
        (), description="what its operator tries, in lab mode, after the run: attacks on membership"
    )
    operator_token: Token | None = Field(
        None,
        description="random where `lab` is false; its holder may ask for predictions (vflens predict)",
    )
    public: PartyFile | None = Field(
        None,
        description="a table of other people, none of them in the run, with the columns of all parties and "
        "labels: its attacks may learn from it",
    )
    predict_batch: int = Field(1024, ge=1, description="rows per prediction request")
    attacked_rows: int | None = Field(None, ge=1, description=ATTACKED_ROWS)

    @property
    def own_attacks(self) -> tuple[AttackTable, ...]:
        return (*self.attacks, *self.operator_attacks)

    @property
    def attacks_afterwards(self) -> tuple[AttackTable, ...]:
        """With its operator's."""
        return (*super().attacks_afterwards, *self.operator_attacks)

    def seat_of(self, table: AttackTable) -> tuple[Role, str]:
        return (Role.OPERATOR, OPERATOR) if table in self.operator_attacks else super().seat_of(table)

    @property
    def operators_token(self) -> str | None:
        return self.operator_token

    @model_validator(mode="after")
    def _attacked_rows_are_scored(self) -> Self:
        rows = self.attacked_rows
        if rows is not None and not self.lab and not (rows >= 50 and re.fullmatch("[125]0+", str(rows))):
            raise ValueError(
                f"attacked_rows = {rows}: outside lab mode a target scores 50, 100, 200, 500, … rows, "
                "choose one of them"
            )
        return self

    @model_validator(mode="after")
    def _grants_go_where_they_may(self) -> Self:
        names = [p.name for p in self.peers_of(Role.PASSIVE)]
        for grant in self.disclose:
            if grant.to not in {"labels": names, "candidates": [OPERATOR]}.get(grant.what, ()):
                raise ValueError(
                    f"disclose {grant.what!r} to {grant.to!r}: the active party grants labels, to one of "
                    f"{names}, and candidates, to {OPERATOR!r}"
                )
        _check_once(self.disclose)
        return self

    @model_validator(mode="after")
    def _grants_classes(self) -> Self:
        if self.disclose and self.data.label_kind == "number":
            raise ValueError(
                f"disclose {self.disclose[0].what!r} with data.label_kind = 'number': the attacks that learn "
                "from labels are made for classes, and so is membership, leave it out"
            )
        return self

    @model_validator(mode="after")
    def _labels_are_named(self) -> Self:
        if self.data.label_column is None:
            raise ValueError(
                "data.label_column is missing: the active party holds the labels, name their column"
            )
        return self


class CoordinatorConfig(VerticalConfig, LeaderConfig):
    """The party that aligns, drives and releases scores."""

    role: Literal[Role.COORDINATOR]
    predict_share: float = Field(
        0.2, gt=0, lt=1, description="share of rows kept for prediction when no file has a split column"
    )
    after: Literal["stop", "serve"] = Field(
        "serve", description="after the run: stop every party, or go on answering predictions"
    )

    @property
    def hooks(self) -> frozenset[str]:
        """See :attr:`PartyConfig.hooks`; the model decides where scores leave."""
        scores = set() if self.model.scores_leave_at is Role.COORDINATOR else {"on_scores"}
        return super().hooks - self.model.unused_hooks - scores

    @property
    def way(self) -> Way:
        return way_of(self.aggregator, self.training)

    @property
    def stays(self) -> bool:
        return self.after == "serve"

    @model_validator(mode="after")
    def _training_fits(self) -> Self:
        check_aggregator(self.aggregator, self.model, self.training)
        check_protection(self.model, self.training)
        check_sampling(self.transcript, self.training)
        return self

    @model_validator(mode="after")
    def _knows_everybody(self) -> Self:
        require_one(self, Role.ACTIVE)
        if not self.peers_of(Role.PASSIVE):
            raise ValueError("peers name no passive party: a federation needs at least one")
        return self


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
            f"transcript.every = {transcript.every} of {counted(training.epochs, 'epoch')} leaves out the "
            "last: choose a divisor"
        )
