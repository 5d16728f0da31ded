"""Every result of the scoreboard as one page: the explorer of sweeps over its file."""

from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.scoreboard.board import FAMILIES, estimated
from vflens.experiments.scoreboard.grid import FEDERATIONS
from vflens.experiments.scoreboard.tuned import age
from vflens.experiments.scoreboard.verdicts import ERRORS
from vflens.experiments.sweeps.pool import Rows
from vflens.experiments.sweeps.sweep import render
from vflens.types import Document
from vflens.words import counted

_TITLE = "Scoreboard: every result"
_SAME = ("data", "federation", "defense", "seed", "attack", "estimates", "measure", "target")


def explored(rows: Rows, *, data: str, command: str) -> str:
    """The page of ``rows``, all of them in it: to find, filter, sort and draw. It opens on the ranks in the
    federation of the first row.
    """
    found = [row for row in rows if row.get("blind") is not None]
    families = {name: FAMILIES[estimated(name)] for name in {row["attack"] for row in found}}
    scored = [_row(row, families[row["attack"]]) for row in found]
    first = {name: scored[0][name] for name in ("data", "federation", "defense")}
    opening = {"x": "attack", "facet": "estimates", "colour": "scored_set", "only": first}
    lead = (
        f"{counted(len(scored), 'result')}. The relative error is the error of an attack over that of the "
        "best blind guess: 0 is exact, 1 no better than blind. The error of a share, AUC or R² is 1 less it. "
        f"{age(rows)}"
    )
    drawing = Drawing(scored, [], lead)
    return render(_TITLE, drawing, [], data=data, command=command, opening=opening)


def _row(row: Document, estimates: str) -> Document:
    """A result under the names that the explorer has for a sweep's."""
    measure, figure, blind = row["measure"], row["figure"], row["blind"]
    is_error = measure in ERRORS
    error, of_guess = (figure, blind) if is_error else (1 - figure, 1 - blind)
    named = {"federation": FEDERATIONS[row["federation"]].title, "estimates": estimates}
    return {
        **{name: named.get(name, row.get(name)) for name in _SAME},
        "scored_set": row["rows"],
        "relative": error / of_guess if of_guess else None,
        measure.lower() if is_error else "share": figure,
        "blind": blind,
    }
