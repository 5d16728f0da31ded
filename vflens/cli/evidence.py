"""``vflens report``, ``ledger``, ``attack`` and ``score``: results of recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vflens.cli.decide.thresholds import (
    FailIf,
    FailIfBeatsBlind,
    JUnit,
    TableFile,
    check_table,
    gate,
    write_table,
)
from vflens.cli.output import Json, emit, plain
from vflens.errors import ConfigError
from vflens.types import Facts
from vflens.words import counted

if TYPE_CHECKING:
    from vflens.experiments.outcome.finding import Findings
    from vflens.experiments.results.record import RecordedRun


def report(
    folders: Annotated[list[Path], typer.Argument(help="run folders, or folders of parties")],
    *,
    out: Annotated[Path, typer.Option(help="the page to write")] = Path("report.html"),
    pictures: Annotated[
        Path | None, typer.Option(help="also write the images into this folder, as PNG")
    ] = None,
    table: TableFile = None,
    json: Json = False,
) -> None:
    """Write one self-contained page on the given folders.

    Example: vflens report runs/digits --out report.html
    """
    from vflens.experiments.pages.picture_files import write_image_files
    from vflens.experiments.pages.report import write_report
    from vflens.experiments.results.record import read_runs
    from vflens.experiments.results.verdict import alarms, to_json, verdict

    check_table(table)
    runs = read_runs(folders)
    written = write_report(folders, out, runs)
    files = {"report": str(written)}
    if pictures is not None:
        write_image_files(runs, pictures)
        files["pictures"] = str(pictures)
    files |= write_table(table, lambda: _of_runs(runs))
    loud = "".join(f"\n{alarm}" for alarm in alarms(runs))
    named = "\n".join(f"{kind}: {file}" for kind, file in files.items())
    emit(json, {**to_json(runs), **files}, lambda: f"{verdict(runs)}{loud}\n\n{named}")


def _of_runs(runs: Sequence[RecordedRun]) -> Sequence[Findings]:
    """What attacks found in runs."""
    from vflens.experiments.results.findings import of_runs

    return of_runs(runs)


def ledger(
    folders: Annotated[list[Path], typer.Argument(help="run folders, or folders of parties")],
    out: Annotated[Path | None, typer.Option(help="also write it as a page, with diagrams")] = None,
    json: Json = False,
) -> None:
    """Show who sent what to whom: messages, bytes and rows by phase, and the defences that acted on them.

    Example: vflens ledger runs/digits
    """
    from vflens.experiments.pages.ledger import write_ledger
    from vflens.experiments.results.ledger import tables, to_json
    from vflens.experiments.results.record import read_runs

    runs = read_runs(folders)
    page = {} if out is None else {"page": str(write_ledger(runs, out))}
    written = "".join(f"\npage: {file}" for file in page.values())
    emit(json, {**to_json(runs), **page}, lambda: f"{plain(*tables(runs)).rstrip()}{written}")


def import_recording(
    recording: Annotated[Path, typer.Argument(help="folder that a server's recorder wrote")],
    config: Annotated[Path, typer.Option(help="TOML: columns, classes, model and training of the app")],
    out: Annotated[Path, typer.Option(help="the server's folder to write; it must not exist")],
    json: Json = False,
) -> None:
    """Make a run folder of what a server of Flower or NVFlare sent and received: attack and report it.

    Example: vflens import recorded --config examples/flower/app.toml --out runs/flower/server
    """
    from vflens.experiments.imports.averaged import import_recording as imported

    facts = imported(recording, config, out)
    emit(
        json,
        facts,
        lambda: f"{counted(facts['rounds'], 'round')} of {', '.join(facts['clients'])}: {facts['folder']}",
    )


def verify_log(
    folders: Annotated[list[Path], typer.Argument(help="run folders, or folders of parties")],
    trust: Annotated[
        Path | None,
        typer.Option(help="certificates whose signatures count, a PEM file or a folder as tls.trust"),
    ] = None,
    json: Json = False,
) -> None:
    """Verify recorded logs: each against its hash chain, and what a party released with what others received.

    Heads that a party signed with a certificate in --trust show who changed a log, or a head of it.

    Ends with code 12 if a log was changed, with 5 if two parties' logs disagree.

    Example: vflens verify-log runs/digits
    """
    from vflens.experiments.verify_log.verify import verify_logs

    runs = verify_logs(folders, trust)
    emit(json, [run.to_json() for run in runs], lambda: "\n".join(run.words() for run in runs))
    for finding in (f for run in runs for f in run.found.findings):
        raise finding.error(str(finding))


class RowsOption(StrEnum):
    """The rows that an attack estimates."""

    PREDICT = "predict"
    TRAIN = "train"


Adversary = Annotated[
    Path | None,
    typer.Argument(
        help="the adversary's run folder: the active party's; for attacks on labels any other party's"
    ),
]
Arrays = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="npz with what an adversary saw in another federation: W, scores, …"),
]
Named = Annotated[str, typer.Option(help="a name of `vflens attacks`, or a file with one attack, mine.py")]
Target = Annotated[str | None, typer.Option(help="a passive party; default: the only one")]
Attacked = Annotated[
    RowsOption | None, typer.Option(help="the rows to estimate; default: prediction rows if it can")
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="a parameter of the attack, overrides the run's; repeatable"
    ),
]
Out = Annotated[Path, typer.Option(help="the estimate to write")]
Together = Annotated[
    list[Path] | None, typer.Option("--with", help="the folder of a party that colludes with it; repeatable")
]
Verify = Annotated[
    int, typer.Option(min=0, help="so many rows are solved again from the attack's definition, in CVXPY")
]


def attack(
    *,
    folder: Adversary = None,
    attack: Named,
    arrays: Arrays = None,
    target: Target = None,
    rows: Attacked = None,
    given: Given = None,
    out: Out = Path("estimate.npz"),
    verify: Verify = 0,
    together: Together = None,
    json: Json = False,
) -> None:
    """Attack a recorded transcript, or arrays of another federation; the target scores the estimate.

    Example: vflens attack runs/digits/undefended/active --attack cls --set start=half
    """
    from vflens.cli.screen.progress import StageBar
    from vflens.experiments.offline.attack import attack_recorded
    from vflens.experiments.offline.command import given_parameters
    from vflens.experiments.offline.given_arrays import attack_arrays
    from vflens.experiments.offline.recording import is_recording
    from vflens.types import Phase

    parameters = given_parameters(given or ())
    if (folder is None) == (arrays is None):
        raise ConfigError("attack takes one source: give a run folder, or --arrays FILE")
    if arrays is not None and (target is not None or rows is not None or verify or together):
        raise ConfigError("--target, --rows, --verify and --with belong to a run folder: leave them out")
    scored = None if rows is None else Phase(rows.value)
    with _named(attack) as name, StageBar() as bar:
        if arrays is not None:
            facts = attack_arrays(arrays, name, out, parameters=parameters)
        else:
            assert folder is not None
            asked: Facts = {"scored": scored, "verify": verify, "together": together or ()}
            facts = attack_recorded(folder, name, target, out, parameters=parameters, progress=bar, **asked)
    has_config = folder is not None and not is_recording(folder)
    emit(json, facts, lambda: _estimated(facts, "--config" if has_config else "--truth"))


def _named(attack: str) -> AbstractContextManager[str]:
    """The name of the attack in the file ``attack``, for this command; or the name that it is."""
    from vflens.registry import ATTACKS

    return ATTACKS.entered_file(Path(attack)) if attack.endswith(".py") else nullcontext(attack)


def score(
    estimate: Annotated[
        Path, typer.Argument(help="written by `vflens attack`, or one of a run's estimates/")
    ],
    *,
    config: Annotated[
        Path | None, typer.Option(help="the target's own configuration, in its run folder")
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(help="for --arrays npz with x, the true columns; for a recorder's folder y, the labels"),
    ] = None,
    fail_if: FailIf = None,
    fail_if_beats_blind: FailIfBeatsBlind = False,
    junit: JUnit = None,
    json: Json = False,
) -> None:
    """Score an estimate against the target's own table; only the target can.

    Example: vflens score estimate.npz --config runs/digits/undefended/passive/config.toml
    """
    from vflens.experiments.offline.given_arrays import score_arrays
    from vflens.experiments.offline.score import of_score, score_estimate

    asked = gate(fail_if, fail_if_beats_blind, junit)
    if config is not None and truth is None:
        facts = score_estimate(estimate, config, asked.tolerance)
    elif truth is not None and config is None:
        facts = score_arrays(estimate, truth, asked.tolerance)
    else:
        raise ConfigError(
            "score takes one truth: give --config FILE for a run, or --truth FILE for given arrays"
        )
    judged = asked.judged(lambda: [of_score(facts)])
    found = {"findings": of_score(facts).json}
    emit(json, {**facts, **found, **judged.json}, lambda: f"{_scored(facts)}{judged.text}")
    judged.enforce()


def _estimated(facts: Facts, truth: str) -> str:
    """What was estimated, and what comes next."""
    from vflens.experiments.offline.command import impossible
    from vflens.experiments.outcome.words import rows_of

    checked = f"\n{facts['verified']['words']}" if "verified" in facts else ""
    out = facts["estimate"]
    if "proven" in facts:
        checked += f"\n{facts['proven']:.1%} of the cells are proven: no other bin gives the sums"
    if "fair_guess" in facts:
        checked += f"\nthe fair guess of the same rows, scored with it: {facts['fair_guess']}"
    return (
        f"{impossible(facts)}{facts['rows']} {rows_of(facts['scored_set'])} of "
        f"{facts['target']!r} estimated by {facts['attack']}: {out}{checked}\n"
        f"let the target score it: vflens score {out} {truth} …"
    )


def _scored(facts: Facts) -> str:
    """The target's score, beside the best blind guess."""
    from vflens.experiments.offline.command import impossible

    subject = f"{impossible(facts)}{facts['attack']} on {counted(facts['rows'], 'row')}"
    if "membership_auc" in facts:
        return f"{subject}: training rows ranked with AUC {facts['membership_auc']:.3f}; a guess has .5"
    if "source_right" in facts:
        own, others, guess = (
            f"{100 * facts[name]:.0f} %"
            for name in ("source_right", "source_right_others", "blind_source_right")
        )
        return (
            f"{subject}: {own} of training rows, {others} of others named as this client's; a guess {guess}"
        )
    from vflens.experiments.outcome.words import number

    blind = f"best blind guess ({facts['blind_guess']})"
    matched = "matched_" if any(name.startswith("matched_") for name in facts) else ""  # rows in no order
    if f"{matched}label_accuracy" in facts:
        return (
            f"{subject}: {facts[f'{matched}label_accuracy']:.1%} of the labels; "
            f"{blind} {facts[f'blind_{matched}label_accuracy']:.1%}"
        )
    affine = f"; R² {number(facts['affine_r2'])} after the best affine map" if "affine_r2" in facts else ""
    interval = f" ± {number(facts['half_width'])}" if "half_width" in facts else ""
    error, least = number(facts[f"{matched}mse"]), number(facts[f"blind_{matched}mse"])
    return f"{subject}: {matched.replace('_', ' ')}MSE {error}{interval}{affine}; {blind} {least}"
