"""``vflens serve``, ``run``, ``check`` and ``predict``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vflens.cli.decide.planned_flags import check_plans
from vflens.cli.decide.thresholds import FailIf, FailIfBeatsBlind, Gate, Judged, JUnit, gate
from vflens.cli.output import Json, ShowIds, emit, identified, note, note_tables, plain, width
from vflens.errors import printable
from vflens.names import one_of
from vflens.protocol.roles import ROLES
from vflens.types import Document
from vflens.words import counted

if TYPE_CHECKING:
    from vflens.experiments.outcome.finding import Findings
    from vflens.experiments.results.protection import SpentPrivacy
    from vflens.experiments.results.record import RecordedRun
    from vflens.experiments.run.run import RunOutput

_CAPTION = (
    "mean squared error a feature (columns scaled to [0, 1]) ± its 95 % interval,\n"
    "and its share of the best blind guess's"
)
_Config = Annotated[Path, typer.Option("--config", help="the party's configuration (TOML)")]


def serve(
    role: Annotated[str, typer.Argument(help=one_of(ROLES))],
    config: Annotated[
        list[Path],
        typer.Option(
            "--config", help="the party's configuration (TOML); several: clients that share a process"
        ),
    ],
    quiet: Annotated[bool, typer.Option("--quiet", help="print errors only")] = False,
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--no-resume",
            help="go on with the unfinished run in the party's folder; default: `resume` of the file",
        ),
    ] = None,
) -> None:
    """Start one party and run it until the end of the run.

    Parties may start in any order; each prints the names of the parties that it waits for. After a crash,
    --resume goes on where the party stopped, and the run ends with the same bits.

    Example: vflens serve passive --config examples/passive.toml
    """
    from vflens.cli.screen.progress import StageBar
    from vflens.config import DataPartyConfig, load_party
    from vflens.errors import ConfigError, DataError
    from vflens.services.forking.lifeline import launched
    from vflens.services.process import serve as serve_party

    parties = list(map(load_party, config))
    for file, loaded in zip(config, parties, strict=True):
        if loaded.role != role:
            raise ConfigError(
                f"{file} configures role {str(loaded.role)!r}, not {role!r}: "
                f"run `vflens serve {loaded.role}`, or give another file"
            )
        if len(config) > 1 and not loaded.facts.alike:
            raise ConfigError(f"--config {file}: clients alone share a process, give one file")
    if resume is not None:
        parties = [party.model_copy(update={"resume": resume}) for party in parties]
    if len(parties) > 1:
        from vflens.services.forking.hosting import host

        host(parties, _discard if quiet else note)
        return
    (loaded,) = parties
    if isinstance(loaded, DataPartyConfig) and not (quiet or loaded.resume or launched()):
        from vflens.experiments.run.own_tables import check_tables

        with suppress(DataError):  # the party refuses it itself, and notes so in its folder
            note_tables(check_tables({loaded.party: loaded.data}))
    with StageBar(quiet=quiet) as bar:
        serve_party(loaded, _discard if quiet else note, bar)


def run(
    file: Annotated[Path, typer.Argument(help="an experiment (TOML)")],
    *,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="all parties in one process: quick, without isolation")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="folder for run folders, instead of the file's `out`")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="end with code 9 if an attack failed")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="show it on a page while it goes; on a terminal until Ctrl-C")
    ] = False,
    fail_if: FailIf = None,
    fail_if_beats_blind: FailIfBeatsBlind = False,
    junit: JUnit = None,
    json: Json = False,
) -> None:
    """Run an experiment: deal, start one process per party, train, predict, attack, report.

    Example: vflens run examples/demo.toml
    """
    from vflens.cli.screen.progress import ScenarioBars
    from vflens.cli.screen.watched import Watched
    from vflens.errors import PluginError
    from vflens.experiments.run.dealer import column_names
    from vflens.experiments.run.loading import load_any
    from vflens.experiments.run.own_tables import check_tables
    from vflens.experiments.run.run import run as run_experiment

    asked, experiment = gate(fail_if, fail_if_beats_blind, junit), load_any(file)
    asked.check_columns(lambda: column_names(experiment))
    experiment = experiment.within(asked.tolerance)
    if out is not None:
        experiment = experiment.model_copy(update={"out": out})
    tables = note_tables(check_tables(experiment.files))
    with Watched(watch) as page:
        with ScenarioBars(experiment) as bars:
            result = run_experiment(experiment, in_process=in_process, tell=page.told_too(bars))
        runs, judged = _emit_result(result, json, tables, asked)
    from vflens.experiments.results.verdict import failures  # loads much, so after the run

    broken = [sentence for run in runs for sentence in failures(run)]
    if strict and broken:
        raise PluginError(f"--strict: {broken[0]}: mend the plug-in, or leave it out")
    judged.enforce()


def resume(
    folder: Annotated[Path, typer.Argument(help="the folder of a run of `vflens run`, or of one scenario")],
    restart: Annotated[
        int, typer.Option(min=0, help="start a party again so often after it was killed or crashed")
    ] = 0,
    json: Json = False,
) -> None:
    """Go on with an experiment that was interrupted: its unfinished scenarios, and those that had not begun.

    Example: vflens resume runs/digits
    """
    from vflens.experiments.run.resume import resume as resume_runs

    def tell(scenario: str, event: Document) -> None:
        if event.get("event") in ("started", "resumed", "finished"):
            note(f"{scenario}: {event.get('party', 'all parties')} {event['event']}")

    result = resume_runs(folder, restart=restart, tell=tell)
    _emit_result(result, json, {}, gate(None, False, None))


def check(
    file: Annotated[
        Path,
        typer.Argument(
            help="an experiment, a party's configuration, a table's description (TOML), or a table itself"
        ),
    ],
    *,
    write: Annotated[
        Path | None, typer.Option(help="of a table: the description to write that makes it fit (TOML)")
    ] = None,
    show_ids: ShowIds = False,
    json: Json = False,
) -> None:
    """Find mistakes in a configuration, its data, plug-ins and addresses, before a run.

    Of a table alone it finds the description that makes it fit, and writes it.

    Example: vflens check examples/demo.toml

    Example: vflens check examples/bank_passive.csv --write own.toml
    """
    from vflens.experiments.run.check import check as check_file
    from vflens.experiments.run.own_tables import describe, is_own_table

    if write is not None or is_own_table(file):
        described = describe(file, write)
        emit(json, described, lambda: "\n".join(described["lines"]))
        return
    tables: Document = {}
    with identified(show_ids):
        facts = check_file(file, lambda checks: tables.update(note_tables(checks)))
    check_plans(file)
    emit(
        json,
        {**facts, "tables": tables},
        lambda: "\n".join([f"{file} fits:", *(f"  {k}: {_in_words(v)}" for k, v in facts.items())]),
    )


def _in_words(fact: Any) -> str:
    """A fact as people write it: a list with commas, yes."""
    if isinstance(fact, list):
        return ", ".join(map(str, fact)) or "none"
    return "yes" if fact is True else str(fact)


def status(config: _Config, json: Json = False) -> None:
    """Show a party's state: phase, step, peers, last error, its certificate's end.

    Ends with code 0 while it waits or runs and after a good end, with 11 if it does not run or answer, with 1
    if its run failed or was interrupted.

    Example: vflens status --config examples/passive.toml
    """
    from vflens.services.status import check as check_status
    from vflens.services.status import status as status_of
    from vflens.services.status import words

    found = status_of(config)
    emit(json, found, lambda: words(found))
    check_status(found, config)


def predict(
    *,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="the active party's or a client's own configuration, for its owner"),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", help='where the active party listens: "unix:PATH" or "host:port"')
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="a file with its operator_token alone, of mode 600")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="with --to: allow an address other than loopback without TLS")
    ] = False,
    tls: Annotated[
        Path | None,
        typer.Option("--tls", help="with --to: the operator's folder of vflens certs init, for mutual TLS"),
    ] = None,
    party: Annotated[
        str, typer.Option("--party", help="with --tls: the active party's name, which must answer")
    ] = "active",
    rows: Annotated[
        str,
        typer.Option(
            help="prediction rows, counted from 0: all, or numbers and ranges as 0-9,17; each is answered "
            "once, in order"
        ),
    ] = "all",
    json: Json = False,
) -> None:
    """Ask a running federation for scores, as the operator of its active party: with --config, or with --to
    and --token-file. With --config of a client: what it predicts for its own rows, after its run.

    Example: vflens predict --config examples/active.toml --rows 0-4
    """
    from vflens.errors import ConfigError
    from vflens.services.operator import ask, ask_configured, operator_tls

    if to is not None and token_file is not None and config is None:
        answers = ask(to, token_file, rows, insecure=insecure, tls=operator_tls(tls, party))
    elif config is not None and to is None and token_file is None:
        answers = ask_configured(config, rows)
    else:
        raise ConfigError("give either --to ADDRESS with --token-file FILE, or --config FILE alone")
    emit(json, answers, lambda: "\n".join([*map(_prediction, answers), *_units(answers)]))


def _discard(message: str) -> None:
    """Print nothing (--quiet)."""


def _emit_result(
    result: RunOutput, json: bool, tables: Document, asked: Gate
) -> tuple[tuple[RecordedRun, ...], Judged]:
    """Print what the runs of an experiment ended with; the runs, and what is known of their thresholds."""
    from vflens.experiments.results.verdict import to_json

    def evidence() -> Sequence[Findings]:
        from vflens.experiments.results.findings import of_runs

        return of_runs(runs)

    runs = result.runs
    judged = asked.judged(evidence)
    places = {"report": str(result.report), "folder": str(result.folder)}
    emit(
        json,
        {**to_json(runs), **places, "tables": tables, **judged.json},
        lambda: f"{_summary(runs, result.report)}{judged.text}",
    )
    return runs, judged


def _summary(runs: Any, report: Path) -> str:
    from vflens.cli.screen.result_tables import result_tables
    from vflens.experiments.results.verdict import alarms, omissions, verdict

    tables = list(result_tables(runs, width()))
    shown = plain(*tables, _CAPTION) if tables else ""
    gained = "".join(
        f"\n{run.name}, {name}: accuracy {together:.3f}, alone {alone:.3f}"
        for run in runs
        for name, together, alone in run.clients
    )
    gained += "".join(
        f"\n{run.name}, {p.party}: {_spent(p)}" for run in runs for p in run.privacy if p.of_client
    )
    gained += "".join(
        f"\n{run.name}, {r.target}: {r.attack} ranks training rows with AUC {r.auc:.3f} (a guess "
        f"{r.blind:g}), finds {100 * r.found_at['0.1']:.0f} % of them at 10 % false alarms"
        for run in runs
        for r in run.membership
    )
    gained += "".join(f"\n{run.name}, {stated}" for run in runs for stated in run.best_means)
    loud = "".join(f"\n{alarm}" for alarm in alarms(runs))
    quiet = "".join(f"\nnote: {omission}" for omission in omissions(runs))
    fewer = ((r, p) for r in runs for p in r.parties if p.federation.own_rows > p.federation.aligned_rows)
    quiet += "".join(f"\nnote: {r.name}, {p.name}: {p.shared}" for r, p in fewer if p.shared)
    return f"{shown}\n{verdict(runs)}{gained}{loud}{quiet}\n\nreport: {report}"


def _spent(privacy: SpentPrivacy) -> str:
    """What noise on the updates of a client adds up to."""
    epsilon = privacy.epsilon
    total = "no ε, noise too small for the sampler" if epsilon is None else f"ε = {epsilon:.3g}"
    return (
        f"{total} of {privacy.unit} at δ = {privacy.delta:g}, {counted(privacy.releases, 'release', '.0f')}"
    )


def _units(answers: Sequence[Document]) -> Iterator[str]:
    """What a predicted number is measured in."""
    for label in {answer["label"]: None for answer in answers if "value" in answer}:
        yield f"{printable(label)} is in the unit of its column in the table of the party with the labels"


def _prediction(answer: Document) -> str:
    if "value" in answer:
        value = f"{printable(answer['label'])} {answer['value']:.6g}"
        return f"{answer['row']:>6}  {printable(answer['id']):<20} {value}"
    scores = ", ".join(f"{printable(name)} {p:.3f}" for name, p in answer["scores"].items())
    return f"{answer['row']:>6}  {printable(answer['id']):<20} {printable(answer['class']):<16} {scores}"
