"""Protected training: where each party's columns stand, how messages are numbered, and what they hold.

The active party and the first passive party compute on shares (:mod:`vflens.numerics.shares`), the
coordinator deals masks. A step is two messages of the active party to the other computing one, and their
answers; each message also holds what its sender opened last, so that both record all that was opened:

=======  ==================  ================================  ====================================
message  number              the active party's                the answer
=======  ==================  ================================  ====================================
first    2·step              rho, change (of the step before)  change (of the step before), delta;
                             ; its share of delta              its share of logits
second   2·step + 1          delta, logits; its share of rho   logits, rho; its share of change
last     2·(all steps)       rho, change; its share of the     change; its share of all other
                             other one's parameters            parameters
=======  ==================  ================================  ====================================

Shares are uniform numbers. What is opened is uniform too: every one has a mask of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vflens.errors import ConfigError, ProtocolError
from vflens.models.family import ModelFamily
from vflens.models.settings import ON_SHARES, RATE_OF_A_NUMBER, Training
from vflens.numerics.shares.response import Response
from vflens.numerics.shares.scale import Scale, fitting
from vflens.numerics.shares.step import mask_sizes
from vflens.protocol.checks import check_origin
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.randomness import derive, masks
from vflens.types import Array, Exchange, PartyInfo, Phase, Point, Released, Role
from vflens.words import counted

_CHUNK_NUMBERS = 1 << 19  # 4 MiB
_DEALT_NUMBERS = 1 << 17  # 1 MiB
_SEED_BYTES = 32
_WIRE = np.dtype("<i8")  # uint64 as tensors carry it


def scale_of(response: Response, training: Training, columns: int, steps: int) -> Scale:
    """The scale of the integers.

    Raises:
        ValueError: none fits the settings; names them and the remedy.
    """
    rates = training.learning_rate, training.l2, training.batch_size
    try:
        return fitting(response, *rates, columns=columns, steps=steps)
    except ValueError as error:
        raise ValueError(f"training.{error}") from None


def check_protection(model: ModelFamily, training: Training) -> None:
    """Refuse what a protected training cannot do; its other aggregator is refused by the model's family.

    Raises:
        ValueError: names the setting and the remedy, for pydantic.
    """
    if not training.is_protected:
        return
    with_it = "with training.protection = 'shares'"
    if model.response is None:
        raise ValueError(
            f"model.family {with_it}: {model.title} has another residual than σ(z) − y, or z − y of a "
            f"number: train {ON_SHARES}, or leave the protection out"
        )
    if training.optimizer != "sgd":
        rate = "a larger learning_rate" if model.response.bounded else RATE_OF_A_NUMBER
        raise ValueError(
            f"training.optimizer = {training.optimizer!r} {with_it}: it divides by what nobody knows, take "
            f"'sgd' and {rate}"
        )
    if training.patience:
        raise ValueError(
            f"training.patience = {training.patience} {with_it}: nobody sees a loss, and stopping early "
            "would tell of it; set it to 0"
        )
    if model.response.bounded:  # else it depends on the columns of all parties
        scale_of(model.response, training, columns=1, steps=1)


@dataclass(frozen=True, eq=False)
class SharedRun:
    """The public facts of a protected training of ``federation``."""

    federation: VerticalAgreement

    @cached_property
    def computing(self) -> tuple[str, str]:
        """The names of the two parties that compute; the first is the active one."""
        return self.federation.active.name, self.federation.passive[0].name

    @property
    def response(self) -> Response:
        """What answers a logit.

        Raises:
            ConfigError: the model has none.
        """
        found = self.federation.model.response
        if found is None:
            raise ConfigError(f"{self.federation.model.title} is not trained on shares")
        return found

    @cached_property
    def scale(self) -> Scale:
        """See :func:`scale_of`.

        Raises:
            ConfigError: none fits the settings; names them and the remedy.
        """
        try:
            return scale_of(self.response, self.federation.training, self.width, self.federation.steps)
        except ValueError as error:
            raise ConfigError(str(error)) from None

    @property
    def two_classes(self) -> bool:
        """Whether the first class has the logit 0, and the other one the only logit."""
        return self.federation.n_classes == 2

    @property
    def logits(self) -> int:
        """Logits of a row: one for two classes or a number, else one for each class."""
        return 1 if self.two_classes else self.federation.n_classes

    @cached_property
    def columns(self) -> Mapping[str, slice]:
        """Where each party's columns stand; the bias, a column of ones, is the last of the first passive
        party's.
        """
        return shared_columns(self.federation.parties)

    @property
    def width(self) -> int:
        """Columns of all parties, and the bias."""
        return sum(len(p.columns) for p in self.federation.parties) + 1

    @cached_property
    def decayed(self) -> Array:
        """Which parameters the penalty counts, bool (d, 1)."""
        found = np.ones((self.width, 1), bool)
        found[self.columns[self.computing[1]].stop - 1] = self.federation.training.penalise_bias
        return found

    @cached_property
    def places(self) -> Array:
        """The place of each aligned row among the training rows, int (rows,)."""
        found = np.full(self.federation.rows, -1)
        found[self.federation.train] = np.arange(len(self.federation.train))
        return found

    @property
    def chunks(self) -> list[Array]:
        """The training rows in pieces whose features fit a message."""
        train = self.federation.train
        at_once = max(1, _CHUNK_NUMBERS // self.width)
        return [train[i : i + at_once] for i in range(0, len(train), at_once)]

    def check_chunk(self, number: int, rows: Array) -> None:
        """Refuse other ``rows`` than the one of :attr:`chunks` with this ``number``, and any after them all.

        Raises:
            ProtocolError: names the number.
        """
        due = [*self.chunks, *(rows[:0] for _ in self.federation.parties)]
        if not 0 <= number < len(due) or rows.tobytes() != due[number].tobytes():
            raise ProtocolError(
                f"shares {number} are of other rows: ask for the training rows chunk by chunk"
            )

    def mask_sizes(self, rows: int) -> tuple[int, int]:
        """See :func:`vflens.numerics.shares.step.mask_sizes`."""
        return mask_sizes(rows, self.width, self.logits, self.response)

    def rows_in(self, step: int) -> int:
        """How many rows ``step`` has."""
        size, train = self.federation.training.batch_size, len(self.federation.train)
        return min(size, train - (step % self.federation.epoch_steps) * size)

    def check_rows(self, number: int, rows: Array) -> None:
        """Refuse other ``rows`` than a step has, or any in the last message.

        Raises:
            ProtocolError: names the misfit.
        """
        step = number // 2
        due = self.rows_in(step) if step < self.federation.steps else 0
        if len(rows) != due:
            raise ProtocolError(f"message {number} is of {counted(len(rows), 'row')}: {due} are due")
        if due:
            self.federation.checked_rows(rows, Phase.TRAIN)

    def dealt_steps(self, step: int) -> range:
        """The steps for which the dealer answers at once, ``step`` among them: after a restart the same."""
        most = max(1, _DEALT_NUMBERS // self.mask_sizes(self.federation.training.batch_size)[1])
        first = step - step % most
        return range(first, min(first + most, self.federation.steps))

    def exchange(self, number: int) -> Exchange:
        """The exchange of the message ``number``."""
        return Exchange(self.federation.run, Phase.TRAIN, number // 2 // self.federation.epoch_steps, number)

    def dealt_exchange(self, step: int) -> Exchange:
        """The exchange of what the dealer sends for ``step``, numbered by the first step that it is for."""
        first = self.dealt_steps(step).start
        return Exchange(self.federation.run, Phase.TRAIN, first // self.federation.epoch_steps, first)

    def shapes(self, number: int, rows: int, *, answer: bool) -> dict[str, tuple[int, ...]]:
        """The arrays of the message ``number`` of a step of ``rows``, or of its answer; see the table."""
        step, second = divmod(number, 2)
        theta, z = (self.width, self.logits), (rows, self.logits)
        if second:
            opened = {"logits": z, "rho": z} if answer else {"delta": theta, "logits": z}
            return {**opened, **({"change share": theta} if answer else {"rho share": z})}
        before = {} if not step else {"change": theta}
        if not answer and step:
            before["rho"] = (self.rows_in(step - 1), self.logits)
        if step == self.federation.steps:
            asked = self.columns[self.computing[1]]
            own = asked.stop - asked.start
            return {**before, "parameters share": (self.width - own if answer else own, self.logits)}
        return {**before, **({"delta": theta, "logits share": z} if answer else {"delta share": theta})}

    def parameters(self, theta: Array) -> dict[str, Array]:
        """The model's weights (k, d) of the parameters ``theta`` float64 (d, k'), as the model has them."""
        if self.two_classes:
            theta = np.hstack([np.zeros_like(theta), theta])
        return {"weight": theta.T}


def sent(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """uint64 ``arrays`` as tensors."""
    return {name: np.ascontiguousarray(array).view(_WIRE) for name, array in arrays.items()}


def checked(
    released: Released | None, sender: str, point: Point, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Array]:
    """The arrays uint64 of ``sender`` in ``released``, by name.

    Raises:
        ProtocolError: it is nothing of ``sender`` and ``point``, or has other arrays than ``shapes``.
    """
    if released is None:
        raise ProtocolError(f"party {sender!r} answered without its shares")
    check_origin(released, sender, point)
    found = {name: f"{t.shape} {t.dtype}" for name, t in (released.tensors or {}).items()}
    due = {name: f"{shape} {_WIRE}" for name, shape in shapes.items()}
    if found != due:
        raise ProtocolError(
            f"{point} of {sender!r} in step {released.exchange.step} hold {found}: {due} are due"
        )
    return {name: released.tensor(name).view(np.uint64) for name in shapes}


def checked_seed(party: str, seed: bytes) -> bytes:
    """The ``seed`` of the masks of ``party``.

    Raises:
        ProtocolError: it has another length than seeds have.
    """
    if len(seed) != _SEED_BYTES:
        raise ProtocolError(f"a seed of {counted(len(seed), 'byte')} from {party!r}: {_SEED_BYTES} are due")
    return seed


def mask_seed(secret: bytes, run: str) -> bytes:
    """From which a computing party with this ``secret`` of masks, and the dealer, draw its shares of them in
    ``run``.
    """
    return derive(secret, "shares of masks", run)


def features_mask(seed: bytes, run: SharedRun) -> Array:
    """The share uint64 (n, d) under ``seed`` of the mask U of all training rows."""
    rows, columns = len(run.federation.train), run.width
    return masks(derive(seed, "features"), rows * columns).reshape(rows, columns)


def step_masks(seed: bytes, step: int, count: int) -> Array:
    """The first ``count`` shares under ``seed`` of the masks of ``step``, uint64."""
    return masks(derive(seed, "step", step), count)


def shared_columns(parties: Sequence[PartyInfo]) -> Mapping[str, slice]:
    """Party → its columns in the one array, and after those of the first passive party the bias."""
    found, start, bias = {}, 0, 1
    active = [p for p in parties if p.role is Role.ACTIVE]
    for party in (*active, *sorted((p for p in parties if p.role is Role.PASSIVE), key=lambda p: p.name)):
        end = start + len(party.columns) + (0 if party.role is Role.ACTIVE else bias)
        bias = bias if party.role is Role.ACTIVE else 0
        found[party.name] = slice(start, end)
        start = end
    return found
