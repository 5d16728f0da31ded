"""Attacks on a recorded transcript, while no party runs."""

from collections.abc import Sequence
from pathlib import Path

from vflens.config import PartyConfig, load_party
from vflens.errors import ConfigError, KnowledgeError
from vflens.experiments.offline.command import configured, scored_phase
from vflens.experiments.offline.horizontal import attack_client
from vflens.experiments.offline.recording import attack_recording, is_recording
from vflens.experiments.offline.request import Request
from vflens.experiments.offline.verified import check_verifiable
from vflens.experiments.offline.vertical.attack import attack_party
from vflens.experiments.results.folders import setting_in
from vflens.plugins.attack import Attack
from vflens.plugins.malicious import breaks_protocol
from vflens.plugins.steps import silent
from vflens.recorded.agreements import AGREEMENTS
from vflens.types import Document, Facts, Phase, Progress, Setting

ATTACKED = {Setting.VERTICAL: attack_party, Setting.HORIZONTAL: attack_client}


def attack_recorded(
    folder: Path,
    name: str,
    target: str | None,
    out: Path,
    *,
    parameters: Facts | None = None,
    scored: Phase | None = None,
    verify: int = 0,
    together: Sequence[Path] = (),
    progress: Progress = silent,
) -> Document:
    """Run attack ``name`` on a party's ``folder`` and write the estimate to ``out`` (npz).

    Attacks on columns use the active party's folder. Attacks on labels use any other party's: the gradients
    of training reach the passive parties and the coordinator, and their target is the active party. Attacks
    on clients use the server's folder, or that of a client where all clients but one collude. A folder that a
    recorder wrote has enough for some on labels.

    Args:
        folder: of the attacking party.
        name: of the attack.
        target: a passive party or a client, None for the only one.
        out: the file.
        parameters: of the attack; they override the run's parameters for it, or its defaults.
        scored: the kind of rows to estimate; None: prediction rows if it can, else training rows.
        verify: how many rows are solved again from the attack's definition, in CVXPY.
        together: folders of other parties of the run, which collude with the first: one adversary.
        progress: called with the stages of the attack, and with its rows at its start and end.

    Raises:
        StorageError: the folder is no party's run folder, or cannot be read.
        ConfigError: its configuration cannot be read, an unknown target, a wrong parameter, rows that the
            attack does not estimate, an attack that cannot be verified.
        DataError: a recorder's folder describes no federation, or holds a wrong gradient.
        KnowledgeError: the transcript lacks what the attack needs, or its party followed the protocol that it
            breaks.
        PluginError: the attack fails.
    """
    if is_recording(folder):
        if verify or together:
            raise ConfigError("--verify and --with belong to a run of VFLens: leave them out")
        return attack_recording(
            folder, name, target, out, parameters=parameters or {}, scored=scored, progress=progress
        )
    federation = AGREEMENTS[setting_in(folder)].load(folder)
    config = load_party(folder / "config.toml")
    attack = configured(config.own_attacks, name, parameters or {})
    _check_able(attack, name, config)
    if verify:
        check_verifiable(name, attack)
    asked = Request(
        attack=attack,
        name=name,
        folder=folder,
        together=tuple(together),
        federation=federation,
        config=config,
        target=target,
        out=out,
        scored=scored_phase(attack, name, scored),
        verify=verify,
        progress=progress,
    )
    return ATTACKED[config.facts.setting](asked)


def _check_able(attack: Attack, name: str, config: PartyConfig) -> None:
    """Refuse an ``attack`` that the party of ``config`` cannot have run."""
    setting = config.facts.setting
    if setting not in attack.made_for():
        raise ConfigError(
            f"attack {name!r} is made for {' and '.join(sorted(attack.made_for()))} federations: this "
            f"folder is of a {setting} one"
        )
    if breaks_protocol(type(attack)) and not config.breaks_protocol:
        raise KnowledgeError(
            f"party {config.party!r} followed the protocol: run the federation with malicious = true, "
            f"and with {name!r}"
        )
