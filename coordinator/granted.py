"""Checks of what a client says and grants before its server believes or records it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vflens.errors import ConfigError, ProtocolError
from vflens.plugins.server_view import CANDIDATES
from vflens.protocol.checks import check_exchange
from vflens.protocol.horizontal import HorizontalFederation
from vflens.types import Array, PartyInfo, Phase, Point, Released

#: The tensors of a disclosure, where their names are known, by point.
_NAMES = {
    Point.MOMENTS: [["covariance", "mean"]],
    Point.AUXILIARY: [["features"], ["labels"], sorted(CANDIDATES)],
    Point.EMBEDDING: [["embedding"]],
}
_LABELS = ("labels", CANDIDATES[1])


def check_claims(clients: Sequence[PartyInfo], most: int) -> None:
    """Refuse a client that says it has more than ``most`` rows: its claim sizes arrays, and its weight.

    Raises:
        ConfigError: naming it.
    """
    for client in clients:
        rows = client.train_rows + client.predict_rows
        if rows > most:
            raise ConfigError(
                f"client {client.name!r} says that it has {rows} rows, limits.max_rows of its server is "
                f"{most}: raise it if that is so"
            )


def check_grants(granted: Sequence[Released], client: str, federation: HorizontalFederation) -> None:
    """Refuse all of ``granted`` unless each is a disclosure that ``client`` can make, and it is made once.

    Raises:
        ProtocolError: see :func:`check_granted`; or two are of one kind.
    """
    for released in granted:
        check_granted(released, client, federation)
    kinds = [(r.point, *(sorted(r.tensors or {}) if r.point is Point.AUXILIARY else ())) for r in granted]
    if len(set(kinds)) < len(kinds):
        raise ProtocolError(
            f"{client!r} discloses {len(kinds)} things of {len(set(kinds))} kinds: each is due once"
        )


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
    rows, tensors = released.rows, released.tensors or {}
    if len(np.unique(rows)) < len(rows) or not _within(rows, federation.info(client).train_rows):
        raise ProtocolError(f"{what}: its rows are no training rows, each once")
    if sorted(tensors) not in _NAMES.get(released.point, [sorted(tensors)]):
        raise ProtocolError(f"{what} carries the tensors {sorted(tensors)}: others are due")
    shapes = _shapes(released, tensors, federation)
    for name, tensor in tensors.items():
        kind = "i" if name in _LABELS else "f"
        if (
            tensor.dtype.kind != kind
            or not np.isfinite(tensor).all()
            or not _fits(tensor, shapes.get(name), rows)
        ):
            raise ProtocolError(
                f"{what}: {name} of shape {tensor.shape} {tensor.dtype} are no finite numbers of its rows"
            )
        if kind == "i" and not _within(tensor, federation.n_classes):
            raise ProtocolError(f"{what}: {name} are no classes of the run")


def _within(numbers: Array, most: int) -> bool:
    """Whether all are from 0 to below ``most``."""
    return bool(numbers.min(initial=0) >= 0 and numbers.max(initial=-1) < most)


def _fits(tensor: Array, due: tuple[int, ...] | None, rows: Array) -> bool:
    """Whether it has the shape ``due``; None: of a network, any with a number for each of ``rows``."""
    if due is not None:
        return tensor.shape == due
    return not len(rows) or tensor.shape[:1] == rows.shape


def _shapes(
    released: Released, tensors: Mapping[str, Array], federation: HorizontalFederation
) -> dict[str, tuple[int, ...]]:
    """By name, where they follow from rows, columns and width."""
    n, d = len(released.rows), len(federation.columns)
    if released.point is Point.MOMENTS:
        return {"mean": (d,), "covariance": (d, d)}
    if released.point is Point.EMBEDDING:
        return {"embedding": (n, federation.embedding_width)}
    candidates = tensors[CANDIDATES[1]].size if CANDIDATES[1] in tensors else 0
    return {"features": (n, d), "labels": (n,), CANDIDATES[0]: (candidates, d), CANDIDATES[1]: (candidates,)}
