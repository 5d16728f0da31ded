"""Checks of a vertical disclosure: before the coordinator records or relays it, and at its receiver."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vflens.errors import ProtocolError
from vflens.models.family import Shapes
from vflens.protocol.checks import MODEL_VERSION, is_moderate
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.types import Array, Phase, Point, Released
from vflens.words import counted

#: What a passive party discloses. Its number is _NUMBERED + _KINDS·rows, which keys its noise: they stay.
_NUMBERED = {Point.PARAMETERS: 3, Point.DATASET: 4, Point.AUXILIARY: 5, Point.MOMENTS: 6}
_KINDS = 7
_FLOAT64 = np.dtype(np.float64)


def disclosure_number(point: Point, rows: int) -> int:
    """The step of a passive party's disclosure of so many granted ``rows``: one for each."""
    return _NUMBERED[point] + _KINDS * rows


def check_disclosed(released: Released, sender: str, federation: VerticalAgreement) -> None:
    """Refuse what ``sender`` does not disclose: labels are the active party's, all else a passive party's.

    Raises:
        ProtocolError: of another party, run, phase, kind or number, of rows that do not train, or with other
            tensors than it has.
    """
    run, phase, version, _ = released.exchange
    if (run, phase, version) != (federation.run, Phase.DISCLOSE, MODEL_VERSION):
        raise ProtocolError(
            f"{released.point.value} that {sender!r} discloses came in phase {phase.value!r} of run {run!r}, "
            f"version {version}: phase 'disclose' of {federation.run!r}, version {MODEL_VERSION}, is due"
        )
    if released.sender != sender:
        raise ProtocolError(
            f"{released.point.value} of {released.sender!r} came from {sender!r}: a party discloses its own"
        )
    if sender == federation.active.name:
        _check_labels(released, federation)
    elif sender in {p.name for p in federation.passive}:
        _check_features(released, federation)
    else:
        raise ProtocolError(f"a disclosure of {sender!r}: it is no party of run {federation.run!r}")


def _check_labels(released: Released, federation: VerticalAgreement) -> None:
    found = released.tensors or {}
    labels = found.get("labels")
    if released.point is not Point.AUXILIARY or len(found) != 1 or labels is None:
        raise ProtocolError(
            f"{released.point.value} of {released.sender!r} with the tensors {sorted(found)}: labels are due"
        )
    classes, rows = federation.n_classes, _training_rows(released, federation)
    if labels.shape != rows.shape or labels.dtype != np.int64 or not _within(labels, classes):
        raise ProtocolError(
            f"labels of {released.sender!r} of shape {labels.shape} {labels.dtype} are no classes: whole "
            f"numbers from 0 to {classes - 1} are due, one for each of the {counted(len(rows), 'row')}"
        )
    _check_number(released, len(rows))


def _within(labels: Array, classes: int) -> bool:
    return bool(((labels >= 0) & (labels < classes)).all())


def _training_rows(released: Released, federation: VerticalAgreement) -> Array:
    rows = federation.checked_rows(released.rows, Phase.TRAIN)
    if not (rows[1:] > rows[:-1]).all():
        raise ProtocolError(f"{released.point.value} of {released.sender!r}: each row is due once, ascending")
    return rows


def _check_features(released: Released, federation: VerticalAgreement) -> None:
    if released.point not in _NUMBERED:
        raise ProtocolError(
            f"{released.point.value} delivered as a disclosure: parameters, auxiliary rows, moments and "
            "tables are disclosed"
        )
    _check_rows(released, federation)
    granted = len(released.rows) if released.point is Point.AUXILIARY else 0
    _check_number(released, disclosure_number(released.point, granted))
    tensors = released.tensors
    if tensors is not None:
        _check_tensors(released, tensors, federation)
    elif released.point is not Point.PARAMETERS:
        raise ProtocolError(f"{released.point.value} of {released.sender!r} were withheld: parameters can be")


def _check_rows(released: Released, federation: VerticalAgreement) -> None:
    if released.point is Point.AUXILIARY:
        _training_rows(released, federation)
        return
    due = federation.rows if released.point is Point.DATASET else 0
    if not np.array_equal(released.rows, np.arange(due)):
        what = "aligned rows, each once and in order" if due else "numbers of no rows"
        raise ProtocolError(f"{released.point.value} of {released.sender!r}: {what}, are due")


def _check_number(released: Released, due: int) -> None:
    """Refuse a second number of the same disclosure: its receiver would record it each time."""
    if released.exchange.step != due:
        raise ProtocolError(
            f"{released.point.value} of {released.sender!r} as disclosure number {released.exchange.step}: "
            f"{due} is its number"
        )


def _check_tensors(released: Released, tensors: Mapping[str, Array], federation: VerticalAgreement) -> None:
    found = {name: tensor.shape for name, tensor in tensors.items()}
    shapes = _shapes(released, federation)
    fits = shapes is None or _fits(found, shapes, whole=released.point is not Point.PARAMETERS)
    if not found or not fits:
        raise ProtocolError(
            f"{released.point.value} of {released.sender!r} hold tensors of shapes {found}: "
            f"{'those of its part' if shapes is None else dict(shapes)} are due"
        )
    due: np.dtype[Any] = federation.dtype if released.point is Point.PARAMETERS else _FLOAT64
    for name, tensor in tensors.items():
        if tensor.dtype != due or not is_moderate(tensor):
            raise ProtocolError(
                f"{released.point.value} of {released.sender!r}: {name} of {tensor.dtype} holds something "
                f"else than moderate numbers of {due}"
            )


def _fits(found: Shapes, due: Shapes, *, whole: bool) -> bool:
    """Whether ``found`` is ``due``; unless ``whole``, with the first at least."""
    needed = set(due) if whole else {next(iter(due))}
    return needed <= set(found) and found.items() <= due.items()


def _shapes(released: Released, federation: VerticalAgreement) -> Shapes | None:
    """What it may hold; None: a network's parameters, which whoever builds the network
    compares.
    """
    columns = next(len(p.columns) for p in federation.passive if p.name == released.sender)
    if released.point is Point.DATASET:
        return {"dataset": (federation.rows, columns)}
    if released.point is Point.AUXILIARY:
        return {"features": (len(released.rows), columns)}
    if released.point is Point.MOMENTS:
        return {"mean": (columns,), "covariance": (columns, columns)}
    return federation.model.disclosed_shapes(columns, federation.n_classes)
