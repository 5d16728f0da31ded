"""The attacks of parties that collude, on the finished run of a lab: one owner holds all folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vflens.config import AttackTable, LedConfig, PartyConfig, build_plugins, load_party
from vflens.errors import ConfigError, KnowledgeError, PluginError
from vflens.plugins.attack import Attack
from vflens.registry import ATTACKS
from vflens.storage.metrics import Metrics, Name
from vflens.types import Phase, Progress


@dataclass(frozen=True)
class _Aim:
    """The attack of ``table`` in the party of ``seat``, with the parties of the folders ``together``, on rows
    of ``phase`` of the party of ``target``.
    """

    seat: PartyConfig
    table: AttackTable
    together: Sequence[Path]
    target: LedConfig
    phase: Phase


def add_collusion(files: Mapping[str, Path], progress: Progress) -> None:
    """Run the attacks with colluders that the configurations in ``files`` have, and let their targets score
    them. One that lacks knowledge or fails is recorded in its party, as in a run.

    Args:
        files: party → its configuration.
        progress: called with the stages of each attack.
    """
    for aim in _aims({party: load_party(file) for party, file in files.items()}):
        _attack(aim, progress)


def _aims(configs: Mapping[str, PartyConfig]) -> Iterator[_Aim]:
    for seat in configs.values():
        tables = [table for table in seat.own_attacks if table.colluders]
        for table, (_, attack) in zip(tables, build_plugins(ATTACKS, tables), strict=True):
            folders = [configs[name].out for name in table.colluders]
            others = (c for n, c in configs.items() if n not in (seat.party, *table.colluders))
            for target in others:
                for phase in sorted(attack.declared().rows) if _is_target(target, attack) else ():
                    assert isinstance(target, LedConfig)
                    yield _Aim(seat=seat, table=table, together=folders, target=target, phase=phase)


def _is_target(config: PartyConfig, attack: Attack) -> bool:
    """Whether ``attack`` estimates what the party holds."""
    holds_labels = config.facts.labelled and attack.estimates == "labels"
    holds_columns = not config.facts.labelled and attack.estimates == "features"
    return isinstance(config, LedConfig) and (config.facts.alike or holds_labels or holds_columns)


def _attack(aim: _Aim, progress: Progress) -> None:
    from vflens.experiments.offline.attack import attack_recorded  # the code of every party
    from vflens.experiments.offline.score import score_estimate

    name, target = aim.table.name, aim.target.party
    end = "npz" if aim.phase is Phase.PREDICT else f"{aim.phase}.npz"
    out = aim.seat.out / "estimates" / f"{target}.{name}.{end}"
    out.parent.mkdir(mode=0o700, exist_ok=True)
    asked = partial(attack_recorded, scored=aim.phase, together=aim.together, progress=progress)
    try:
        asked(aim.seat.out, name, target, out, parameters=aim.table.parameters)
    except KnowledgeError as error:
        _note(aim, Name.SKIPPED, error)
    except (PluginError, ConfigError) as error:
        _note(aim, Name.FAILED, error)
    else:
        if aim.target.scoring.enabled:
            score_estimate(out, aim.target.out / "config.toml")


def _note(aim: _Aim, outcome: Name, error: Exception) -> None:
    metrics, attack = Metrics(aim.seat.out / "metrics.parquet"), aim.table.name
    metrics.add(
        outcome,
        1.0,
        attack=attack,
        adversary=aim.seat.party,
        target=aim.target.party,
        detail=str(error),
    )
    metrics.save()
