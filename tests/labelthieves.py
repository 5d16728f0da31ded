"""Federations with a thief of labels in the passive party."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from accidents import over_grpc
from laboratory import SYNTHETIC
from oneprocess import LocalFederation

LABELS = {"what": "labels", "to": "passive", "rows": 20}
TWO_CLASSES = {**SYNTHETIC, "rows": 300, "classes": 2}
MLP = {"architecture": "mlp", "width": 8}
LINKS: dict[str, Callable[[LocalFederation], AbstractContextManager[None]]] = {
    "calls": lambda local: nullcontext(),
    "grpc": over_grpc,
}
