"""Attacks by rank, for each threat model: how the federation is divided, and whether anything is granted."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vflens.experiments.scoreboard.board import FAMILIES, Board
from vflens.experiments.scoreboard.grid import APART, FEDERATIONS, UNDEFENDED
from vflens.experiments.scoreboard.verdicts import CellResult, best
from vflens.types import Knowledge, Setting

RANK_HEADS = ("attack", "estimates", "rank", "relative error", "best in", "sections")
TIE = 1e-9  # of relative errors: exact attacks differ by rounding
_GRANTED = {Knowledge.AUXILIARY, Knowledge.KNOWN_LABELS, Knowledge.MOMENTS}


class Threat(NamedTuple):
    """What an attack may do: in which ``setting``; ``granted``: it reads what no round sends."""

    setting: Setting
    granted: bool

    def __str__(self) -> str:
        reads = "with what is granted" if self.granted else "nothing granted"
        return f"{self.setting.value.capitalize()}, {reads}"


@dataclass(frozen=True)
class Ranked:
    """One attack of one threat model: its relative error ± ``half`` over ``tables`` tables, and in how many
    of ``met`` cells it is the ``best``.
    """

    attack: str
    family: str
    mean: float
    half: float
    tables: int
    best: int
    met: int


def ranked(boards: Sequence[Board]) -> dict[Threat, list[Ranked]]:
    """Attacks by threat model, family by family, the most successful first."""
    found: dict[Threat, list[Ranked]] = {}
    for setting in Setting:
        own = [b for b in boards if FEDERATIONS[b.federation].setting is setting]
        own = [b for b in own if b.federation not in APART]
        for granted in (False, True):
            threat = Threat(setting, granted)
            if chosen := _of_threat(own, threat):
                found[threat] = chosen
    return found


def reads_grants(found: CellResult, setting: Setting) -> bool:
    """Whether the attack of ``found`` read, or may read, what its adversary has by a grant alone."""
    # The parameters of a horizontal run are sent in every round; candidates of membership never are.
    granted = _GRANTED | ({Knowledge.PARAMETERS} if setting is Setting.VERTICAL else set())
    asks_candidates = found.kind.estimates in ("membership", "source")
    return found.granted or asks_candidates or bool(found.kind.needs & granted)


def _of_threat(boards: Sequence[Board], threat: Threat) -> list[Ranked]:
    cells = [
        [f for f in cell.values() if reads_grants(f, threat.setting) is threat.granted and f.is_decided]
        for board in boards
        for cell in (board.found[UNDEFENDED], *_defended(board))
    ]
    plain = [f for board in boards for f in board.found[UNDEFENDED].values() if math.isfinite(f.mean)]
    decided = [f for f in plain if f.is_decided and reads_grants(f, threat.setting) is threat.granted]
    rows = [_ranked([f for f in decided if f.attack == a], cells) for a in {f.attack for f in decided}]
    return sorted(rows, key=lambda r: ([*FAMILIES].index(r.family), r.mean, r.attack))


def _defended(board: Board) -> Iterator[Mapping[str, CellResult]]:
    return (cell for defense, cell in board.found.items() if defense != UNDEFENDED)


def _ranked(undefended: Sequence[CellResult], cells: Sequence[Sequence[CellResult]]) -> Ranked:
    """One attack by its results where nothing defends, and how it does among the others of each cell."""
    attack, n = undefended[0].attack, len(undefended)
    family = undefended[0].family
    met = [[f for f in cell if f.family == family] for cell in cells]
    met = [cell for cell in met if any(f.attack == attack for f in cell)]
    mean = math.fsum(f.mean for f in undefended) / n
    half = math.hypot(*(f.relative.half for f in undefended)) / n
    wins = sum(_wins(attack, cell) for cell in met)
    return Ranked(attack=attack, family=family, mean=mean, half=half, tables=n, best=wins, met=len(met))


def _wins(attack: str, cell: Sequence[CellResult]) -> bool:
    """Whether ``attack`` beats a blind guess in ``cell`` and none has a smaller error; several may."""
    strongest = best(cell)
    return strongest is not None and any(
        f.attack == attack and f.beats_blind and f.mean <= strongest.mean + TIE for f in cell
    )


def rank_lines(boards: Sequence[Board]) -> Iterator[tuple[Threat, list[list[str]]]]:
    """The tables of :func:`ranked` under :data:`RANK_HEADS`."""
    for threat, rows in ranked(boards).items():
        yield threat, [_line(row, _place(row, rows)) for row in rows]


def _place(row: Ranked, rows: Sequence[Ranked]) -> int:
    """The rank of ``row`` among those that estimate the same; equal errors share it."""
    return 1 + sum(other.mean < row.mean - TIE for other in rows if other.family == row.family)


def _line(row: Ranked, place: int) -> list[str]:
    error = f"{row.mean:.2f} ± {row.half:.2f}"
    wins = f"{row.best} of {row.met}"
    return [row.attack, FAMILIES[row.family], str(place), error, wins, str(row.tables)]
