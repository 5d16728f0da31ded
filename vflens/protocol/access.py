"""Who may ask whom for which act: what stands in no table of the setting is refused."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from vflens.errors import AccessError
from vflens.protocol.acts import Act, Signed
from vflens.types import Role

#: act → (who may ask, who answers). Everything else is refused.
Access = Mapping[type[Act[Any]], frozenset[tuple[Role, Role]]]


def pairs(callers: set[Role], callees: set[Role]) -> frozenset[tuple[Role, Role]]:
    """Each of ``callers`` may ask each of ``callees``."""
    return frozenset(product(callers, callees))


def check_access(
    act: type[Act[Any]],
    caller: str,
    caller_role: Role,
    callee: str,
    callee_role: Role,
    *,
    access: Access,
) -> None:
    """Refuse what ``access`` does not grant.

    Raises:
        AccessError: names caller, act and callee.
    """
    granted = access.get(act, frozenset())
    if (caller_role, callee_role) not in granted:
        callers = sorted({asking for asking, _ in granted})
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
