"""A new defence beside the published rows: it runs where they ran, and gets a rank by what it hides."""

import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from vflens.errors import ConfigError, PluginError, VflensError
from vflens.experiments.results.titles import ON_GRANTS_ONLY
from vflens.experiments.scoreboard.board import FAMILIES, Board, boards
from vflens.experiments.scoreboard.cells import scored
from vflens.experiments.scoreboard.entry import grid_of, published_in
from vflens.experiments.scoreboard.grid import FEDERATIONS, UNDEFENDED
from vflens.experiments.scoreboard.ranks import TIE
from vflens.experiments.sweeps.pool import Pool
from vflens.registry import DEFENSES
from vflens.types import Document


class HiddenFamily(NamedTuple):
    """What a defence hides of one family: its rank among ``of`` by the least relative ``error``, in words."""

    rank: int
    of: int
    error: float
    verdict: str


#: Why a defence cannot act, and its remedy, which is a setting of a run: a scoreboard's stay.
_UNABLE = re.compile(
    r"^(defence .*(?:would never act|never acted|has nothing to act on|reads labels of its owner|"
    r"stands around a bottom|watches gradients that|changes the weight matrix|tells classes apart).*): [^:]*$"
)
_HOOKED = r"\1: give it a hook that acts here for a rank here"


@dataclass(frozen=True)
class DefenseRank:
    """The new ``defense`` in one section: its ``price`` in words, and what it hides of each family among the
    published defences; or the ``reason`` why it has no rank.
    """

    defense: str
    section: str
    price: str = ""
    hidden: Mapping[str, HiddenFamily] | None = None
    reason: str = ""

    def record(self) -> Document:
        """For ``--json``."""
        return {**vars(self), "hidden": {name: one._asdict() for name, one in (self.hidden or {}).items()}}

    def __str__(self) -> str:
        found = ((FAMILIES[name], one) for name, one in (self.hidden or {}).items())
        words = [f"{name}: rank {one.rank} of {one.of}, {one.verdict}" for name, one in found]
        return f"{self.section}: {'; '.join([*words, self.price]) if words else f'no rank, {self.reason}'}"


def hidden_by(file: Path, data: str, folder: Path, progress: Callable[[int, int], None]) -> list[DefenseRank]:
    """What the defence in ``file`` hides on ``data``; finished runs stay in ``folder``.

    Raises:
        ConfigError: the scoreboard has no such data, ``folder`` is a file, or as
            :meth:`vflens.registry.Registry.entered_file`.
        PluginError: as :meth:`vflens.registry.Registry.entered_file`, or its code fails.
        DataError: the data cannot be read.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--folder {folder} is a file: give a folder, new or of an earlier call")
    grid = grid_of(data, [f for f, cast in FEDERATIONS.items() if cast.defenses is None])
    if not [*grid.sections()]:
        raise ConfigError(f"--data {data}: the scoreboard runs no defence there, give bank or digits")
    with DEFENSES.entered_file(file) as name, _blamed(file):
        _check_strengths(name)
        own = scored(replace(grid, defenses=[name]), Pool(folder, progress=progress), [name])
        return [rank(name, board) for board in boards([*published_in(grid), *own], grid)]


def _check_strengths(defense: str) -> None:
    tried: object = vars(DEFENSES.get(defense)).get("strengths", ())
    if not isinstance(tried, Sequence) or not all(isinstance(settings, Mapping) for settings in tried):
        raise PluginError(f"defence {defense!r} has strengths = {tried!r}: give a tuple of settings")


@contextmanager
def _blamed(file: Path) -> Iterator[None]:
    """What the code in ``file`` raises is its own failure, in a sentence."""
    try:
        yield
    except Exception as error:
        steps = traceback.extract_tb(error.__traceback__)
        own = [step.lineno for step in steps if step.filename == str(file.resolve())]
        if isinstance(error, VflensError) or not own:
            raise
        raise PluginError(f"{file}, line {own[-1]}: mend it, {type(error).__name__}: {error}") from error


def rank(defense: str, board: Board) -> DefenseRank:
    """Where ``defense`` stands in one section, among the published ones that act on more than grants."""
    without = [row for row in board.by_defense[defense] if row.get("reason")]
    if defense not in board.found:  # the defence's own reason before an attack's
        reasons = sorted(without, key=lambda row: not row["refused"])
        own = _UNABLE.sub(_HOOKED, reasons[0]["reason"]) if reasons else "nothing ran"
        return DefenseRank(defense, board.title, reason=own)
    if board.on_grants_only(defense):
        return DefenseRank(defense, board.title, reason=f"it {ON_GRANTS_ONLY}")
    rivals = [d for d in board.found if d != UNDEFENDED and not board.on_grants_only(d)]
    found = {family: _hidden(defense, rivals, board, family) for family in FAMILIES}
    hidden = {family: one for family, one in found.items() if one is not None}
    return DefenseRank(defense, board.title, str(board.cost(defense)), hidden)


def _hidden(defense: str, rivals: list[str], board: Board, family: str) -> HiddenFamily | None:
    errors = {d: leak.mean for d in rivals if (leak := board.leak(d, family))}
    if defense not in errors:
        return None
    own = errors[defense]
    place = 1 + sum(error > own + TIE for error in errors.values())
    return HiddenFamily(place, len(errors), own, board.words(defense, family))
