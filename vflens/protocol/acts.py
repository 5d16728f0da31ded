"""The acts by which parties call each other: one class per act, and its reply.

Both links carry these; over gRPC each act is one rpc (``protos/vfl.proto``). Who may ask whom stands in
:mod:`vflens.protocol.access`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar

import numpy as np

from vflens.protocol.agreement import Agreement
from vflens.protocol.standing import Standing
from vflens.storage.sent_heads import SentHeads
from vflens.types import Array, Exchange, PartyInfo, Point, Released, RowStatus, numbered

R = TypeVar("R")
#: What a party learns from in a step, and what it gives.
_PAIRS = (
    (Point.EMBEDDING, Point.GRADIENT),
    (Point.OPENING, Point.OPENING),
    (Point.PARAMETERS, Point.MASKED_UPDATE),
    (Point.PARAMETERS, Point.UPDATE),  # last: a client's defences see its update before it is masked
)
ANSWERS = {learned: given for pair in _PAIRS for learned, given in (pair, pair[::-1])}
#: The scored set of the rows of a SplitFed round, in the order in which their embeddings were first sent.
BATCHES = "batches"
#: That of the rows of all clients of a round together, in no order.
SUMS = "sums"
COLLUDES = "+"  # between the names of parties that are one adversary; no name has it
MAX_ATTACKS = 256  # in one submission: bounds its rows in the target's metrics


class Act(Generic[R]):
    """A request; ``R`` is the type of its reply."""


class Signed(Act[R]):
    """A request that names its ``sender``, which must be the caller."""

    sender: str


@dataclass(frozen=True)
class Done:
    """The reply of an act that only has an effect."""


@dataclass(frozen=True)
class Describe(Act[PartyInfo]):
    """Who are you, and what are your columns? What you sign of it is of the run with this ``nonce``."""

    run: str
    nonce: str = ""


@dataclass(frozen=True, eq=False)
class Prepare(Act[Done]):
    """Start the run: ``order`` int32 (N,) are positions in this party's digests under ``salts``, none in a
    horizontal run.
    """

    federation: Agreement
    order: Array
    salts: bytes = b""


@dataclass(frozen=True)
class Rejoin(Act[Standing]):
    """The coordinator, or this party, was restarted: here I stand, where do you?"""

    run: str
    standing: Standing


@dataclass(frozen=True, eq=False)
class StepReply:
    """The reply of a training step; ``stop`` is the active party's early stopping."""

    released: Released | None
    stop: bool = False


@dataclass(frozen=True, eq=False)
class Step(Act[StepReply]):
    """One training step (streamed).

    To a passive party: ``received`` is the gradient of the step before (None at the start); it learns from
    it, then releases its embedding of ``rows``; without rows (the last step) it only learns. To the
    active party: ``received`` holds the passive parties' summed embeddings of ``rows``; it releases the
    gradient, then learns. As aggregator, the active party asks the passive parties itself.
    To a client: ``received`` holds the parameters of a round; it trains them and releases their update,
    after the last round it only keeps them. ``participants`` are the clients of a round whose updates are
    masked, in name order. In protected training ``received`` and the reply hold shares and what was opened
    (:mod:`vflens.protocol.vertical.shares`).
    """

    exchange: Exchange
    rows: Array
    received: Released | None
    participants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trained:
    """The steps of a whole training, and the ``first`` since the last restart."""

    first: int
    steps: int


@dataclass(frozen=True)
class Train(Act[Trained]):
    """Train with the passive parties, epoch by epoch as :class:`Epoch` allows (it has no deadline)."""

    run: str


@dataclass(frozen=True, eq=False)
class Order:
    """The training rows int32 (n,) of an epoch in their order; none: training is over."""

    rows: Array


@dataclass(frozen=True)
class Epoch(Act[Order]):
    """Ask for the order of the rows in epoch ``number``; ``stop`` is the active party's early stopping."""

    run: str
    number: int
    stop: bool = False


@dataclass(frozen=True)
class Disclose(Act[tuple[Released, ...]]):
    """Release your grants to the party ``to``, if there are any."""

    run: str
    version: int
    to: str


@dataclass(frozen=True, eq=False)
class Deliver(Act[Done]):
    """A disclosure, relayed unchanged."""

    released: Released


@dataclass(frozen=True)
class Begin(Act[Done]):
    """Training and disclosures are over: the active party predicts; attack, then send Finished."""

    run: str
    version: int


@dataclass(frozen=True, eq=False)
class Forward(Act[Released]):
    """Release your embedding of prediction ``rows`` int32 (n,)."""

    exchange: Exchange
    rows: Array


@dataclass(frozen=True, eq=False)
class Predict(Act[Released]):
    """The released scores of the rows of ``embedding``, the active party's own partial logits."""

    embedding: Released


@dataclass(frozen=True, eq=False)
class Answers:
    """Prediction rows: their ``numbers`` int32 (n,) counted from 0, their ``ids``, and log-probabilities
    ``scores`` float64 (n, k) of the ``classes``; of a numeric ``label``, which has none, the predictions
    (n, 1) in its unit.
    """

    numbers: Array
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    scores: Array
    label: str = ""


@dataclass(frozen=True)
class Query(Act[Answers]):
    """An operator asks the active party for the scores of prediction ``rows``: "all", or numbers and ranges
    as 0-9,17.
    """

    rows: str


@dataclass(frozen=True, eq=False)
class Guess:
    """The estimate of one attack: ``values`` float64 of the target's columns (n, d) or classes (n, k).

    ``status`` uint8 (n,), from :func:`vflens.types.numbered`: a text per row would take 64 bytes of the
    target's memory.
    """

    attack: str
    values: Array
    status: Array

    def has(self, *states: RowStatus) -> Array:
        """Whether each row is in one of ``states``, bool (n,)."""
        return np.isin(self.status, numbered(states))

    def in_box(self) -> Self:
        """The nearest guess of columns in [0, 1], where the truth is: no adversary gives up what it knows."""
        return replace(self, values=np.clip(self.values, 0, 1))


@dataclass(frozen=True, eq=False)
class Submission(Signed["Receipt"]):
    """All attacks of one milestone by the party ``sender``; ``rows`` int32 (n,); ``scored_set`` is "predict",
    "train", "batches" or "sums".

    A client has columns and labels: ``estimates`` is "features" or "labels", elsewhere "". ``step``: the
    guesses are of the rows of this round, and ``rows`` are places; None: of ``rows``. A round's rows have no
    known order, but for "batches": there they stand as SplitFed first sent them. Those of "sums" are the
    rows of all clients of the round.
    """

    run: str
    sender: str
    scored_set: str
    rows: Array
    guesses: tuple[Guess, ...]
    estimates: str = ""
    step: int | None = None

    @property
    def metrics_of(self) -> str:
        """What figures call the scored rows."""
        return metrics_of(self.scored_set, self.step)


def together(sender: str) -> list[str]:
    """The parties of the ``sender`` of a submission: those that collude are one, "active+coordinator"."""
    return sender.split(COLLUDES)


def checked_metrics_of(text: str) -> str:
    """``text``, if metrics call rows so.

    Raises:
        ValueError: they do not.
    """
    if not re.fullmatch(rf"|train|predict|(round|{BATCHES}|{SUMS})-[0-9]{{1,18}}", text):
        raise ValueError(f"expected train, predict, round-N, {BATCHES}-N or {SUMS}-N")
    return text


def metrics_of(scored_set: str, step: int | None) -> str:
    """What figures call the rows of ``scored_set``, in round ``step``."""
    if step is None:
        return scored_set
    return f"{scored_set if scored_set in (BATCHES, SUMS) else 'round'}-{step}"


@dataclass(frozen=True)
class Receipt:
    """The answer to a submission. ``errors`` (attack → MSE, or share of wrong labels) is
    empty outside lab mode.
    """

    rows: int
    attacks: int
    errors: Mapping[str, float]


@dataclass(frozen=True)
class Finished(Signed[Done]):
    """The data party ``sender`` has attacked, the active one has predicted too; ``heads`` of its logs."""

    run: str
    sender: str
    heads: SentHeads = field(default_factory=SentHeads)


@dataclass(frozen=True)
class Stop(Act[Done]):
    """The run is over; ``failure`` is the reason if it failed.

    ``heads``: party → the heads of its logs, the coordinator's now, the others' as it received them.
    """

    run: str
    failure: str = ""
    heads: Mapping[str, SentHeads] = field(default_factory=dict)
