"""The commands that list plug-ins: ``vflens attacks``, ``defenses`` and ``models``; ``vflens version``."""

from vflens.cli.output import Json, emit
from vflens.registry import ATTACKS, DEFENSES, MODELS, Registry


def attacks(json: Json = False) -> None:
    """List the attacks.

    Example: vflens attacks
    """
    _list(ATTACKS, json)


def defenses(json: Json = False) -> None:
    """List the defences.

    Example: vflens defenses
    """
    _list(DEFENSES, json)


def models(json: Json = False) -> None:
    """List the families of models.

    Example: vflens models
    """
    _list(MODELS, json)


def version(json: Json = False) -> None:
    """Print the version.

    Example: vflens version
    """
    from importlib.metadata import version as installed

    emit(json, {"vflens": installed("vflens")}, lambda: f"vflens {installed('vflens')}")


def _list(registry: Registry, json: bool) -> None:
    found = {name: registry.summary(name) + _mark(registry.since(name)) for name in registry.names()}
    emit(json, found, lambda: "\n".join(f"{name:<22} {text}" for name, text in found.items()))


def _mark(since: str) -> str:
    return f" [new in {since}, may change]" if since else ""
