"""The attacks on folders of the finished run of a lab: one owner holds those of all who collude."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vflens.config import AttackTable, LedConfig, PartyConfig, build_plugins
from vflens.errors import ConfigError, KnowledgeError, PluginError
from vflens.experiments.results.folders import Metric, read_party
from vflens.plugins.attack import Attack
from vflens.registry import ATTACKS
from vflens.storage.metrics import Metrics, Name
from vflens.types import Phase, Progress


@dataclass(frozen=True)
class Aim:
    """The attack of ``table`` in the party of ``seat``, with those of the folders ``together``, on rows
    of ``phase`` of the party of ``target``.
    """

    seat: PartyConfig
    table: AttackTable
    together: Sequence[Path]
    target: LedConfig
    phase: Phase

    @property
    def adversary(self) -> str:
        """The name of who runs it."""
        return self.seat.seat_of(self.table)[1]

    @property
    def out(self) -> Path:
        """The file of its estimate, which is there once it is scored."""
        end = "npz" if self.phase is Phase.PREDICT else f"{self.phase}.npz"
        return self.seat.out / "estimates" / f"{self.target.party}.{self.table.name}.{end}"

    def is_left(self, noted: Collection[Metric]) -> bool:
        """Whether it neither has an estimate nor gave none, as ``noted`` by its party."""
        place = self.table.name, self.target.party, self.phase
        ended = {(m.attack, m.target, m.scored_set) for m in noted if m.name in (Name.SKIPPED, Name.FAILED)}
        return place not in ended and not self.out.exists()


def aims_left(configs: Mapping[str, PartyConfig]) -> Iterator[Aim]:
    """The attacks of the parties of ``configs``, by party, on the finished run that have not ended."""
    for seat in configs.values():
        tables = seat.attacks_afterwards
        noted = read_party(seat.out).metrics if tables else ()
        for table, (_, attack) in zip(tables, build_plugins(ATTACKS, tables), strict=True):
            yield from (aim for aim in _aims(configs, seat, table, attack) if aim.is_left(noted))


def _aims(
    configs: Mapping[str, PartyConfig], seat: PartyConfig, table: AttackTable, attack: Attack
) -> Iterator[Aim]:
    folders = [configs[name].out for name in table.colluders]
    others = [c for n, c in configs.items() if n not in (seat.party, *table.colluders)]
    for target in others if seat.seat_of(table)[0] is seat.role else [seat]:
        for phase in sorted(attack.declared().rows) if _is_target(target, attack) else ():
            assert isinstance(target, LedConfig)
            yield Aim(seat=seat, table=table, together=folders, target=target, phase=phase)


def _is_target(config: PartyConfig, attack: Attack) -> bool:
    """Whether ``attack`` estimates what the party holds."""
    holds_labels = config.facts.labelled and attack.estimates in ("labels", "membership")
    holds_columns = not config.facts.labelled and attack.estimates == "features"
    return isinstance(config, LedConfig) and (config.facts.alike or holds_labels or holds_columns)


def attack_together(aim: Aim, progress: Progress) -> None:
    """Run the attack of ``aim`` and let its target score it. One that lacks knowledge or fails is recorded in
    its party, as in a run.
    """
    from vflens.experiments.offline.attack import attack_recorded  # the code of every party
    from vflens.experiments.offline.command import fair_guess_file
    from vflens.experiments.offline.score import score_estimate

    unscored = aim.out.parent / "unscored" / aim.out.name
    for folder in (aim.out.parent, unscored.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    asked = partial(attack_recorded, scored=aim.phase, together=aim.together, progress=progress)
    try:
        asked(aim.seat.out, aim.table.name, aim.target.party, unscored, parameters=aim.table.parameters)
    except KnowledgeError as error:
        _note(aim, Name.SKIPPED, error)
    except (PluginError, ConfigError) as error:
        _note(aim, Name.FAILED, error)
    else:
        if aim.target.scoring.enabled:
            score_estimate(unscored, aim.target.out / "config.toml")
        for file in filter(Path.exists, (fair_guess_file(unscored), unscored)):  # itself last
            file.replace(aim.out.parent / file.name)
    with suppress(OSError):  # not empty after an interruption
        unscored.parent.rmdir()


def _note(aim: Aim, outcome: Name, error: Exception) -> None:
    metrics = Metrics(aim.seat.out / "metrics.parquet")
    metrics.add(
        outcome,
        1.0,
        attack=aim.table.name,
        adversary=aim.adversary,
        target=aim.target.party,
        scored_set=aim.phase,
        detail=str(error),
    )
    metrics.save()
