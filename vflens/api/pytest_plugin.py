"""``pytest --vflens``: thresholds on what a run reveals, as assertions of tests.

pytest loads this file at every start where VFLens is installed: it imports nothing of weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from vflens.api.runs import Run
    from vflens.experiments.evidence.thresholds import Outcome, Threshold
    from vflens.experiments.results.record import RecordedRun


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--vflens", action="store_true", help="run tests that ask what a federation reveals (fixture vflens)"
    )


class Hiding:
    """What the fixture ``vflens`` is: assertions on a run, decided by intervals.

    A run is a folder of ``vflens run``, a scenario's or a party's, the result of ``vl.run``, or a record of
    ``vl.read_run``. Undefended scenarios beside defended ones are the baseline and not judged.
    """

    def assert_hidden(
        self,
        run: Path | str | Run | RecordedRun,
        columns: str | Sequence[str],
        *,
        over: str = "imputation",
        within: float | Mapping[str, float] | None = None,
    ) -> None:
        """No attack finds more of ``columns`` than the guess ``over``: "imputation" or "blind".

        ``within``: how far from the truth an answer counts as found, in the column's own unit, for all
        columns or by column; as the run recorded it (``scoring.tolerance``).

        Raises:
            AssertionError: an attack finds more, or too few rows decide it; a sentence for each column.
            ConfigError: no column, an unknown column or guess, or the run counted within another distance.
        """
        from vflens.errors import ConfigError
        from vflens.experiments.evidence.thresholds import beyond_guess

        named = [columns] if isinstance(columns, str) else list(columns)
        widths = within if isinstance(within, Mapping) else dict.fromkeys(named, within)
        if not named or not set(widths) <= set(named):
            raise ConfigError(
                f"columns = {named}: name those that are to be hidden, and in `within` no others"
            )
        self._held(run, [beyond_guess(c, over, widths.get(c)) for c in named], blind=False)

    def assert_no_better_than_blind(self, run: Path | str | Run | RecordedRun) -> None:
        """No attack on columns, labels or membership is better than the best blind guess.

        Raises:
            AssertionError: one is, or too few rows decide it.
        """
        self._held(run, [], blind=True)

    def _held(
        self, run: Path | str | Run | RecordedRun, thresholds: Sequence[Threshold], *, blind: bool
    ) -> None:
        from vflens.experiments.evidence.thresholds import judge
        from vflens.experiments.results.findings import of_runs
        from vflens.experiments.results.record import RecordedRun, read_runs

        if isinstance(run, RecordedRun):
            runs: Sequence[RecordedRun] = [run]
        else:
            runs = read_runs([Path(run) if isinstance(run, str | Path) else run.folder])
        _assert_held(judge(thresholds, blind, of_runs(runs)))


def _assert_held(outcomes: Sequence[Outcome]) -> None:
    __tracebackhide__ = True
    text = [o.sentence for o in outcomes if o.judged != "held"]
    if text:
        raise AssertionError("\n".join(text))


@pytest.fixture
def vflens(request: pytest.FixtureRequest) -> Hiding:
    """Assertions on what a run reveals; without ``--vflens`` the test is skipped."""
    if not request.config.getoption("--vflens"):
        pytest.skip("it asks what a federation reveals: give --vflens")
    return Hiding()
