"""Who may ask whom for which act.

What stands in no table is refused: in particular the active party cannot reach a passive party's forward pass
and so avoid the coordinator's score gate, unless all are configured so (:data:`DIRECT_ACCESS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from vflens.errors import AccessError
from vflens.protocol.acts import (
    Act,
    Begin,
    Deliver,
    Describe,
    Disclose,
    Epoch,
    Finished,
    Forward,
    Identify,
    Predict,
    Prepare,
    Query,
    Rejoin,
    Salt,
    Signed,
    Step,
    Stop,
    Submission,
    Train,
)
from vflens.types import Role


def _pairs(callers: set[Role], callees: set[Role]) -> frozenset[tuple[Role, Role]]:
    return frozenset(product(callers, callees))


_DATA = {Role.PASSIVE, Role.ACTIVE}
_TO_DATA = _pairs({Role.COORDINATOR}, _DATA)
_NOBODY: frozenset[tuple[Role, Role]] = frozenset()
Access = Mapping[type[Act[Any]], frozenset[tuple[Role, Role]]]

#: act → (who may ask, who answers). Everything else is refused.
ACCESS: Access = {
    Describe: _TO_DATA,
    Salt: _TO_DATA,
    Identify: _TO_DATA,
    Prepare: _TO_DATA,
    Rejoin: _TO_DATA,
    Step: _TO_DATA,
    Train: _NOBODY,
    Epoch: _NOBODY,
    Disclose: _TO_DATA,
    Deliver: _TO_DATA,
    Begin: _TO_DATA,
    Forward: _pairs({Role.COORDINATOR}, {Role.PASSIVE}),
    Stop: _TO_DATA,
    Predict: _pairs({Role.ACTIVE}, {Role.COORDINATOR}),
    Finished: _pairs(_DATA, {Role.COORDINATOR}),
    Submission: frozenset({(Role.ACTIVE, Role.PASSIVE), (Role.PASSIVE, Role.ACTIVE)}),
    Query: _pairs({Role.OPERATOR}, {Role.ACTIVE}),
}

#: The differences if the active party aggregates: only it asks for embeddings, in training and prediction.
DIRECT_ACCESS: Access = {
    **ACCESS,
    Step: _pairs({Role.ACTIVE}, {Role.PASSIVE}),
    Train: _pairs({Role.COORDINATOR}, {Role.ACTIVE}),
    Epoch: _pairs({Role.ACTIVE}, {Role.COORDINATOR}),
    Forward: _pairs({Role.ACTIVE}, {Role.PASSIVE}),
    Predict: _NOBODY,
}

_ROUNDS = {Describe, Prepare, Rejoin, Step, Disclose, Begin, Submission, Stop}

#: Between a server and its clients.
HORIZONTAL_ACCESS: Access = {
    **dict.fromkeys(ACCESS, _NOBODY),
    **dict.fromkeys(_ROUNDS, _pairs({Role.SERVER}, {Role.CLIENT})),
    Finished: _pairs({Role.CLIENT}, {Role.SERVER}),
}


def check_access(
    act: type[Act[Any]],
    caller: str,
    caller_role: Role,
    callee: str,
    callee_role: Role,
    *,
    access: Access = ACCESS,
) -> None:
    """Refuse what ``access`` does not grant.

    Raises:
        AccessError: names caller, act and callee.
    """
    pairs = access[act]
    if (caller_role, callee_role) not in pairs:
        callers = sorted({asking for asking, _ in pairs})
        allowed = f"only the {' or '.join(callers)} may" if callers else "nobody may in this run"
        raise AccessError(
            f"{caller_role} {caller!r} may not ask {callee_role} {callee!r} to {act.__name__}: {allowed}"
        )


def check_sender(act: Act[Any], caller: str) -> None:
    """Refuse an act whose ``sender`` is not the authenticated ``caller``.

    Raises:
        AccessError: names both.
    """
    if isinstance(act, Signed) and act.sender != caller:
        raise AccessError(
            f"{type(act).__name__} in the name of {act.sender!r} came from {caller!r}: sign with your "
            "own name"
        )
