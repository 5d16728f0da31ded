"""An attack as ``vflens attack`` names it: its parameters, its two sides, its rows, and its answer."""

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vflens.config import Plugin, build_plugins
from vflens.errors import ConfigError, PluginError
from vflens.member.adversary import reconstructed
from vflens.names import one_of
from vflens.plugins.attack import FAIR_GUESS, Attack
from vflens.plugins.views.horizontal import ServerView
from vflens.plugins.views.vertical import AdversaryView
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.randomness import secret_from_seed, stream
from vflens.registry import ATTACKS
from vflens.types import Document, Estimate, Facts, PartyInfo, Phase, RowStatus
from vflens.words import counted


def configured(own: Sequence[Plugin], name: str, parameters: Facts) -> Attack:
    """The attack with the parameters that it has in the run's ``own``, overridden by ``parameters``.

    Raises:
        ConfigError: an unknown attack, or a wrong parameter.
    """
    if "name" in parameters:
        raise ConfigError(
            f"--set name={parameters['name']}: an attack's name is no parameter, give it as --attack"
        )
    set_in_run = next((a.parameters for a in own if a.name == name), {})
    ((_, attack),) = build_plugins(ATTACKS, [Plugin(name=name, **{**set_in_run, **parameters})])
    assert isinstance(attack, Attack)
    return attack


def given_parameters(texts: Sequence[str]) -> Document:
    """KEY=VALUE texts as an attack's parameters; a value is TOML, else text.

    Raises:
        ConfigError: a text without "=", or a repeated key.
    """
    found: Document = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key.strip() and equals):
            raise ConfigError(f"--set {text!r}: give KEY=VALUE, as in --set l2=0.001")
        if key.strip() in found:
            raise ConfigError(f"--set {key.strip()} is given twice: give it once")
        found[key.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def sides(
    attack: Attack, adversary: Sequence[str], federation: VerticalAgreement, target: str | None
) -> tuple[str, str]:
    """Seat and target of ``attack`` from the folder of the first party of ``adversary``.

    Raises:
        ConfigError: that folder lacks what is sent of the target, or ``target`` is no possible one.
    """
    active, party = federation.active.name, adversary[0]
    if attack.estimates == "features":
        if party != active:
            raise ConfigError(
                f"columns are attacked from the folder of {active!r}, which receives what is sent of them: "
                f"{party!r} does not"
            )
        return active, named_party(left(adversary, federation.passive), target)
    if active in adversary:
        raise ConfigError(
            f"labels are no secret from {active!r}, which holds them: give the folder of another party"
        )
    if target not in (None, active):
        raise ConfigError(f"--target {target!r}: the labels are those of {active!r}")
    return party, active


def left(adversary: Sequence[str], parties: Iterable[PartyInfo]) -> list[str]:
    """The names of the ``parties`` that are none of the ``adversary``'s.

    Raises:
        ConfigError: there are none.
    """
    found = [p.name for p in parties if p.name not in adversary]
    if not found:
        raise ConfigError(f"{' and '.join(adversary)} hold all the data: nobody is left to attack")
    return found


def named_party(names: list[str], named: str | None) -> str:
    """The one of ``names`` that the flag ``--target`` named; without it the only one.

    Raises:
        ConfigError: there is no such name, or several without the flag.
    """
    if named is None and len(names) == 1:
        return names[0]
    if named not in names:
        given = "is missing" if named is None else f"{named!r} is no target of this attack"
        raise ConfigError(f"--target {given}: name {one_of(sorted(names))}")
    return named


def scored_phase(attack: Attack, name: str, wanted: Phase | None) -> Phase:
    """The kind of rows to estimate: ``wanted``, else prediction rows if ``attack`` can.

    Raises:
        ConfigError: it estimates the other kind only.
    """
    able = attack.declared().rows
    if wanted is None:
        return Phase.PREDICT if Phase.PREDICT in able else Phase.TRAIN
    if wanted not in able:
        (other,) = able
        raise ConfigError(f"--rows {wanted}: {name} estimates {other} rows only, leave --rows out")
    return wanted


def carried_out(attack: Attack, view: AdversaryView | ServerView, name: str, seed: str) -> Estimate:
    """What ``attack`` makes of ``view``; a failure names both sides.

    Raises:
        KnowledgeError, ConfigError, StorageError, PluginError: see
            :func:`vflens.member.adversary.reconstructed`.
    """
    rng = stream(secret_from_seed(seed), "attack", name, view.target)
    view.progress(name, 0, len(view.rows))
    try:
        estimate = reconstructed(attack, view, rng)
    except PluginError as error:
        raise PluginError(f"attack {name!r} on {view.target!r} failed: {error}") from error
    view.progress(name, len(view.rows), len(view.rows))
    return estimate


def fair_guess_file(out: Path) -> Path:
    """Where the fair guess of the rows of the estimate ``out`` lies: both are scored together."""
    return out.with_name(f"{out.stem}.{FAIR_GUESS}.npz")


def certificates(e: Estimate) -> Document:
    """Number of rows in each state; median and largest of the figures per row (``docs/estimators.md``)."""
    extras = {
        name: {"median": float(np.median(extra)), "largest": float(extra.max())}
        for name, extra in e.extras.items()
        if extra.dtype.kind == "f" and extra.ndim == 1 and len(extra) and np.isfinite(extra).all()
    }
    return {"status": states_of(e.status), **extras}


def states_of(status: npt.ArrayLike) -> dict[str, int]:
    """State → the number of rows in it."""
    return {str(s): int(n) for s, n in zip(*np.unique(status, return_counts=True), strict=True)}


def impossible(facts: Facts) -> str:
    """Lines on the rows that no values within the bounds fit, of a ``status`` as :func:`states_of`, and on
    what given scores are ``read_as``; "" without any.
    """
    status, read_as = facts.get("status", {}), facts.get("read_as")
    wrong = sum(status.get(state, 0) for state in (RowStatus.EMPTY_BOX, RowStatus.INCONSISTENT))
    lines = f"scores of others: {read_as}\n" if read_as else ""
    if not wrong:
        return lines
    return (
        f"{wrong} of {counted(sum(status.values()), 'row')} fit no values within the bounds: check the order "
        f"of classes, the bounds, and how far scores were rounded\n{lines}"
    )
