"""A horizontal experiment: clients with rows of their own, dealt evenly or by a Dirichlet law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from vflens.clients.horizontal.grants import check_grants
from vflens.clients.horizontal.own_file import client_info
from vflens.clients.membership import check_limits
from vflens.config import (
    MIB,
    ClientConfig,
    Disclosure,
    Name,
    Plugin,
    Scoring,
    Settings,
    check_absence,
    check_attacks,
    check_client_grants,
    check_method,
    check_rounds,
)
from vflens.errors import ConfigError, DataError
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.experiment import Grant
from vflens.models.settings import Horizontal
from vflens.protocol.alignment import drawn_split
from vflens.protocol.horizontal import HorizontalFederation, check_alike
from vflens.randomness import stream
from vflens.tables.scaling import Scaler
from vflens.tables.table import PREDICT, TRAIN, Table
from vflens.types import Array, ColumnInfo, Document, Role

_MOST_CLIENTS = 1000


class Rows(Settings):
    """Which rows of ``data`` each client holds."""

    kind: Literal["rows"] = "rows"
    alpha: float | None = Field(
        None,
        ge=1e-3,
        le=1e6,
        strict=True,
        description="each class is shared out by a Dirichlet law with this parameter, small ones unevenly "
        "(Hsu et al., 2019); absent: all rows evenly and at random",
    )
    test: Literal["own", "shared"] = Field(
        "own", description="a client's prediction rows: its own share of them, or all of them at every client"
    )


class Group(Settings):
    """The names of the parties."""

    clients: int | tuple[Name, ...] = Field(
        3, description="their names, or how many: client-1, client-2, …; ten of them: client-01, …"
    )
    server: Name = "server"

    @property
    def names(self) -> tuple[str, ...]:
        """The clients' names."""
        if isinstance(self.clients, tuple):
            return self.clients
        width = len(str(self.clients))
        return tuple(f"client-{i:0{width}d}" for i in range(1, self.clients + 1))

    @model_validator(mode="after")
    def _some_clients(self) -> Group:
        if not 1 <= len(self.names) <= _MOST_CLIENTS:
            raise ValueError(f"parties.clients: from 1 to {_MOST_CLIENTS} clients, not {len(self.names)}")
        if len({*self.names, self.server}) < len(self.names) + 1:
            raise ValueError(f"parties {[*self.names, self.server]}: give every party its own name")
        return self


class HorizontalExperiment(AnyPartiesExperiment):
    """The whole file of a horizontal experiment, which has a table ``[horizontal]``."""

    horizontal: Horizontal
    split: Rows = Field(Rows(), description="who holds which rows of `data`")
    parties: Group = Group()
    attacks: tuple[Plugin, ...] = Field((), description="the server's, against every client")
    disclose: tuple[Grant, ...] = Field(
        (), description="what clients grant to the server; `by` one client, by default every one"
    )
    scoring: Scoring = Scoring()

    @model_validator(mode="after")
    def _has_no_public_rows(self) -> HorizontalExperiment:
        if self.data is not None and self.data.public is not None:
            raise ValueError(
                f"data.public = {self.data.public}: attacks in a server take no public rows, leave it out"
            )
        return self

    @model_validator(mode="after")
    def _attacks_are_distinct(self) -> HorizontalExperiment:
        check_attacks(self.attacks)
        return self

    @model_validator(mode="after")
    def _grants_fit(self) -> HorizontalExperiment:
        for client in self.parties.names:
            check_client_grants(self.granted_by(client), self.parties.server)
        return self

    @model_validator(mode="after")
    def _rounds_have_their_participants(self) -> HorizontalExperiment:
        self.horizontal.check_clients(len(self.parties.names))
        check_absence(self.horizontal, waits=bool(self.limits.rejoin_seconds or self.restart))
        return self

    @model_validator(mode="after")
    def _the_last_round_is_kept(self) -> HorizontalExperiment:
        check_rounds(self.transcript, self.horizontal, self.training)
        check_method(self.model, self.horizontal)
        return self

    def granted_by(self, client: str) -> list[Disclosure]:
        """What ``client`` grants."""
        granted = [g for g in self.disclose if g.by in (None, client)]
        return [Disclosure(**g.model_dump(exclude={"by"})) for g in granted]

    def named(self) -> list[str]:
        """See :meth:`AnyPartiesExperiment.named`."""
        return [*super().named(), *(g.by for g in self.disclose if g.by)]

    @property
    def data_parties(self) -> tuple[str, ...]:
        """The clients."""
        return self.parties.names

    def roles(self) -> dict[str, Role]:
        """See :meth:`AnyPartiesExperiment.roles`."""
        return {self.parties.server: Role.SERVER, **dict.fromkeys(self.parties.names, Role.CLIENT)}

    def are_peers(self, one: Role, other: Role) -> bool:
        """See :meth:`AnyPartiesExperiment.are_peers`: the server and each client."""
        return Role.SERVER in (one, other)

    def dealt(self, table: Table, secret: bytes) -> dict[str, Table]:
        """See :meth:`AnyPartiesExperiment.dealt`."""
        return deal_rows(
            table, self.split, self.parties.names, secret=secret, predict_share=self.predict_share
        )

    def settings_of(self, party: str, root: str) -> Document:
        """See :meth:`AnyPartiesExperiment.settings_of`."""
        if party == self.parties.server:
            return {
                "training": self.training.model_dump(),
                "model": self.model.model_dump(),
                "horizontal": self.horizontal.model_dump(exclude_none=True),
                "attacks": [{"name": a.name, **a.parameters} for a in self.attacks],
                "device": self.device,
            }
        own = {"secure_aggregation": True} if self.horizontal.secure_aggregation else {}
        granted = [g.model_dump() for g in self.granted_by(party)]
        shared = {"device": self.device, "disclose": granted, "scoring": self.scoring.model_dump()}
        return {"predict_share": self.predict_share, **shared, **own}


def deal_rows(
    table: Table,
    split: Rows,
    clients: tuple[str, ...],
    *,
    secret: bytes,
    predict_share: float = 0.2,
) -> dict[str, Table]:
    """One table per client, with all columns and labels, and its rows in its own order.

    A column without declared bounds gets the extremes of the whole table, so that clients scale alike.
    Without a split ``predict_share`` of all rows are prediction rows. All draws follow from ``secret``.

    Raises:
        ConfigError: a client gets no row to train or to predict.
        DataError: the table has no labels.
    """
    if table.labels is None:
        raise DataError("the table has no labels: clients train on them, deal one that has")
    labels = table.labels
    if table.split is None:
        drawn = drawn_split(len(table.ids), predict_share, stream(secret, "deal", "split"))
        table = replace(table, split=drawn)
    assert table.split is not None
    table = replace(table, columns=_bounded(table))
    rng, k, number = stream(secret, "deal", "rows"), len(table.class_names), len(clients)
    shares = class_shares(k, number, split.alpha, rng)
    train_rows, predict_rows = (np.flatnonzero(table.split == use) for use in (TRAIN, PREDICT))
    trained = _cut(labels, train_rows, shares, rng)
    predicted = [predict_rows] * number
    if split.test == "own":
        predicted = _cut(labels, predict_rows, shares, rng)
    dealt = {}
    for client, train, predict in zip(clients, trained, predicted, strict=True):
        if not len(train) or not len(predict):
            raise ConfigError(
                f"client {client!r} gets {len(train)} training and {len(predict)} prediction rows: name "
                "fewer clients, raise split.alpha, or set split.test = 'shared'"
            )
        rows = stream(secret, "deal", "order", client).permutation(np.concatenate([train, predict]))
        dealt[client] = table.rows(rows)
    return dealt


def class_shares(classes: int, clients: int, alpha: float | None, rng: np.random.Generator) -> Array:
    """The share of each class that each client gets, float64 (classes, clients); rows sum to 1."""
    if alpha is None:
        return np.full((classes, clients), 1 / clients)
    return rng.dirichlet(np.full(clients, alpha), classes)


def _cut(labels: Array, rows: Array, shares: Array, rng: np.random.Generator) -> list[Array]:
    """``rows`` int (n,) shuffled and cut into one part per client, class by class in the given ``shares``.

    With equal shares remainders would all go to the last clients: a class begins where the one before ended.
    """
    parts: list[list[Array]] = [[] for _ in range(shares.shape[1])]
    for number, share in enumerate(shares):
        own = rng.permutation(rows[labels[rows] == number])
        turn = number % len(parts)  # the client that comes first in this class
        ends = np.round(np.cumsum(np.roll(share, -turn)) * len(own)).astype(int)[:-1]
        for place, part in enumerate(np.split(own, ends)):
            parts[(place + turn) % len(parts)].append(part)
    return [np.concatenate(found) for found in parts]


def _bounded(table: Table) -> tuple[ColumnInfo, ...]:
    """The columns, each with its declared bounds or its extremes: no row may lie outside declared ones."""
    if all(c.low is not None and c.high is not None for c in table.columns):
        return table.columns
    scaler = Scaler.fit(table.columns, table.features)
    low, high = scaler.low.tolist(), scaler.high.tolist()
    high = [b if a < b else a + 1.0 for a, b in zip(low, high, strict=True)]  # of a constant column
    return tuple(replace(c, low=a, high=b) for c, a, b in zip(table.columns, low, high, strict=True))


def check_clients(
    experiment: HorizontalExperiment, configs: Sequence[ClientConfig], tables: Mapping[str, Table]
) -> HorizontalFederation:
    """Refuse before the start what the server or a client would refuse: unlike clients, limits, grants, a
    model that does not fit, an update that is larger than a message.

    Raises:
        ConfigError: names the client, the limit or the setting.
    """
    clients = tuple(client_info(c, tables[c.party]) for c in sorted(configs, key=lambda c: c.party))
    check_alike(clients)
    settings = (experiment.training, experiment.lab, experiment.model, experiment.horizontal)
    federation = HorizontalFederation(experiment.name, clients, *settings)
    rows = {client.name: client.train_rows for client in clients}
    for client in clients:
        check_limits(federation, client, experiment.limits)
    for config in configs:
        check_grants(config, rows[config.party], experiment.horizontal)
    size = update_bytes(federation)
    if size > experiment.limits.message_mib * MIB:
        raise ConfigError(
            f"limits.message_mib = {experiment.limits.message_mib}: an update takes {size / MIB:.1f} MiB, "
            "raise it, or choose a smaller model"
        )
    return federation


def update_bytes(federation: HorizontalFederation) -> int:
    """What the update of a client takes in a message."""
    number = 8 if federation.horizontal.secure_aggregation else federation.dtype.itemsize
    return federation.part_size(federation.parties[0]).parameters * number
