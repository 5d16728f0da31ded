"""A data party's run after alignment, and the party as its adversary and its figures see it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from structlog.typing import FilteringBoundLogger

from vflens.config import ActiveConfig, PassiveConfig
from vflens.models.part import Part
from vflens.protocol.federation import Federation
from vflens.protocol.link import Links
from vflens.storage.metrics import Metrics
from vflens.storage.transcript import Transcript
from vflens.tables.scaling import Scaler
from vflens.tables.table import Table
from vflens.types import Array, Role

P_co = TypeVar("P_co", bound=Part, covariant=True)


@dataclass(frozen=True, eq=False)
class Prepared(Generic[P_co]):
    """A run after alignment: all arrays in aligned order.

    ``truth`` (N, d) are the party's own columns scaled to [0, 1], ``inputs`` the same after its defences,
    ``model`` is its part of the model.
    """

    federation: Federation
    truth: Array
    inputs: Array
    clipped: int
    model: P_co


def aligned_in_place(features: Array, order: Array, scaler: Scaler) -> tuple[Array, int]:
    """The rows ``order`` of ``features``, moved and scaled in place; and the number of clipped values.

    A second copy would double what the party holds.
    """
    truth = features[: len(order)]
    for j in range(truth.shape[1]):
        truth[:, j] = features[order, j]
    return truth, scaler.transform_in_place(truth)


class Host(Protocol):
    """The interface of a data party for its adversary and its figures, as
    :class:`vflens.clients.data_party.DataParty`.
    """

    name: str
    role: Role
    links: Links
    secret: bytes
    folder: Path
    table: Table
    transcript: Transcript
    metrics: Metrics
    log: FilteringBoundLogger

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Held while its model is used."""

    @property
    def config(self) -> PassiveConfig | ActiveConfig:
        """Its configuration."""

    @property
    def labels(self) -> Array | None:
        """The true labels int64 (N,) in aligned order, at the active party."""

    @property
    def run(self) -> Prepared[Part]:
        """Rows, inputs and model of the run."""
