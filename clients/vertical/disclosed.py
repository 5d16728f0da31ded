"""Checks of a passive party's disclosure before the active party records it."""

from __future__ import annotations

import numpy as np

from vflens.errors import ProtocolError
from vflens.models.family import Shapes
from vflens.protocol.federation import Federation
from vflens.types import Phase, Point, Released

NUMBERS = 7  # of disclosures of so many rows: a disclosure is number + 7·rows, which keys its noise


def check_disclosed(released: Released, federation: Federation) -> None:
    """Refuse a disclosure that no passive party makes.

    Raises:
        ProtocolError: another kind, other tensors than it has, rows that are no training rows, a table
            without all rows, or a number beyond the last disclosure.
    """
    if released.point not in (Point.PARAMETERS, Point.AUXILIARY, Point.MOMENTS, Point.DATASET):
        raise ProtocolError(
            f"{released.point.value} delivered as a disclosure: parameters, auxiliary rows, moments and "
            "tables are disclosed"
        )
    if released.point is Point.DATASET:
        if not np.array_equal(released.rows, np.arange(federation.rows)):
            raise ProtocolError(
                f"the table of {released.sender!r} does not hold the aligned rows, each once and in order"
            )
    elif len(released.rows):
        federation.checked_rows(released.rows, Phase.TRAIN)
    last = NUMBERS * (len(federation.train) + 1)  # the most rows that can be granted
    if released.exchange.step >= last:
        raise ProtocolError(f"disclosure number {released.exchange.step}: there are at most {last} of them")
    _check_tensors(released, _shapes(released, federation))


def _shapes(released: Released, federation: Federation) -> Shapes | None:
    """What it may hold, the first always; None: a network's parameters, which whoever builds the network
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


def _check_tensors(released: Released, shapes: Shapes | None) -> None:
    tensors = released.tensors
    if tensors is None:  # withheld
        return
    found = {name: tensor.shape for name, tensor in tensors.items()}
    if shapes is not None and not (next(iter(shapes)) in found and found.items() <= shapes.items()):
        raise ProtocolError(
            f"{released.point.value} of {released.sender!r} hold tensors of shapes {found}: {dict(shapes)} "
            "are due"
        )
    for name, tensor in tensors.items():
        if tensor.dtype.kind != "f" or not np.isfinite(tensor).all():
            raise ProtocolError(
                f"{released.point.value} of {released.sender!r}: {name} holds something else than finite "
                "numbers"
            )
