"""A recorded server of Flower or NVFlare as the run folder of a server.

The recorder stands where the framework's server sends and receives, so the folder has what a server of a
horizontal run has: the updates of clients, what crossed beside them, and the parameters sent first and last.
"""

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

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
    INT32_MAX,
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
_NEAR, _STEPS_OFF = (
    1e-4,
    16,
)  # of a parameter, or steps of its dtype: averages are in the arrays' own precision
_ROWS = ("num-examples", "num_examples")  # Flower's Message API and its Strategy API
#: What NVFlare weighs clients by. One that sends no positive number counts as one with 1.
_STEPS = "NUM_STEPS_CURRENT_ROUND"
_Counts = Mapping[str, int]  # client → its rows in a round


class RecordedApp(Settings):
    """What a recording does not say: the model, its columns as it reads them, and how clients train."""

    run: str = Field("recorded/run", description="a name for the run")
    weighted_by: str | None = Field(
        None,
        description="the metric with a client's number of rows; absent: num-examples or num_examples of "
        "Flower, and of NVFlare its number of steps, each of a batch",
    )
    columns: tuple[str, ...] = Field(description="names of the columns, scaled to [0, 1], in order")
    pixels: tuple[int, int] | None = Field(None, description="rows and columns of an image of them")
    classes: tuple[str, ...] = Field(min_length=2, description="names of the classes, in the model's order")
    model: AnyModel = Field(SOFTMAX_REGRESSION, description=MODEL)
    training: Training = Training()
    horizontal: Horizontal = Horizontal()

    @model_validator(mode="after")
    def _an_image_has_all_columns(self) -> Self:
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


def import_recording(recording: Path, config: Path, out: Path) -> Document:
    """Write the folder ``out`` of a server from ``recording``; return its facts.

    Args:
        recording: folder of the recorder, with ``messages.jsonl``.
        config: a TOML file of :class:`RecordedApp`.
        out: a folder that does not exist yet.

    Raises:
        ConfigError: ``config`` or its model does not fit the recording.
        DataError: the recording is damaged, or not one of averaged updates.
        StorageError: ``out`` exists or cannot be written.
    """
    app = validate(TypeAdapter(RecordedApp), read_toml(config), str(config))
    messages = read_messages(recording)
    nodes = sorted({m.node for m in messages}, key=lambda node: (len(node), node))  # site-2 before site-10
    names = {node: f"client-{i}" for i, node in enumerate(nodes, 1)}
    rounds = _whole_rounds(messages)
    federation = _federation(app, [_counts(app, of, names) for of in rounds])
    start, updates, end = _averaged(federation, rounds, names)
    _check_evaluated(messages, rounds[-1], end)
    metrics = _metrics(federation.run, messages, names, [of[0].round for of in rounds])
    write_server(out, federation, start, [*updates, *metrics], end)
    trained = {party.name for party in federation.parties}
    return {
        "run": federation.run,
        "folder": str(out),
        "rounds": federation.epochs,
        "clients": {name: node for node, name in names.items() if name in trained},
        "metrics": sorted({name for m in messages if m.received for name in m.metrics}),
    }


def _whole_rounds(messages: Sequence[Message]) -> list[list[Message]]:
    """The messages with parameters of each round in which a client returned some: others change nothing."""
    training = [m for m in messages if m.trains]
    replies = [m for m in training if m.received and m.arrays is not None]
    if not any(m.arrays for m in replies):
        what = "only masked updates were" if replies else "no client's parameters were"
        raise DataError(f"{what} recorded: record an app whose clients return parameters, without SecAgg+")
    numbers = sorted({m.round for m in replies if m.arrays})
    return [[m for m in training if m.round == number and m.arrays] for number in numbers]


def _federation(app: RecordedApp, counts: Sequence[_Counts]) -> HorizontalAgreement:
    """The clients with the most rows of each; those of each round, where they change."""
    most = {name: max(of.get(name, 0) for of in counts) for name in set().union(*counts)}
    parties = tuple(
        PartyInfo(
            name,
            Role.CLIENT,
            columns=app.described,
            n_classes=len(app.classes),
            classes=app.classes,
            train_rows=rows,
            predict_rows=1,
        )
        for name, rows in sorted(most.items())
        if rows
    )
    same = all(rows == most[name] for of in counts for name, rows in of.items())
    return HorizontalAgreement(
        run=app.run,
        parties=parties,
        training=app.training,
        lab=False,
        model=app.model,
        horizontal=app.horizontal.model_copy(update={"rounds": len(counts)}),
        recorded_rows=() if same else tuple(counts),
    )


def _counts(app: RecordedApp, messages: Sequence[Message], names: Mapping[str, str]) -> _Counts:
    """The rows that each client trained on in the round of ``messages``."""
    found = {names[m.node]: _rows(app, m) for m in messages if m.received}
    if not any(found.values()):
        raise DataError(
            f"round {messages[0].round} was trained on 0 rows: its mean has no weights, record anew"
        )
    return found


def _rows(app: RecordedApp, message: Message) -> int:
    name = app.weighted_by or message.weighted_by
    value = next((message.metrics[n] for n in ([name] if name else _ROWS) if n in message.metrics), None)
    batch, equal = app.training.batch_size, app.horizontal.weights == "equal"
    if name == _STEPS:
        value = batch * (value if isinstance(value, int | float) and 0 < value < np.inf else 1)
    if not value and equal:
        return batch * (app.horizontal.local_steps or 1)
    if value is None:
        raise DataError(
            f"node {message.node} returned no parameters with the metric {name or _ROWS[0]!r}: record an app "
            'that sends it, or set horizontal.weights = "equal" if its mean is'
        )
    if not isinstance(value, int | float) or not (0 <= value <= INT32_MAX and value % 1 == 0):
        raise DataError(
            f"node {message.node} returned {name or _ROWS[0]} = {value}: let it send its number of rows"
        )
    return int(value)


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
    if not all(np.isfinite(array).all() for array in arrays):
        raise DataError(
            f"node {message.node} has numbers that are not finite in round {message.round}: record an app "
            "whose training does not diverge"
        )
    return {name: array.astype(like[name].dtype) for name, array in zip(like, arrays, strict=True)}


def _averaged(
    federation: HorizontalAgreement, rounds: Sequence[Sequence[Message]], names: Mapping[str, str]
) -> tuple[Parameters, list[Released], Parameters]:
    """Parameters sent first, all updates, and the parameters after the last round."""
    like, current = _like(federation), None
    start: Parameters = {}
    updates: list[Released] = []
    for number, here in enumerate(rounds):
        sent = [_named(m, like) for m in here if not m.received]
        if not sent:
            raise DataError(f"round {here[0].round} was not recorded whole: record anew")
        near, weights = _near(here), federation.in_round(number).weights(names.values())
        _check_equal(sent, sent[0], near, f"clients of round {here[0].round} got different parameters")
        if current is None:
            start = sent[0]
        else:
            what = f"round {here[0].round} does not begin with the clients' mean"
            _check_equal([current], sent[0], max(near, _near(rounds[number - 1])), what)
        due = [
            _update(federation.run, names[m.node], number, sent[0], _named(m, like), added=m.difference)
            for m in sorted(here, key=lambda m: names[m.node])
            if m.received and weights.get(names[m.node])
        ]
        current = averaged(federation, sent[0], due)
        updates += due
    assert current is not None
    return start, updates, current


def _check_evaluated(messages: Sequence[Message], last: Sequence[Message], end: Parameters) -> None:
    """What clients were sent to evaluate after the ``last`` round are the parameters ``end`` after it."""
    for m in messages:
        if not m.trains and not m.received and m.arrays and m.round >= last[0].round:
            what = f"what was evaluated after round {last[0].round} is not the clients' mean"
            _check_equal([_named(m, end)], end, max(_near(last), _near([m])), what)


def _near(messages: Sequence[Message]) -> float:
    """How far a mean may be off, in shares of a parameter and of 1."""
    kinds = {array.dtype for m in messages for array in m.arrays or () if array.dtype.kind == "f"}
    return max([_NEAR, *(_STEPS_OFF * float(np.finfo(kind).eps) for kind in kinds)])


def _check_equal(found: Sequence[Parameters], due: Parameters, near: float, what: str) -> None:
    for parameters in found:
        if not all(np.allclose(parameters[n], v, rtol=near, atol=near) for n, v in due.items()):
            raise DataError(
                f'{what}: only the mean by numbers of rows, or with horizontal.weights = "equal" an equal '
                "one, can be read (FedAvg), record an app that averages so"
            )


def _update(
    run: str, client: str, number: int, sent: Parameters, reply: Parameters, *, added: bool
) -> Released:
    exchange = Exchange(run, Phase.TRAIN, number, number)
    tensors = {n: sealed(reply[n] if added else reply[n] - value) for n, value in sent.items()}
    return Released(client, exchange, Point.UPDATE, _NO_ROWS, tensors=tensors)


def _metrics(
    run: str, messages: Sequence[Message], names: Mapping[str, str], rounds: Sequence[int]
) -> Iterator[Released]:
    """What clients sent beside parameters, and in evaluations and queries, after the newest of ``rounds``."""
    for step, m in enumerate(messages):
        if m.received and m.metrics:
            exchange = Exchange(run, Phase.TRAIN, max(0, bisect(rounds, m.round) - 1), step)
            yield Released(names[m.node], exchange, Point.METRICS, _NO_ROWS, tensors=m.tensors)
