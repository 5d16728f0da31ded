"""Scoring of a written estimate at its target, while no party runs."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from vflens.config import OPERATOR, LedConfig, load_party
from vflens.errors import ConfigError, DataError
from vflens.experiments.offline.command import fair_guess_file, states_of
from vflens.experiments.offline.vertical.operator_attacks import score_answers
from vflens.experiments.outcome.finding import SITE, Finding, Findings, Quantity, with_tries
from vflens.experiments.outcome.table import FIGURES
from vflens.experiments.results.folders import Metric, PartyRun, read_party
from vflens.numerics.measures.advantage import exact
from vflens.numerics.measures.intervals import ends_of, half_width
from vflens.plugins.attack import is_blind
from vflens.protocol.acts import Guess, Submission, together
from vflens.recorded.agreements import AGREEMENTS
from vflens.services.folder import exclusive
from vflens.services.members import resumed
from vflens.storage.files import load_arrays
from vflens.storage.metrics import Name
from vflens.types import Array, Document, Facts, RowStatus, numbered

_SUBJECTS = {Quantity.MEMBERS: "members", Quantity.SITES: SITE}
_AS_SET: Mapping[str, float] = MappingProxyType({})
#: Arrays of an estimate's file: kinds of dtype, number of axes.
_SAVED = dict.fromkeys(("run", "adversary", "attack", "scored_set", "target"), ("U", 0))
_SAVED |= {"rows": ("iu", 1), "values": ("iuf", 2), "status": ("U", 1)}


def score_estimate(file: Path, config_file: Path, tolerance: Mapping[str, float] = _AS_SET) -> Document:
    """Score ``file``, written by ``vflens attack`` or by a run into ``estimates/``, against the target's own
    table; with it the fair guess of the same rows that lies beside it.

    The errors go into the target's folder and are returned. A passive party scores columns, the active party
    guesses of labels. ``tolerance`` goes before `scoring.tolerance` of the configuration.

    Raises:
        ConfigError: not a data party's configuration, not the target's, or the party is running.
        DataError: ``file`` is no estimate by another party of the run.
        StorageError: the folder holds no run, or one of another table.
        ProtocolError: an estimate of other rows or columns.
    """
    config = load_party(config_file)
    if not isinstance(config, LedConfig):
        raise ConfigError(
            f"{config_file} configures a {config.role}: only the target, a data party, can score"
        )
    attack, submission = _estimate_of(file, config, config_file)
    scoring = config.scoring
    scoring = scoring.model_copy(update={"tolerance": {**scoring.tolerance, **tolerance}})
    with exclusive(config.out):  # two writers would spoil its logs
        keep = score_answers if submission.sender == OPERATOR else _keep_score
        keep(config.model_copy(update={"scoring": scoring}), submission)
    rows = len(submission.rows)
    party = read_party(config.out)
    found = [
        m
        for m in party.metrics
        if (m.rows, m.scored_set, m.adversary) == (rows, submission.metrics_of, submission.sender)
    ]
    figures = {
        m.name: m.value for m in found if m.attack == attack and not (m.column or m.detail or m.values)
    }
    states = states_of(np.array(list(RowStatus))[submission.guesses[0].status])
    facts: Document = {"attack": attack, "rows": rows, "status": states} | figures
    if Name.MSE_STDERR in figures:
        facts["half_width"] = half_width(figures[Name.MSE_STDERR])
    return {**facts, **_blind(config, submission, party, attack, found)}


def of_score(facts: Facts) -> Findings:
    """The findings of one score by the target."""
    place: Facts = {"attack": facts["attack"], "target": "the target", "scored_set": "scored"}
    columns = {name: c for name, c in facts.get("columns", {}).items() if "found" in c and "blind_found" in c}
    found = [f for name, c in columns.items() for f in _of_column(name, c, {**place, "rows": facts["rows"]})]
    found += [
        _of_all(quantity, figure, facts, place)
        for quantity, name in FIGURES.items()
        for figure in (name, f"matched_{name}")
        if figure in facts and f"blind_{figure}" in facts
    ]
    return Findings(where="the estimate", found=with_tries(found), columns=tuple(columns))


def _of_column(name: str, c: Facts, place: Facts) -> Iterator[Finding]:
    """A column to within its tolerance, and in its own unit."""
    of: Facts = {**place, "subject": name, "tolerance": c["tolerance"]}
    yield Finding.of_share(Quantity.WITHIN, c["found"], blind=c["blind_found"], **of)
    if "unit" in c:
        error, stderr = c["mse"], c.get("mse_stderr")
        ends = {} if stderr is None else ends_of(error, half_width(stderr))
        squares = {"value": error, "blind": c["blind_mse"], **ends}
        own: Facts = {k: math.sqrt(square) * c["unit"] for k, square in squares.items()}
        yield Finding(quantity=Quantity.ERROR, subject=name, **place, **own)


def _of_all(quantity: Quantity, name: str, facts: Facts, place: Facts) -> Finding:
    """What is scored as a whole. One client alone cannot tell an attack that always names it: beside 1/K
    stands the largest share that the attack may name of rows that nobody trained on.
    """
    value, blind, rows = facts[name], facts[f"blind_{name}"], facts["rows"]
    if quantity is Quantity.ALL:
        half = facts.get("half_width") if name == FIGURES[quantity] else None
        ends: Facts = {"value": value, "blind": blind, **({} if half is None else ends_of(value, half))}
        return Finding(quantity=quantity, rows=rows, subject="columns", **place, **ends)
    if quantity is Quantity.LABELS:
        return Finding.of_share(quantity, value, rows, blind, subject="labels", label=True, **place)
    half_of = max(1, rows // 2)  # the others did not train
    if quantity is Quantity.SITES:
        blind = max(blind, exact(facts[Name.SOURCE_RIGHT_OTHERS], half_of)[1])
    return Finding.of_share(quantity, value, half_of, blind, subject=_SUBJECTS[quantity], **place)


def _estimate_of(file: Path, config: LedConfig, config_file: Path) -> tuple[str, Submission]:
    """The attack and its estimate in ``file``, of the party of ``config``."""
    attack, target, submission = _read(file)
    if target != config.party:
        raise ConfigError(
            f"{file} estimates {target!r}, and {config_file} is that of {config.party!r}: only the target "
            "can score it"
        )
    others = _adversaries(config)
    if not others >= set(together(submission.sender)):
        raise DataError(
            f"{file} says that {submission.sender!r} is the adversary: in this run "
            f"{', '.join(sorted(others))} can be, write one with `vflens attack`"
        )
    return attack, _with_fair_guess(file, submission)


def _with_fair_guess(file: Path, submission: Submission) -> Submission:
    """``submission``, and what the fair guess beside ``file`` says of the same rows, if it lies there."""
    beside = fair_guess_file(file)
    if not beside.exists():
        return submission
    _, _, guessed = _read(beside)
    same = ("run", "sender", "scored_set", "estimates", "step")
    if any(getattr(guessed, name) != getattr(submission, name) for name in same):
        return submission
    if not np.array_equal(guessed.rows, submission.rows):
        return submission
    return replace(submission, guesses=(*submission.guesses, *guessed.guesses))


def _blind(
    config: LedConfig, submission: Submission, party: PartyRun, attack: str, found: Sequence[Metric]
) -> Document:
    """Beside the errors of ``attack`` among the figures ``found``: those of a blind guess, by column too."""
    if submission.estimates == "membership":
        return {"blind_guess": "a guess", Name.BLIND_MEMBERSHIP_AUC: 0.5}
    if submission.estimates == "source":
        return {"blind_guess": "a guess", Name.BLIND_SOURCE_RIGHT: 1 / submission.guesses[0].values.shape[1]}
    (own,) = (p for p in party.federation.parties if p.name == config.party)
    if own.label is None and (config.facts.only_top or submission.estimates == "labels"):
        shares = (Name.BLIND_LABEL_ACCURACY, Name.BLIND_MATCHED_LABEL_ACCURACY)
        share = next(m for m in found if m.name in shares)
        return {"blind_guess": "the most frequent class", share.name: share.value}
    imputed = [m for m in found if is_blind(m.attack)]
    errors = [m for m in found if m.name in (Name.BLIND_MSE, Name.BLIND_MATCHED_MSE)]
    best = min([*errors, *(m for m in imputed if m.name is Name.MSE)], key=lambda m: m.value)
    if best.name is Name.BLIND_MATCHED_MSE:
        return {"blind_guess": best.attack, best.name: best.value}
    names = [c.name for c in ([own.label] if own.label else own.columns)]
    columns = _by_column((m for m in found if m.attack in (attack, "")), names)
    for name, guess in _by_column(imputed, names).items():
        columns[name]["blind_mse"] = min(columns[name]["blind_mse"], guess["mse"])
    return {"blind_guess": best.attack, Name.BLIND_MSE: best.value, "columns": columns}


def _adversaries(config: LedConfig) -> set[str]:
    """The parties of its run that can attack the party of ``config``."""
    agreement = AGREEMENTS[config.facts.setting].load(config.out)
    operator = {OPERATOR} if config.facts.predicts else set()
    return {config.leader.name, *(p.name for p in agreement.parties), *operator} - {config.party}


def _by_column(figures: Iterable[Metric], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Column → its figures: "mse", "blind_mse" and, in bits where it has an alphabet, "entropy",
    "conditional_entropy".
    """
    columns: dict[str, dict[str, float]] = {}
    for m in figures:
        if m.name.startswith("column_"):
            for name, value in m.by_column(names).items():
                columns.setdefault(name, {})[m.name.removeprefix("column_")] = value
    return columns


def _keep_score(config: LedConfig, submission: Submission) -> None:
    unpictured = config.scoring.model_copy(update={"pictures": 0})  # the run's own pictures stay
    in_process = read_party(config.out).federation.in_process
    with resumed(config.model_copy(update={"scoring": unpictured}), in_process=in_process) as party:
        party.score(submission, ended=True)


def _read(file: Path) -> tuple[str, str, Submission]:
    """Names of attack and target, and the submission."""
    saved = load_arrays(file, remedy="write one with `vflens attack`")
    try:
        for name, (kinds, axes) in _SAVED.items():
            if saved[name].dtype.kind not in kinds or saved[name].ndim != axes:
                raise DataError(
                    f"{file} is no estimate, its {name} is {saved[name].dtype} of shape {saved[name].shape}: "
                    "write one with `vflens attack`"
                )
        values = saved["values"].astype(np.float64)
        guess = Guess(str(saved["attack"]), values, _states(file, saved["status"]))
        run, sender, scored_set = (str(saved[name]) for name in ("run", "adversary", "scored_set"))
        facts = run, sender, scored_set, saved["rows"], (guess,)
        submission = Submission(*facts, *_of_client(saved))
        return guess.attack, str(saved["target"]), submission
    except KeyError as error:
        raise DataError(f"{file} is no estimate, it lacks {error}: write one with `vflens attack`") from error


def _of_client(saved: Mapping[str, Array]) -> tuple[str, int | None]:
    """What a submission to a client says beside: what is estimated, and the round of rows in no order."""
    step = saved.get("step")
    return str(saved.get("estimates", "")), None if step is None else int(step)


def _states(file: Path, status: Array) -> Array:
    """The states of the rows, as in a submission."""
    try:
        return numbered(status.tolist())
    except KeyError as error:
        raise DataError(
            f"{file} is no estimate, {error} is no state of a row: use {', '.join(RowStatus)}"
        ) from error
