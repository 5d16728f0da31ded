"""Attacks on a recorded transcript, while no party runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vflens.clients.adversary import scored_training_rows, view_of
from vflens.config import (
    DataPartyConfig,
    PartyConfig,
    PassiveConfig,
    Plugin,
    ServerConfig,
    VerticalDataConfig,
    load_party,
)
from vflens.coordinator.adversary import parameters_of, scored_set, server_view
from vflens.errors import ConfigError, StorageError
from vflens.experiments.offline.command import (
    carried_out,
    certificates,
    configured,
    named_party,
    scored_phase,
    sides,
)
from vflens.experiments.offline.copied import private_copy
from vflens.experiments.offline.recording import attack_recording, is_recording
from vflens.experiments.offline.score import alone
from vflens.experiments.offline.verified import check_verifiable, verified
from vflens.experiments.results.folders import read_party
from vflens.member.adversary import save_estimate
from vflens.plugins.attack import Attack
from vflens.plugins.steps import Progress, silent
from vflens.plugins.view import AdversaryView
from vflens.protocol.acts import figures_of
from vflens.protocol.federation import Federation
from vflens.protocol.horizontal import HorizontalFederation
from vflens.storage.files import load_arrays
from vflens.storage.journal import Reader
from vflens.storage.private import owner_only
from vflens.types import Array, Document, Facts, Phase, Point, Role, Setting

if TYPE_CHECKING:
    from torch.nn import Module


def attack_recorded(
    folder: Path,
    name: str,
    target: str | None,
    out: Path,
    *,
    parameters: Facts | None = None,
    scored: Phase | None = None,
    verify: int = 0,
    progress: Progress = silent,
) -> Document:
    """Run attack ``name`` on a party's ``folder`` and write the estimate to ``out`` (npz).

    Attacks on columns use the active party's folder. Attacks on labels use any other party's: the gradients
    of training reach the passive parties and the coordinator, and their target is the active party. Attacks
    on clients use the server's folder. A folder that a recorder wrote has enough for some on labels.

    Args:
        folder: of the attacking party.
        name: of the attack.
        target: a passive party or a client, None for the only one.
        out: the file.
        parameters: of the attack; they override the run's parameters for it, or its defaults.
        scored: the kind of rows to estimate; None: prediction rows if it can, else training rows.
        verify: how many rows are solved again from the attack's definition, in CVXPY.
        progress: called with the stages of the attack, and with its rows at its start and end.

    Raises:
        StorageError: the folder is no party's run folder, or cannot be read.
        ConfigError: its configuration cannot be read, an unknown target, a wrong parameter, rows that the
            attack does not estimate, an attack that cannot be verified.
        DataError: a recorder's folder describes no federation, or holds a wrong gradient.
        KnowledgeError: the transcript lacks what the attack needs.
        PluginError: the attack fails.
    """
    if is_recording(folder):
        if verify:
            raise ConfigError("--verify belongs to a run of VFLens: leave it out")
        return attack_recording(
            folder, name, target, out, parameters=parameters or {}, scored=scored, progress=progress
        )
    horizontal = (role := read_party(folder).role) is Role.SERVER
    if role is Role.CLIENT:
        raise ConfigError(f"{folder} is a client's: the adversary is in the server, give the server's folder")
    federation = HorizontalFederation.load(folder) if horizontal else Federation.load(folder)
    config = load_party(folder / "config.toml")
    attack = configured(_attacks(config), name, parameters or {})
    _check_setting(attack, name, Setting.HORIZONTAL if horizontal else Setting.VERTICAL)
    if verify:
        check_verifiable(name, attack)
    scored = scored_phase(attack, name, scored)
    if isinstance(config, ServerConfig) and isinstance(federation, HorizontalFederation):
        return _attack_client(attack, name, (config, federation, folder), target, out, progress=progress)
    assert isinstance(federation, Federation)
    return _attack_party(
        attack,
        name,
        (config, federation, folder),
        target,
        out,
        scored=scored,
        verify=verify,
        progress=progress,
    )


def _attack_party(
    attack: Attack,
    name: str,
    run: tuple[PartyConfig, Federation, Path],
    target: str | None,
    out: Path,
    *,
    scored: Phase,
    verify: int,
    progress: Progress,
) -> Document:
    """As :func:`attack_recorded`, on the data party ``target`` of a ``run``: its adversary, facts and
    folder.
    """
    config, federation, folder = run
    party, target = sides(attack, config.party, federation, target)
    transcript = Reader(folder / "transcript")
    see = _views(attack, federation, config, folder, party=party, target=target, transcript=transcript)
    view = see(rows=_estimated(attack, federation, transcript, target, scored), progress=progress)
    estimate = carried_out(attack, view, name, config.seed)
    with owner_only():  # the guess of the target's rows
        save_estimate(out, estimate, run=federation.run, adversary=party, attack=name, scored=scored)
    return {
        "attack": name,
        "target": target,
        "scored_set": scored.value,
        "rows": len(estimate.rows),
        "estimate": str(out),
        **certificates(estimate),
        **(verified(name, attack, estimate, see, rows=verify) if verify else {}),
    }


def _attack_client(
    attack: Attack,
    name: str,
    run: tuple[ServerConfig, HorizontalFederation, Path],
    target: str | None,
    out: Path,
    *,
    progress: Progress,
) -> Document:
    """As :func:`attack_recorded`, on the client ``target`` of a ``run``: its server, facts and folder."""
    config, federation, folder = run
    transcript = Reader(folder / "transcript")
    client = named_party([p.name for p in federation.parties], target)
    view = server_view(
        attack,
        federation,
        party=config.party,
        target=client,
        parameters=parameters_of(federation, load_arrays(folder / "own.npz"), transcript),
        transcript=transcript,
        every=config.transcript.every,
        device=config.device,
        progress=progress,
    )
    estimate = carried_out(attack, view, name, config.seed)
    step = view.round if attack.estimated_round else None
    facts = {"run": federation.run, "adversary": config.party, "attack": name}
    scored = scored_set(attack)
    with owner_only():  # the guess of the target's rows
        save_estimate(out, estimate, **facts, scored=scored, estimates=attack.estimates, step=step)
    return {
        "attack": name,
        "target": client,
        "scored_set": figures_of(scored, step),
        "rows": len(estimate.rows),
        "estimate": str(out),
        **({"granted": sorted(view.granted)} if view.granted else {}),
        **certificates(estimate),
    }


def _attacks(config: PartyConfig) -> Sequence[Plugin]:
    """The attacks that ``config`` gives parameters."""
    return config.attacks if isinstance(config, VerticalDataConfig | ServerConfig) else ()


def _check_setting(attack: Attack, name: str, setting: Setting) -> None:
    if setting not in attack.made_for():
        raise ConfigError(
            f"attack {name!r} is made for {' and '.join(sorted(attack.made_for()))} federations: this "
            f"folder is of a {setting} one"
        )


def _views(
    attack: Attack,
    federation: Federation,
    config: PartyConfig,
    folder: Path,
    *,
    party: str,
    target: str,
    transcript: Reader,
) -> Callable[..., AdversaryView]:
    """The view of ``attack`` in ``party``, which ran in ``folder``, for the rows that it is called with."""
    kept = folder / "own.npz"  # a passive party has it if labels were granted
    return partial(
        view_of,
        attack,
        federation,
        party=party,
        target=target,
        transcript=transcript,
        own=load_arrays(kept) if party == federation.active.name or kept.exists() else {},
        every=config.transcript.every,
        device=config.device if isinstance(config, DataPartyConfig) else "cpu",
        own_model=partial(_own_model, config, folder) if isinstance(config, PassiveConfig) else None,
    )


def _own_model(config: PassiveConfig, folder: Path) -> Module:
    """The trained bottom model of the party that ran in ``folder``, rebuilt from its checkpoint and log."""
    with private_copy(folder) as copy:
        party = alone(config.model_copy(update={"out": copy}))
        try:
            party.resume()
            return party.adversary.own_model()
        finally:
            party.close()


def _estimated(
    attack: Attack, federation: Federation, transcript: Reader, target: str, scored: Phase
) -> Array:
    """The rows to score: labels of prediction rows need no prediction."""
    if scored is Phase.TRAIN:
        return scored_training_rows(federation, transcript, target)
    return federation.predict if attack.estimates == "labels" else _predicted(federation, transcript)


def _predicted(federation: Federation, transcript: Reader) -> Array:
    """The rows with received scores, or embeddings in a split network, in order of first arrival."""
    received = transcript.select(Point.SCORES, Point.EMBEDDING, phases={Phase.PREDICT})
    arrived = [r.rows for r in received]
    if not arrived:
        raise ConfigError("the transcript holds no scores: attack a run that predicted")
    rows = np.concatenate([row.reshape(-1) for row in arrived])
    if len(odd := np.setdiff1d(rows, federation.predict)):
        raise StorageError(
            f"the transcript holds scores of row {odd[0]}, which the run does not predict: give a folder as "
            "its party wrote it"
        )
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]
