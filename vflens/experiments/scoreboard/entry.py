"""A new attack beside the published rows: it runs where they ran, nothing defends, and it gets a rank."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from vflens.errors import ConfigError
from vflens.experiments.outcome.table import where
from vflens.experiments.scoreboard.board import FAMILIES, Board, boards, estimated
from vflens.experiments.scoreboard.cells import scored
from vflens.experiments.scoreboard.grid import CLEAR, DATA, FEDERATIONS, PROTECTED, UNDEFENDED, ScoreboardGrid
from vflens.experiments.scoreboard.keys import COST
from vflens.experiments.scoreboard.kinds import PUBLISHED, kind_of
from vflens.experiments.scoreboard.ranks import TIE, Threat, reads_grants
from vflens.experiments.scoreboard.tuned import is_apart
from vflens.experiments.scoreboard.verdicts import CellResult, words
from vflens.experiments.sweeps.pool import Pool, Rows
from vflens.names import one_of
from vflens.registry import ATTACKS
from vflens.storage.arrow import parquet_rows
from vflens.types import Document


@dataclass(frozen=True)
class RivalError:
    """One attack of a section: its relative error ± ``half``."""

    attack: str
    mean: float
    half: float


@dataclass(frozen=True)
class EntryRank:
    """The new ``attack`` in one section, among published attacks of its threat model on what it estimates.

    ``lines`` are all of them by error, the new one too; none where it has no verdict, for ``reason``.
    """

    attack: str
    section: str
    among: str = ""
    lines: tuple[RivalError, ...] = ()
    reason: str = ""

    @property
    def own(self) -> RivalError:
        """The line of the new attack."""
        return next(line for line in self.lines if line.attack == self.attack)

    def rank(self, error: float) -> int:
        """The rank that the new attack would have with this relative error; equal errors share one."""
        return 1 + sum(line.mean < error - TIE for line in self.lines if line.attack != self.attack)

    @property
    def ranks(self) -> tuple[int, int, int]:
        """The rank, and those at both ends of the interval of the error."""
        own = self.own
        low, high = (self.rank(own.mean + end * own.half) for end in (-1, 1))
        return self.rank(own.mean), low, high

    def record(self) -> Document:
        """For ``--json``."""
        if self.reason:
            return {"section": self.section, "reason": self.reason}
        (rank, low, high), lines = self.ranks, [asdict(line) for line in self.lines]
        return {"section": self.section, "rank": rank, "interval": [low, high], "lines": lines}

    def __str__(self) -> str:
        if self.reason:
            return f"{self.section}: no rank, {self.reason}"
        own, (rank, low, high) = self.own, self.ranks
        place = f"rank {rank} of {len(self.lines)} ({low} to {high}) among attacks on {self.among}"
        return f"{self.section}: {place}; relative error {own.mean:.2f} ± {own.half:.2f}"


def compared(file: Path, data: str, progress: Callable[[int, int], None]) -> tuple[list[EntryRank], float]:
    """The standings of the attack in ``file`` on ``data``, and the seconds that its runs took.

    Raises:
        ConfigError: the scoreboard has no such data, or as :meth:`vflens.registry.Registry.entered_file`.
        PluginError: as :meth:`vflens.registry.Registry.entered_file`.
        DataError: the data cannot be read.
    """
    grid = replace(grid_of(data, [f for f in FEDERATIONS if f not in (PROTECTED, CLEAR)]), cost_seeds=0)
    with ATTACKS.entered_file(file) as name, tempfile.TemporaryDirectory(prefix="vflens-entry-") as kept:
        start = time.monotonic()
        own = scored(replace(grid, attacks=[name], defenses=[]), Pool(Path(kept), progress=progress))
        return standings(name, own, published_in(grid), grid), time.monotonic() - start


def grid_of(data: str, federations: Sequence[str]) -> ScoreboardGrid:
    """The sections of ``federations`` on ``data``.

    Raises:
        ConfigError: the scoreboard has no such data.
    """
    if data not in DATA:
        raise ConfigError(f"--data {data!r}: the scoreboard has {one_of(DATA)}")
    return ScoreboardGrid((data,), federations)


def published_in(grid: ScoreboardGrid) -> Rows:
    """The published rows of the sections of ``grid``, without tuned ones."""
    sections = {*grid.sections()}
    rows = (row for row in parquet_rows(PUBLISHED) if (row["federation"], row["data"]) in sections)
    return [row for row in rows if not is_apart(row)]


def earlier(file: Path) -> Rows:
    """The rows of ``file``, an earlier version of the published ones, without attacks that are gone since.

    Raises:
        ConfigError: it is none.
    """
    try:
        rows = parquet_rows(file)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--since {file}: no Parquet file that can be read, give one ({error})") from None
    if not rows or not {"data", "federation", "defense", "attack", "seed", "figure"} <= rows[0].keys():
        raise ConfigError(f"--since {file}: not the results of a scoreboard, give its scoreboard.parquet")
    known = {COST, *filter(kind_of, {row["attack"] for row in rows})}
    return [row for row in rows if row["attack"] in known]


def standings(attack: str, own: Rows, published: Rows, grid: ScoreboardGrid) -> list[EntryRank]:
    """Where ``attack`` stands in each section of ``grid`` for whose setting it is made."""
    sections = {*grid.sections()}
    there = [row for row in published if (row["federation"], row["data"]) in sections]
    there = [row for row in there if row["defense"] == UNDEFENDED and not is_apart(row)]
    ran = {(row["federation"], row["data"]) for row in own}
    both = boards([*there, *own], grid)
    return [_standing(attack, b) for b in both if (b.federation, b.data) in ran]


def _standing(attack: str, board: Board) -> EntryRank:
    cast, found, section = FEDERATIONS[board.federation], board.found[UNDEFENDED], board.title
    if attack not in found:
        reasons = filter(None, (row.get("reason") for row in where(board.rows, attack=attack)))
        return EntryRank(attack, section, reason=next(reasons))
    if not found[attack].is_decided:
        return EntryRank(attack, section, reason=words([found[attack]]))
    threat = Threat(cast.setting, reads_grants(found[attack], cast.setting))
    rivals = [
        f
        for a, f in found.items()
        if estimated(a) == estimated(attack)
        and reads_grants(f, cast.setting) is threat.granted
        and f.is_decided
    ]
    return EntryRank(attack, section, f"{FAMILIES[estimated(attack)]} ({threat})", _lines(rivals))


def _lines(found: Sequence[CellResult]) -> tuple[RivalError, ...]:
    lines = [RivalError(f.attack, f.mean, f.relative.half) for f in found]
    return tuple(sorted(lines, key=lambda line: (line.mean, line.attack)))
