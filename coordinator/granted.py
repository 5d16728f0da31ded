"""Checks of a client's disclosure before its server records it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vflens.errors import ProtocolError
from vflens.plugins.server_view import CANDIDATES
from vflens.protocol.checks import check_exchange
from vflens.protocol.horizontal import HorizontalFederation
from vflens.types import Array, Phase, Point, Released

#: The tensors of a disclosure, where their names are known, by point.
_NAMES = {
    Point.MOMENTS: [["covariance", "mean"]],
    Point.AUXILIARY: [["features"], ["labels"], sorted(CANDIDATES)],
    Point.EMBEDDING: [["embedding"]],
}


def check_granted(released: Released, client: str, federation: HorizontalFederation) -> None:
    """Refuse ``released`` unless it is a disclosure that ``client`` can make.

    Raises:
        ProtocolError: of another party, phase or kind, of rows that do not train, or of other numbers than
            finite ones, one row of them for each row.
    """
    check_exchange(released.exchange, federation.run, Phase.DISCLOSE)
    what = f"{released.point.value} disclosed by {released.sender!r}"
    if released.sender != client or released.point not in (*_NAMES, Point.GRADIENT, Point.PARAMETERS):
        raise ProtocolError(f"{what} came from {client!r}: a client discloses its own moments and rows")
    train, rows, tensors = federation.rows_of(client, Phase.TRAIN), released.rows, released.tensors or {}
    if len(np.unique(rows)) < len(rows) or not np.isin(rows, train).all():
        raise ProtocolError(f"{what}: its rows are no training rows, each once")
    if sorted(tensors) not in _NAMES.get(released.point, [sorted(tensors)]):
        raise ProtocolError(f"{what} carries the tensors {sorted(tensors)}: others are due")
    if CANDIDATES[0] in tensors:
        _check_candidates(tensors, what, federation)
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all() or (len(rows) and len(tensor) != len(rows)):
            raise ProtocolError(f"{what}: {name} of shape {tensor.shape} are no finite numbers of its rows")


def _check_candidates(tensors: Mapping[str, Array], what: str, federation: HorizontalFederation) -> None:
    features, labels = (tensors[name] for name in CANDIDATES)
    classes = labels.ndim == 1 and labels.dtype.kind == "i" and labels.min(initial=0) >= 0
    if not classes or labels.max(initial=0) >= federation.n_classes:
        raise ProtocolError(f"{what}: labels of candidates are no classes of the run, one for each")
    if features.shape != (len(labels), len(federation.columns)):
        raise ProtocolError(f"{what}: {features.shape} are no numbers of {len(labels)} candidates")
