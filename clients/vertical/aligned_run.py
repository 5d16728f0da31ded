"""A data party's run after alignment, and the party as its adversary and its figures see it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from structlog.typing import FilteringBoundLogger

from vflens.array import ScaledColumns
from vflens.clients.vertical.early_stopping import EarlyStopping
from vflens.clients.vertical.spending import Spending
from vflens.config import ActiveConfig, PassiveConfig
from vflens.models.part import ActivePart, Part
from vflens.plugins.chain import DefenseChain
from vflens.protocol.link import Links
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.score.service import ScoringService
from vflens.storage.metrics import Metrics
from vflens.storage.transcript import Transcript
from vflens.tables.table import Table
from vflens.types import Array, Exchange, Role

T = TypeVar("T")
P_co = TypeVar("P_co", bound=Part, covariant=True)


@dataclass(frozen=True, eq=False)
class AlignedRun(Generic[P_co]):
    """All that exists only once rows are aligned; arrays are in aligned order.

    ``truth`` (N, d) are the party's own columns scaled to [0, 1], of which ``clipped`` values lay outside
    their bounds; ``inputs`` the same after its defences, the same object without any; ``model`` is its part
    of the model. ``spending`` counts what its releases cost, ``scoring`` compares submissions with the truth.
    ``labels`` int64 (N,) are the true ones, at the active party.
    """

    federation: VerticalAgreement
    truth: ScaledColumns
    inputs: ScaledColumns
    clipped: int
    model: P_co
    spending: Spending
    scoring: ScoringService
    labels: Array | None


@dataclass(frozen=True, eq=False)
class LabelledRun(AlignedRun[ActivePart]):
    """The active party's run.

    ``soft_labels`` (N, k) are drawn once, by its defences of labels; ``prediction_ids`` are those of the
    prediction rows, ``again`` see :func:`vflens.clients.returning.again`; ``stopping`` watches the loss;
    ``public`` see :func:`vflens.clients.public_rows.public_arrays`.
    """

    labels: Array
    soft_labels: Array
    prediction_ids: Array
    again: Array
    stopping: EarlyStopping
    public: Mapping[str, Array]


R_co = TypeVar("R_co", bound=AlignedRun[Part], covariant=True)


class PartyHost(Protocol):
    """A :class:`vflens.clients.vertical.party.VerticalParty` as its adversary and its figures take it."""

    name: str
    role: Role
    links: Links
    secret: bytes
    folder: Path
    table: Table
    transcript: Transcript
    metrics: Metrics
    log: FilteringBoundLogger
    chain: DefenseChain

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Held while its model is used."""

    @property
    def config(self) -> PassiveConfig | ActiveConfig:
        """Its configuration."""

    def patiently(self, work: Callable[[], T]) -> T:
        """The result of ``work``, repeated while its party is away."""

    def inputs_of(self, rows: Array, exchange: Exchange) -> Array:
        """The inputs (n, d) of ``rows`` as the model takes them in ``exchange``."""

    @property
    def run(self) -> AlignedRun[Part]:
        """Rows, inputs and model of the run."""
