"""Checks of what a client says and grants before its server believes or records it."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from vflens.errors import ConfigError, ProtocolError
from vflens.names import repeated
from vflens.plugins.views.horizontal import CANDIDATES
from vflens.protocol.checks import check_exchange, is_moderate
from vflens.protocol.horizontal.agreement import GRANTS, HorizontalAgreement, grant_number
from vflens.types import Array, PartyInfo, Phase, Point, Released
from vflens.words import counted

#: What is granted, by its point and the names of its tensors; those of a model's own numbers are its own.
_KINDS = {
    (Point.MOMENTS, "covariance", "mean"): "moments",
    (Point.AUXILIARY, "features"): "auxiliary",
    (Point.AUXILIARY, "labels"): "labels",
    (Point.AUXILIARY, *sorted(CANDIDATES)): "candidates",
    (Point.EMBEDDING, "embedding"): "embeddings",
    (Point.GRADIENT,): "gradients",
    (Point.PARAMETERS,): "parameters",
}
_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)
Due: TypeAlias = tuple[tuple[int, ...], np.dtype[Any]]  # shape and dtype of a tensor
_OF_ROWS = ("auxiliary", "labels", "embeddings", "gradients")


def check_claims(clients: Sequence[PartyInfo], most: int) -> None:
    """Refuse a client that says it has more than ``most`` rows: its claim sizes arrays, and its weight.

    Raises:
        ConfigError: naming it.
    """
    for client in clients:
        rows = client.train_rows + client.predict_rows
        if rows > most:
            raise ConfigError(
                f"client {client.name!r} says that it has {counted(rows, 'row')}, limits.max_rows of its "
                f"server is {most}: raise it if that is so"
            )


def check_grants(granted: Sequence[Released], client: str, federation: HorizontalAgreement) -> None:
    """Refuse all of ``granted`` unless each is a disclosure that ``client`` can make, and it is made once.

    Raises:
        ProtocolError: see :func:`check_granted`; or two are of one kind.
    """
    kinds = [check_granted(released, client, federation) for released in granted]
    if twice := repeated(kinds):
        raise ProtocolError(f"{client!r} discloses {twice} twice: each is due once")


def check_granted(released: Released, client: str, federation: HorizontalAgreement) -> str:
    """What is granted in ``released``, if it is a disclosure that ``client`` can make.

    Raises:
        ProtocolError: of another party, phase, kind or number, of rows that do not train, or of other numbers
            than finite ones, one row of them for each row.
    """
    check_exchange(released.exchange, federation.run, Phase.DISCLOSE)
    what = f"{released.point.value} disclosed by {released.sender!r}"
    tensors, own = released.tensors or {}, released.point in (Point.GRADIENT, Point.PARAMETERS)
    kind = _KINDS.get((released.point, *(() if own else sorted(tensors))))
    if released.sender != client or kind is None:
        raise ProtocolError(
            f"{what} with the tensors {sorted(tensors)} came from {client!r}: a client discloses its own "
            "moments and rows"
        )
    _check_rows(released, kind, what, federation.info(client).train_rows)
    due = _due(released, tensors, federation)
    for name, tensor in tensors.items():
        _check_tensor(tensor, due.get(name), f"{what}: {name}", released.rows, federation.n_classes)
    return kind


def _check_rows(released: Released, kind: str, what: str, training: int) -> None:
    rows, number = released.rows, released.exchange.step
    train = _within(rows, training) and (rows[1:] > rows[:-1]).all()
    if not train or (kind in _OF_ROWS) != bool(len(rows)):
        raise ProtocolError(f"{what}: its rows are no training rows, each once and ascending")
    counted = released.tensor(CANDIDATES[1]) if kind == "candidates" else rows
    of_some = kind in ("embeddings", "gradients")  # of known rows too, whose number is granted elsewhere
    last = grant_number(kind, counted.size)
    if number not in range(grant_number(kind, 0) if of_some else last, last + 1, len(GRANTS)):
        raise ProtocolError(f"{what} as disclosure number {number}: {last} is its number")


def _check_tensor(tensor: Array, due: Due | None, what: str, rows: Array, classes: int) -> None:
    """Refuse other numbers than moderate ones, as ``due``; None: of a network, any with some for each of
    ``rows``. Labels are classes.
    """
    labels = what.endswith("labels")
    if due is None:
        fits = tensor.dtype.kind == "f" and (not len(rows) or tensor.shape[:1] == rows.shape)
    else:
        fits = (tensor.shape, tensor.dtype) == due
    if not fits or not (labels or is_moderate(tensor)):
        raise ProtocolError(f"{what} of shape {tensor.shape} {tensor.dtype} are no numbers of its rows")
    if labels and not _within(tensor, classes):
        raise ProtocolError(f"{what} are no classes of the run")


def _within(numbers: Array, most: int) -> bool:
    """Whether all are from 0 to below ``most``."""
    return bool(numbers.min(initial=0) >= 0 and numbers.max(initial=-1) < most)


def _due(released: Released, tensors: Mapping[str, Array], federation: HorizontalAgreement) -> dict[str, Due]:
    """Shape and dtype by name, where they follow from rows, columns and width."""
    n, d = len(released.rows), len(federation.columns)
    m = tensors[CANDIDATES[1]].size if CANDIDATES[1] in tensors else 0
    if released.point in (Point.GRADIENT, Point.PARAMETERS):
        return {}
    return {
        "mean": ((d,), _FLOAT64),
        "covariance": ((d, d), _FLOAT64),
        "embedding": ((n, federation.embedding_width), federation.dtype),
        "features": ((n, d), _FLOAT64),
        "labels": ((n,), _INT64),
        CANDIDATES[0]: ((m, d), _FLOAT64),
        CANDIDATES[1]: ((m,), _INT64),
    }
