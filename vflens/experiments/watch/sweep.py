"""The live page of a sweep: its cells as they come, read from the folder that keeps them."""

from collections.abc import Mapping
from pathlib import Path

from vflens.errors import ConfigError, DataError
from vflens.experiments.outcome.table import with_figures, without_figures
from vflens.experiments.pages.page import templates
from vflens.experiments.sweeps.explorer import explained, packed
from vflens.experiments.sweeps.pool import Rows
from vflens.experiments.sweeps.sweep import FACTS, refusals, render
from vflens.experiments.sweeps.sweep_page import drawing
from vflens.experiments.watch.events import sentence
from vflens.storage.arrow import parquet_rows
from vflens.storage.json_file import in_words, json_object
from vflens.storage.regular import read_text

_CHUNK = 100  # cells of one panel: a new cell sends its own panel again, not all


def sweeps_in(folder: Path) -> list[Path]:
    """The folders of cells of sweeps that go on in ``folder``, or were interrupted; itself, if it is one."""
    own = [folder] if (folder / FACTS).exists() else []
    return own or sorted(f.parent for f in folder.glob(f".*/{FACTS}") if not f.parent.is_symlink())


class SweepPage:
    """The sweep in ``folder``, for :func:`vflens.experiments.watch.server.serve`.

    Raises:
        ConfigError: there are several.
        DataError: it says nothing of itself.
    """

    title = "sweep"

    def __init__(self, folder: Path) -> None:
        self._folder, *others = sweeps_in(folder)
        if others:
            raise ConfigError(
                f"{folder} holds {1 + len(others)} sweeps: give one, {self._folder} or "
                f"{', '.join(map(str, others))}"
            )
        self._out, facts_file = self._folder.parent, self._folder / FACTS
        try:
            facts = json_object(read_text(facts_file))
            self._name, self._seeds = sentence(str(facts["sweep"])), int(facts["seeds"])
            self._files = [str(name) for name in facts["files"]]
        except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise DataError(
                f"{facts_file}: it describes no sweep ({in_words(error)}): start the sweep again"
            ) from error
        self._cells: dict[str, Rows] = {}
        self._damaged: set[str] = set()

    def panels(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """See :class:`vflens.experiments.watch.app.LivePage`."""
        self._read()
        parts, found = templates().get_template("explorer.html.j2").module, list(self._cells.values())
        refused = [*refusals([row for rows in found for row in rows]), *self._unreadable()]
        state = (self._name, len(found), len(self._files), not self._folder.exists(), refused)
        shown = {
            "progress": str(parts.progress(*state)),  # type: ignore[attr-defined]
            "explorer": str(parts.explorer(explained(self._seeds))),  # type: ignore[attr-defined]
        }
        for first in range(0, len(self._files), _CHUNK):
            here = (self._cells.get(name, []) for name in self._files[first : first + _CHUNK])
            rows = with_figures([row for rows in here for row in rows])
            shown[f"results-{first}"] = str(parts.rows(packed(rows)))  # type: ignore[attr-defined]
        return shown

    def report(self, chosen: Mapping[str, str]) -> str:
        """The page of the finished sweep, or of what is there."""
        page = self._out / "sweep.html"
        if not self._folder.exists() and page.exists():
            return read_text(page)
        self._read()
        found = [row for rows in self._cells.values() for row in rows]
        done = f"{self._name}: {len(self._cells)} of {len(self._files)} federations"
        rows = with_figures(found)
        refused = [*refusals(found), *self._unreadable()]
        return render(done, drawing(rows, []), refused, data="none yet", command="vflens sweep")

    def _unreadable(self) -> list[str]:
        """A sentence for each cell that is none."""
        return [
            f"{sentence(name)} holds no results of a sweep: remove it, and start the sweep again"
            for name in sorted(self._damaged)
        ]

    def _read(self) -> None:
        """Read the cells that are new; each file is written whole. The last ones may vanish unread."""
        there = {file.name for file in self._folder.glob("*.parquet")}
        self._damaged.clear()  # a file may be another one by now
        for name in (name for name in self._files if name in there and name not in self._cells):
            try:
                rows = parquet_rows(self._folder / name)
            except (OSError, ValueError):  # not whole
                continue
            try:
                self._cells[name] = _checked(rows)
            except (KeyError, TypeError, ValueError, AttributeError):
                self._damaged.add(name)
        if len(self._cells) < len(self._files) and not self._folder.exists():
            self._read_whole()

    def _read_whole(self) -> None:
        """Take the finished sweep's rows, cell by cell; what was refused stays as it was read."""
        try:
            rows = _checked(parquet_rows(self._out / "sweep.parquet"))
        except (OSError, KeyError, TypeError, ValueError, AttributeError):
            return
        refused = without_figures(r for found in self._cells.values() for r in found)
        step = -(-len(rows) // len(self._files))
        self._cells = {name: rows[i * step : (i + 1) * step] for i, name in enumerate(self._files)}
        self._cells[self._files[0]] += refused


def _checked(rows: Rows) -> Rows:
    """The ``rows`` of a cell with words that a page can show.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: they are not those of a sweep.
    """
    found = [{sentence(k): sentence(v) if isinstance(v, str) else v for k, v in row.items()} for row in rows]
    refusals(found)
    drawing(with_figures(found), [])
    return found
