"""A recorded Flower app as the run folder of a server.

The recorder stands where Flower's server sends and receives, so the folder has what a server of a horizontal
run has: the updates of the clients, and the parameters that it sent first and last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import Field, TypeAdapter, model_validator

from vflens.config import MODEL, Settings, read_toml, validate
from vflens.errors import ConfigError, DataError
from vflens.experiments.imports.recording import Message, read_messages
from vflens.experiments.imports.server_folder import Parameters, write_server
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.family import AnyModel
from vflens.models.part import Keys, Site, plain
from vflens.models.settings import Horizontal, Training
from vflens.models.whole import WholeModel
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.recorded.horizontal.parameters import averaged
from vflens.types import (
    ColumnInfo,
    Document,
    Exchange,
    PartyInfo,
    Phase,
    Point,
    Released,
    Role,
    sealed,
)
from vflens.words import counted

_NO_ROWS = np.zeros(0, np.int32)
_NEAR = 1e-4  # of a parameter: Flower averages in the arrays' own precision


class FlowerApp(Settings):
    """What a recording does not say: the model, its columns as it reads them, and how clients train."""

    run: str = Field("flower/run", description="a name for the run")
    columns: tuple[str, ...] = Field(description="names of the columns, scaled to [0, 1], in order")
    pixels: tuple[int, int] | None = Field(None, description="rows and columns of an image of them")
    classes: tuple[str, ...] = Field(min_length=2, description="names of the classes, in the model's order")
    model: AnyModel = Field(SOFTMAX_REGRESSION, description=MODEL)
    training: Training = Training()
    horizontal: Horizontal = Horizontal()

    @model_validator(mode="after")
    def _an_image_has_all_columns(self) -> FlowerApp:
        if self.pixels is not None and np.prod(self.pixels) != len(self.columns):
            raise ValueError(
                f"pixels = {list(self.pixels)} of {counted(len(self.columns), 'column')}: give both alike"
            )
        return self

    @property
    def described(self) -> tuple[ColumnInfo, ...]:
        """The columns, in [0, 1]."""
        places = [None] * len(self.columns) if self.pixels is None else list(np.ndindex(*self.pixels))
        return tuple(
            ColumnInfo(name, 0.0, 1.0, pixel=place) for name, place in zip(self.columns, places, strict=True)
        )


def import_flower(recording: Path, config: Path, out: Path) -> Document:
    """Write the folder ``out`` of a server from ``recording``; return its facts.

    Args:
        recording: folder of the recorder, with ``messages.jsonl``.
        config: a TOML file of :class:`FlowerApp`.
        out: a folder that does not exist yet.

    Raises:
        ConfigError: ``config`` or its model does not fit the recording.
        DataError: the recording is damaged, or not one of averaged updates.
        StorageError: ``out`` exists or cannot be written.
    """
    app = validate(TypeAdapter(FlowerApp), read_toml(config), str(config))
    messages = read_messages(recording)
    names = {node: f"client-{i}" for i, node in enumerate(sorted({m.node for m in messages}), 1)}
    federation = _federation(app, messages, names)
    like = _like(federation)
    write_server(out, federation, *_rounds(federation, messages, names, like))
    return {
        "run": federation.run,
        "folder": str(out),
        "rounds": federation.epochs,
        "clients": {name: node for node, name in names.items()},
    }


def _federation(app: FlowerApp, messages: Sequence[Message], names: Mapping[str, str]) -> HorizontalAgreement:
    rows = _rows(messages, names)
    parties = tuple(
        PartyInfo(
            name,
            Role.CLIENT,
            columns=app.described,
            n_classes=len(app.classes),
            classes=app.classes,
            train_rows=rows[node],
            predict_rows=1,
        )
        for node, name in sorted(names.items(), key=lambda item: item[1])
    )
    rounds = {"rounds": max(m.round for m in messages)}
    horizontal = app.horizontal.model_copy(update=rounds)
    return HorizontalAgreement(
        run=app.run, parties=parties, training=app.training, lab=False, model=app.model, horizontal=horizontal
    )


def _rows(messages: Sequence[Message], names: Iterable[str]) -> dict[str, int]:
    """How many rows each node trains on, the same in all rounds."""
    replies = [m for m in messages if m.direction == "received" and m.arrays is not None]
    if replies and not any(m.arrays for m in replies):
        raise DataError("only masked updates were recorded, as under SecAgg+: record the app without it")
    found: dict[str, float] = {}
    for m in (m for m in replies if m.arrays):
        if m.rows and not (m.rows >= 1 and m.rows.is_integer()):
            raise DataError(
                f"node {m.node} returned num-examples = {m.rows:g}: let it send its number of rows"
            )
        if (before := found.setdefault(m.node, m.rows)) != m.rows:
            raise DataError(
                f"node {m.node} returned num-examples = {before:g}, and {m.rows:g} in round {m.round}: a run "
                "has one number of rows for each client, record an app that keeps it"
            )
    if without := [node for node in names if not found.get(node)]:
        raise DataError(
            f"node {without[0]} returned no parameters with the metric 'num-examples': record an app that "
            "sends it"
        )
    return {node: int(of) for node, of in found.items()}


def _like(federation: HorizontalAgreement) -> Parameters:
    """Parameters such as those of the model."""
    site = Site(
        party="server",
        columns=federation.columns,
        features=len(federation.columns),
        classes=federation.n_classes,
        training=federation.training,
        keys=Keys.under(bytes(32)),
        wrap=plain,
        received=federation.received_width,
        holds_bias=True,
    )
    return WholeModel(federation.model, site).parameters()


def _named(message: Message, like: Parameters) -> Parameters:
    """The arrays of ``message`` under the model's names."""
    arrays = message.arrays or ()
    shapes, due = [a.shape for a in arrays], {n: v.shape for n, v in like.items()}
    if shapes != list(due.values()):
        raise ConfigError(
            f"round {message.round} has arrays of shapes {shapes}, the model {due}: describe the model that "
            "was trained, with its arrays in this order"
        )
    return {name: array.astype(like[name].dtype) for name, array in zip(like, arrays, strict=True)}


def _rounds(
    federation: HorizontalAgreement,
    messages: Sequence[Message],
    names: Mapping[str, str],
    like: Parameters,
) -> tuple[Parameters, list[Released], Parameters]:
    """Parameters sent first, all updates, and the parameters after the last round."""
    start: Parameters | None = None
    current: Parameters = {}
    updates: list[Released] = []
    for number in range(federation.epochs):
        here = [m for m in messages if m.round == number + 1 and m.arrays]
        sent = [_named(m, like) for m in here if m.direction == "sent"]
        replies = {names[m.node]: _named(m, like) for m in here if m.direction == "received"}
        if not sent or not replies:
            raise DataError(f"round {number + 1} was not recorded whole: record anew")
        _check_equal(sent, sent[0], f"clients of round {number + 1} got different parameters")
        if start is not None:
            _check_equal([current], sent[0], f"round {number + 1} does not begin with the clients' mean")
        start = start or sent[0]
        due = [_update(federation, name, number, sent[0], reply) for name, reply in sorted(replies.items())]
        current, updates = averaged(federation, sent[0], due), [*updates, *due]
    assert start is not None
    return start, updates, current


def _check_equal(found: Sequence[Parameters], due: Parameters, what: str) -> None:
    for parameters in found:
        if not all(np.allclose(parameters[n], v, rtol=_NEAR, atol=_NEAR) for n, v in due.items()):
            raise DataError(f"{what}: only FedAvg, the mean by numbers of rows or an equal one, can be read")


def _update(
    federation: HorizontalAgreement, client: str, number: int, sent: Parameters, reply: Parameters
) -> Released:
    exchange = Exchange(federation.run, Phase.TRAIN, number, number)
    tensors = {name: sealed(reply[name] - value) for name, value in sent.items()}
    return Released(client, exchange, Point.UPDATE, _NO_ROWS, tensors=tensors)
