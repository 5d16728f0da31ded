"""``vl.run`` and ``vl.sweep``: experiments from Python, and their results as tables."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pydantic import TypeAdapter

from vflens.api.estimates import Estimate, estimates_of
from vflens.api.html import paragraphs, table
from vflens.config import Plugin, build_plugins, validate
from vflens.errors import ConfigError, DataError
from vflens.experiments.outcome import table as outcome
from vflens.experiments.outcome.finding import Finding
from vflens.experiments.outcome.words import number, rows_of
from vflens.experiments.pages.report_charts import heat_cells, percent
from vflens.experiments.results import compare, verdict
from vflens.experiments.results.findings import of_runs
from vflens.experiments.results.folders import runs_under
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.results import Result
from vflens.experiments.results.titles import defenses
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.loading import AnyExperiment, experiment_kind, load_any, load_as
from vflens.experiments.run.run import run as run_experiment
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.experiments.sweeps.pool import Pool
from vflens.experiments.sweeps.sweep import run_sweep
from vflens.experiments.sweeps.sweep_file import load_sweep, sweep_kind
from vflens.plugins.attack import Attack
from vflens.registry import ATTACKS
from vflens.types import Document


@dataclass(frozen=True)
class Run:
    """A finished experiment: ``folder`` holds one folder for each scenario, ``report`` is the page."""

    folder: Path
    report: Path

    @cached_property
    def _runs(self) -> tuple[RecordedRun, ...]:
        return read_runs([self.folder])

    @cached_property
    def scenarios(self) -> "dict[str, Run]":
        """Each scenario alone, by the name of its folder: spaces in its name are hyphens."""
        homes = [run.parties[0].folder.parent for run in self._runs]
        return {home.name: Run(home, self.report) for home in homes}

    @property
    def verdict(self) -> str:
        """What the results mean, in words."""
        return str(verdict.verdict(self._runs))

    @cached_property
    def results(self) -> pa.Table:
        """One row for each scenario, attack, target and scored set, the most successful attack first.

        ``mse``: mean squared error per feature, of columns scaled to [0, 1], on ``rows`` rows. ``blind``:
        that of the best blind guess for the same rows. ``relative``: their ratio. ``psnr``: that of ``mse``
        in dB; ``ssim``: a mean over images; both null for other columns. ``better``: whether the attack beats
        the guess beyond chance. As a data frame: ``run.results.to_pandas()``.
        """
        rows = [
            {"scenario": scenario, **_figures(result)}
            for scenario, run in zip(self.scenarios, self._runs, strict=True)
            for result in run.results
        ]
        return outcome.arrow(rows, ("scenario", *outcome.RESULTS))

    @cached_property
    def findings(self) -> list[Finding]:
        """What is found, and what is known of it, as of an audit: of each scenario, ``where``."""
        return [finding for found in of_runs(self._runs) for finding in found.placed()]

    @cached_property
    def clients(self) -> pa.Table:
        """One row for each scenario and client of a horizontal run: its accuracy on its own prediction rows,
        with the others, and ``alone``, by a model of its own rows; no row for a vertical run.
        """
        rows = [
            {"scenario": scenario, **client._asdict()}
            for scenario, run in zip(self.scenarios, self._runs, strict=True)
            for client in run.clients
        ]
        return outcome.arrow(rows, ("scenario", "client", "accuracy", "alone"))

    @cached_property
    def estimates(self) -> dict[tuple[str, ...], Estimate]:
        """What the attacks of the only scenario estimated for the prediction rows, by (target, attack).

        The key of an attack on labels is (target, attack, adversary, scored set): several parties may run it.

        Raises:
            ConfigError: there are several scenarios.
            StorageError: a file is damaged.
        """
        (run,) = self._only("estimates")._runs
        return dict(pair for party in run.parties for pair in estimates_of(party))

    def compare(self, other: "Run") -> Document:
        """What differs from ``other`` in settings and figures, as in ``vflens compare --json``.

        Raises:
            ConfigError: one of them has several scenarios.
        """
        return compare.compare(self._only("compare").folder, other._only("compare").folder)

    def _only(self, asked: str) -> Self:
        if len(self._runs) > 1:
            names = ", ".join(map(repr, self.scenarios))
            raise ConfigError(
                f"{asked} is of one scenario, and {self.folder} has {names}: ask run.scenarios[NAME]"
            )
        return self

    def _repr_html_(self) -> str:
        maps = [
            paragraphs(f"{target}, {rows_of(scored_set)}: MSE and its share of the best blind guess's")
            + table(
                ["attack", *self.scenarios],
                [[attack, *map(_cell, row)] for attack, row in rows.items()],
                [[0.0, *map(_shade, row)] for row in rows.values()],
            )
            for (target, scored_set), rows in heat_cells(self._runs).items()
        ]
        return paragraphs(self.verdict) + "".join(maps) + paragraphs(f"report: {self.report}")


def results(pattern: str | Path) -> pa.Table:
    """The results of all runs in many folders, one row for each run, attack, target and scored set.

    ``folder`` is that of the run, ``run`` its name, ``defenses`` those that were configured, comma-separated;
    the other columns are those of :attr:`Run.results`.

    Args:
        pattern: a folder, or a pattern of folders such as ``runs/**``. Runs lie at most four levels below a
            folder; a party's folder alone gives what its owner knows.

    Raises:
        DataError: there is no run, or a file is damaged.

    Example:
        >>> vl.results("runs/**").to_pandas().groupby("attack")["relative"].mean()
    """
    given = Path(pattern)
    named = [given] if given.is_dir() else Path(given.anchor).glob(str(given.relative_to(given.anchor)))
    places = sorted(place for place in named if place.is_dir())
    parties: dict[Path, dict[Path, None]] = {}
    for place in places:
        for home, folders in runs_under(place).items():
            parties.setdefault(home, {}).update(dict.fromkeys(folders))
    if not parties:
        raise DataError(f"{pattern} names no run: give a folder with runs, or a pattern such as runs/**")
    rows = [
        {"folder": str(home), "run": run.name, "defenses": ", ".join(defenses(run)), **_figures(result)}
        for home, folders in parties.items()
        for run in read_runs(list(folders))
        for result in run.results
    ]
    return outcome.arrow(rows, ("folder", "run", "defenses", *outcome.RESULTS))


def _figures(result: Result) -> Document:
    return {name: getattr(result, name) for name in outcome.RESULTS}


def _cell(result: Result | None) -> str:
    return f"{number(result.mse)} ({percent(result.relative)})" if result else "–"


def _shade(result: Result | None) -> float:
    return max(0.0, 1.0 - result.relative) if result else 0.0


def run(
    experiment: AnyPartiesExperiment | Path | str | Mapping[str, Any],
    *,
    in_process: bool = True,
    out: Path | str | None = None,
    attacks: Sequence[Attack | type[Attack]] = (),
) -> Run:
    """Run an experiment: deal the data, train, predict, attack, report.

    Args:
        experiment: a TOML file, a :class:`vflens.Experiment` or :class:`vflens.HorizontalExperiment`, or
            a dict of its keys and tables.
        in_process: all parties in this process: quicker, no isolation. False: one process for each party, as
            in ``vflens run``. The results have the same bits.
        out: the folder in which the run's folder is made; None: the experiment's own ``out``.
        attacks: classes of your own, or objects with parameters, beside those of the experiment; they need
            not be installed, for all parties are in this process. ``HalfStar`` is called "half_star". An
            attack on labels sits in the first passive party.

    Raises:
        VflensError: the reason for which it cannot run, in one sentence.
    """
    loaded = experiment if isinstance(experiment, AnyPartiesExperiment) else _experiment(experiment)
    if out is not None:
        loaded = loaded.model_copy(update={"out": Path(out)})
    if attacks and not in_process:
        raise ConfigError(
            "in_process = False with attacks: other processes lack these classes, leave one out"
        )
    with ExitStack() as entered:
        if attacks:
            loaded = loaded.attacked_by([_given(attack, entered) for attack in attacks])
            # With them all, before any folder is made.
            validate(TypeAdapter(type(loaded)), dict(loaded), "experiment")
        done = run_experiment(loaded, in_process=in_process)
    return Run(done.folder, done.report)


def _given(attack: Attack | type[Attack], entered: ExitStack) -> tuple[str, Attack]:
    """The name and the object of an attack, whose class is a plug-in until ``entered`` ends."""
    name = entered.enter_context(ATTACKS.entered(attack if isinstance(attack, type) else type(attack)))
    if not isinstance(attack, type):
        return name, attack
    ((_, built),) = build_plugins(ATTACKS, [Plugin(name=name)])
    return name, built


def sweep(
    what: Path | str | Mapping[str, Any], *, out: Path | str = "sweep", jobs: int = 1, backend: str = "loky"
) -> Document:
    """Run every attack against every defence at every strength, for several seeds; see ``vflens sweep``.

    Args:
        what: a TOML file with a table ``[sweep]``, or its keys and tables as a dict.
        out: the folder for ``sweep.parquet`` and ``sweep.html``. An interrupted sweep resumes there.
        jobs: processes at a time.
        backend: "loky" (processes here), or "dask" (a cluster).

    Returns:
        the facts of ``vflens sweep --json``; ``data`` and ``page`` are the files.

    Raises:
        ConfigError: a wrong setting, or no attack gave an error in any cell.
        VflensError: the reason for which a cell failed.
    """
    loaded = _loaded(sweep_kind(what), what) if isinstance(what, Mapping) else load_sweep(_file(what))
    folder = Path(out)
    pool = Pool(folder / f".{loaded.name}", jobs, backend)  # type: ignore[arg-type]  # the pool checks it
    return run_sweep(loaded, pool, folder, f"vl.sweep, {loaded.name}")


def _experiment(given: Any) -> AnyPartiesExperiment:
    """The experiment of either setting in a file or a dict."""
    if isinstance(given, str | Path):
        return load_any(Path(given))
    kind = experiment_kind(given) if isinstance(given, Mapping) else Experiment
    return _loaded(kind, given)


def _loaded(kind: type[AnyExperiment], given: Any) -> AnyExperiment:
    """The experiment in a file or a dict."""
    if isinstance(given, Mapping):
        return validate(TypeAdapter(kind), dict(given), "experiment")
    return load_as(kind, _file(given))


def _file(given: Any) -> Path:
    if isinstance(given, str | Path):
        return Path(given)
    raise ConfigError(
        f"an experiment of type {type(given).__name__}: give a TOML file, or its keys as a dict"
    )
