"""The nouns that every layer shares: exchanges, released payloads, knowledge, estimates.

It computes nothing and uses no files or wires. Letters follow ``docs/notation.md``.
"""

from __future__ import annotations  # Role may get a name more before it is read

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from vflens import array
from vflens.array import Payload
from vflens.errors import KnowledgeError, ProtocolError

Array: TypeAlias = array.Array
INT32_MAX = 2**31 - 1  # what the wire carries

#: What is written or printed as JSON or TOML, and the same where it is only read.
Document: TypeAlias = dict[str, Any]
Facts: TypeAlias = Mapping[str, Any]
#: Called with a stage, its units done, and its units in all.
Progress: TypeAlias = Callable[[str, int, int], None]
#: How row ids are compared: by private set intersection, or by digests under a shared key.
AlignMode: TypeAlias = Literal["psi", "hmac"]
#: What a label is: one of several classes, or a number between public bounds.
LabelKind: TypeAlias = Literal["classes", "number"]
#: What a payload may hold: dtype → bytes an element.
DTYPES: Mapping[str, int] = {"<f8": 8, "<f4": 4, "<i8": 8, "<i4": 4, "|u1": 1, "|b1": 1}
MAX_DIMENSIONS = 8
_LITTLE = sys.byteorder == "little"


class Role(StrEnum):
    """The role of a process in the federation; ``operator`` is the person who asks a running party."""

    PASSIVE = "passive"
    ACTIVE = "active"
    COORDINATOR = "coordinator"
    CLIENT = "client"
    SERVER = "server"
    OPERATOR = "operator"


class Phase(StrEnum):
    """When a payload crossed the wire. The LR papers assume that TRAIN is protected."""

    TRAIN = "train"
    PREDICT = "predict"
    DISCLOSE = "disclose"


class Setting(StrEnum):
    """How the parties divide the data: columns of the same rows, or rows with the same columns."""

    VERTICAL = "vertical"
    HORIZONTAL = "horizontal"


class Point(StrEnum):
    """What a payload is. Summed and partial logits are EMBEDDING; SCORES are log-probabilities (n, k); UPDATE
    is what a client's training adds to PARAMETERS, by name; MASKED_UPDATE hides it from its receiver, who
    learns only the sum of all (:mod:`vflens.protocol.horizontal.masked_update`). SHARES are of columns, and
    OPENING is what two parties open in a step of protected training (:mod:`vflens.protocol.vertical.shares`).
    METRICS are what a client of another framework sent beside its arrays, by name.
    """

    EMBEDDING = "embedding"
    GRADIENT = "gradient"
    SCORES = "scores"
    PARAMETERS = "parameters"
    DATASET = "dataset"
    AUXILIARY = "auxiliary"
    MOMENTS = "moments"
    UPDATE = "update"
    MASKED_UPDATE = "masked_update"
    SHARES = "shares"
    OPENING = "opening"
    METRICS = "metrics"


class Knowledge(StrEnum):
    """The kinds of data that an attack may declare to need.

    AUXILIARY also gives MOMENTS: rows are enough to estimate them. RELEASED_TABLE is a defence's version of a
    table: noisy rows, without a grant. PUBLIC are rows of other people, none of them in the run: no party
    grants them.
    """

    SCORES = "scores"
    PARAMETERS = "parameters"
    OWN_FEATURES = "own_features"
    OWN_LABELS = "own_labels"
    EMBEDDINGS = "embeddings"
    GRADIENTS = "gradients"
    AUXILIARY = "auxiliary"
    KNOWN_LABELS = "known_labels"
    MOMENTS = "moments"
    RELEASED_TABLE = "released_table"
    METADATA = "metadata"
    ARCHITECTURE = "architecture"
    PUBLIC = "public_rows"
    OPENINGS = "openings"


class RowStatus(StrEnum):
    """The state of one row of an estimate; the worst that applies."""

    OK = "ok"
    SATURATED = "saturated"  # a score was exactly 0 or 1: the equations with infinite log-ratios were dropped
    INCONSISTENT = "inconsistent"  # no x satisfies the equations
    EMPTY_BOX = "empty_box"  # solutions exist, none of them inside the box
    AMBIGUOUS = "ambiguous"
    NOT_CONVERGED = "not_converged"


class Exchange(NamedTuple):
    """The key of idempotence, noise and order: one exchange happens once.

    ``round`` is the epoch in TRAIN and the model version in PREDICT and DISCLOSE; ``step`` counts within
    the run and phase and never repeats.
    """

    run: str
    phase: Phase
    round: int
    step: int


@dataclass(frozen=True, eq=False)
class Released(Payload):
    """A read-only payload as it left its sender: only the release gate and the codec make it.

    ``rows`` are int32 positions in the aligned order (empty for parameters and moments). ``tensors`` are
    read-only, C-contiguous and little-endian; None: the sender withheld them.
    """

    sender: str
    exchange: Exchange
    point: Point
    rows: Array
    tensors: Mapping[str, Array] | None

    def tensor(self, name: str) -> Array:
        """The tensor called ``name``.

        Raises:
            KnowledgeError: it was withheld.
            ProtocolError: it is not there.
        """
        if self.tensors is None:
            raise KnowledgeError(f"{self.point} of party {self.sender!r} were withheld by a defence")
        if name not in self.tensors:
            raise ProtocolError(
                f"{self.point} from {self.sender!r} carries no tensor {name!r}: it has {sorted(self.tensors)}"
            )
        return self.tensors[name]


MAX_PIXEL = 4095  # a peer's number decides the size of a picture
#: Row and column of a grey image's pixel; row, column and channel of a colour image's number.
Pixel: TypeAlias = tuple[int, int] | tuple[int, int, int]


@dataclass(frozen=True)
class ColumnInfo:
    """Public metadata of one column, in the units of the party's file.

    ``low`` and ``high`` are declared bounds, None when undeclared (the training extremes then scale the
    column). ``alphabet`` lists the values of a column that takes finitely many. ``pixel`` is the place of the
    column in an image.
    """

    name: str
    low: float | None = None
    high: float | None = None
    _: KW_ONLY
    alphabet: tuple[float, ...] | None = None
    pixel: Pixel | None = None


@dataclass(frozen=True)
class Owner:
    """The owner's facts that a defence may read; never serialised.

    ``columns`` are the party's own, scaled, and ``labels`` int64 (N,), both in aligned order: the active
    party's labels are those that its defences of labels drew, float64 in [0, 1] where they are numbers. A
    passive party may hold labels too: what a party does in the federation is its ``role``. ``parameters`` are
    those that others disclosed to it, for a defence that ``needs_parameters``. ``names`` are those of the
    columns.
    """

    name: str
    columns: array.ScaledColumns | None = None
    labels: Array | None = None
    n_classes: int = 0
    parameters: Mapping[str, Array] | None = None
    role: Role = Role.PASSIVE
    names: tuple[str, ...] = ()

    @property
    def features(self) -> Array | None:
        """The columns in [0, 1] as float64 (N, d); of images a new array of eight times their memory."""
        return None if self.columns is None else self.columns[:]


@dataclass(frozen=True)
class Claim:
    """What a defence guarantees, as data that a test can hold it to.

    ``argmax``: the arg-max of a row before is among its maximisers after. ``scores_exact``: scores do not
    move. ``same_optimum``: training to the optimum of the penalised loss ends in the same scores, and
    ``unpenalised_bias``: only with ``training.penalise_bias = false``. ``distortion``: g = ‖W − Wₙ‖²/(dk) of
    the disclosed weights. ``noise_std``: the standard deviation of the noise added at its hook; on a gradient
    that of the noise on a row's own gradient, n times its part in a batch of n rows. ``epsilon``, ``delta``:
    differential privacy, per exchange; ``mu``: Gaussian differential privacy of the ideal law of the noise,
    per exchange: neighbours are no easier to tell apart than N(0, 1) and N(mu, 1);
    :mod:`vflens.member.accountant` counts the sampler's error.
    ``error_bound``: no locally unbiased estimate of a released cell has a smaller mean squared error;
    ``linear_error``: that of the best linear one by who knows mean and covariance. ``test_error``: no test of
    one released gradient tells a row of the hidden class from another with a smaller (FPR + FNR)/2, in an
    exchange with rows of both whose gradients are Gaussian with one coordinate variance. ``key_error``: no
    guess of a number of a passport's key that uses nothing released has a smaller mean squared error.
    ``key_range``: N, each mean of a passport's key being drawn from U(−N, 0).
    ``decodes``: ``on_outputs`` takes the code of each class, as ``on_labels`` makes it, back to that class;
    ``label_entropy``: no code has a smaller entropy, in nats. ``levels``: what leaves in an exchange has at
    most so many different numbers. ``group_rows``: each row of an exchange of at least so many leaves with
    the same numbers as so many, itself counted.
    """

    argmax: bool = False
    scores_exact: bool = False
    same_optimum: bool = False
    unpenalised_bias: bool = False
    distortion: float | None = None
    noise_std: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    error_bound: float | None = None
    linear_error: float | None = None
    test_error: float | None = None
    key_error: float | None = None
    key_range: float | None = None
    decodes: bool = False
    label_entropy: float | None = None
    levels: int | None = None
    group_rows: int | None = None

    def unbounded(self) -> Claim:
        """The same with ε = ∞ in place of a differential privacy that others' rows undo."""
        if self.epsilon is None and self.mu is None:
            return self
        return replace(self, epsilon=math.inf, delta=0.0, mu=None)


@dataclass(frozen=True)
class Moments:
    """Mean (d,), or one of each row (N, d), and covariance (d, d) of scaled columns; None if unknown."""

    mean: Array
    covariance: Array | None = None


@dataclass(frozen=True, eq=False)
class Estimate:
    """What an attack believes: ``values`` float64 (N, d) of ``target``'s columns, scaled to [0, 1].

    ``rows`` int32 (N,) positions in the aligned order, ``status`` (N,) strings of :class:`RowStatus`,
    ``extras`` per-row arrays such as the residual.
    """

    target: str
    rows: Array
    values: Array
    status: Array
    extras: Mapping[str, Array] = field(default_factory=dict)

    def arrays(self) -> dict[str, Array]:
        """Its file: ``rows``, ``values``, ``status``, each of ``extras`` as "extra_" and its name."""
        extras = {f"extra_{name}": extra for name, extra in self.extras.items()}
        return {**extras, "rows": self.rows, "values": self.values, "status": self.status}


def statuses(n: int, status: RowStatus = RowStatus.OK) -> Array:
    """An array of ``n`` row states, wide enough to hold any of them."""
    width = max(len(s) for s in RowStatus)
    return np.full(n, str(status), dtype=f"<U{width}")


def numbered(states: Iterable[str]) -> Array:
    """The place of each of ``states`` in :class:`RowStatus`, uint8 (n,).

    Raises:
        KeyError: one is no state of a row.
    """
    places = {str(state): place for place, state in enumerate(RowStatus)}
    return np.array([places[state] for state in states], np.uint8)


def sealed(array: Array) -> Array:
    """Little-endian, contiguous, read-only; a view where nothing had to change."""
    if not (_LITTLE and array.dtype.isnative):
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    result = np.ascontiguousarray(array).view()
    result.flags.writeable = False
    return result


class Signature(NamedTuple):
    """A party's word for a statement: its certificate in PEM, then those that lead to its authority, and the
    signature in hexadecimal.
    """

    certificates: str
    value: str


@dataclass(frozen=True)
class PartyInfo:
    """What every party knows of another: its name, its role, its columns, the classes it labels.

    ``label`` has the bounds of a numeric label, ``n_classes`` is then 1. Of a client also the names of the
    classes, how many rows it has to train and to predict, and with secure aggregation its public key of
    masks, 64 hexadecimal digits, which it signs where it has a certificate; ``categories`` of each column, if
    it has codes of texts: a digest of these texts in their order, 16 hexadecimal digits, else "".
    """

    name: str
    role: Role
    _: KW_ONLY
    columns: tuple[ColumnInfo, ...] = ()
    n_classes: int = 0
    label: ColumnInfo | None = None
    classes: tuple[str, ...] = ()
    train_rows: int = 0
    predict_rows: int = 0
    mask_key: str = ""
    categories: tuple[str, ...] = ()
    signature: Signature | None = field(default=None, compare=False)  # each time another

    def in_full(self, before: tuple[ColumnInfo, ...]) -> PartyInfo:
        """It with its columns: a client that names none has those of the one ``before``."""
        return replace(self, columns=before) if self.role is Role.CLIENT and not self.columns else self
