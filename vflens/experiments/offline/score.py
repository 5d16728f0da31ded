"""Scoring of a written estimate at its target, while no party runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import overload

import numpy as np

from vflens.clients.active import ActiveParty
from vflens.clients.horizontal.client import Client
from vflens.clients.passive import PassiveParty
from vflens.config import ActiveConfig, ClientConfig, DataConfig, PassiveConfig, load_party
from vflens.errors import ConfigError, DataError
from vflens.experiments.results.folders import Metric, PartyRun, read_party
from vflens.experiments.results.results import half_width
from vflens.protocol.acts import Guess, Submission
from vflens.protocol.federation import Federation
from vflens.services.folder import exclusive
from vflens.storage.files import load_arrays
from vflens.types import Array, Document, RowStatus, numbered

#: Arrays of an estimate's file: kinds of dtype, number of axes.
_SAVED = dict.fromkeys(("run", "adversary", "attack", "scored_set", "target"), ("U", 0))
_SAVED |= {"rows": ("iu", 1), "values": ("iuf", 2), "status": ("U", 1)}


def score_estimate(file: Path, config_file: Path) -> Document:
    """Score ``file``, written by ``vflens attack`` or by a run into ``estimates/``, against the target's own
    table.

    The errors go into the target's folder and are returned. A passive party scores columns, the active party
    guesses of labels.

    Raises:
        ConfigError: not a data party's configuration, not the target's, or the party is running.
        DataError: ``file`` is no estimate by another party of the run.
        StorageError: the folder holds no run, or one of another table.
        ProtocolError: an estimate of other rows or columns.
    """
    config = load_party(config_file)
    if not isinstance(config, DataConfig):
        raise ConfigError(
            f"{config_file} configures a {config.role}: only the target, a data party, can score"
        )
    attack, submission = _estimate_of(file, config, config_file)
    with exclusive(config.out):  # two writers would spoil its logs
        _keep_score(config, submission)
    rows = len(submission.rows)
    party = read_party(config.out)
    found = [
        m
        for m in party.metrics
        if (m.rows, m.scored_set, m.adversary) == (rows, submission.figures_of, submission.sender)
    ]
    figures = {m.metric: m.value for m in found if m.attack == attack and not m.column and not m.values}
    facts = {"attack": attack, "rows": rows, **figures}
    if "mse_stderr" in figures:
        facts["half_width"] = half_width(figures["mse_stderr"])
    return {**facts, **_blind(config, submission, party, attack, found)}


def _estimate_of(file: Path, config: DataConfig, config_file: Path) -> tuple[str, Submission]:
    """The attack and its estimate in ``file``, of the party of ``config``."""
    attack, target, submission = _read(file)
    if target != config.party:
        raise ConfigError(
            f"{file} estimates {target!r}, and {config_file} is that of {config.party!r}: only the target "
            "can score it"
        )
    others = _adversaries(config)
    if submission.sender not in others:
        raise DataError(
            f"{file} says that {submission.sender!r} is the adversary: in this run "
            f"{', '.join(sorted(others))} can be, write one with `vflens attack`"
        )
    return attack, submission


def _blind(
    config: DataConfig, submission: Submission, party: PartyRun, attack: str, found: Sequence[Metric]
) -> Document:
    """Beside the errors of ``attack`` among the figures ``found``: those of a blind guess, by column too."""
    matched = "matched_" if any(m.metric.startswith("blind_matched_") for m in found) else ""
    if isinstance(config, ActiveConfig) or submission.estimates == "labels":
        name = f"blind_{matched}label_accuracy"
        blind = next(m.value for m in found if m.metric == name)
        return {"blind_guess": "the most frequent class", name: blind}
    if submission.estimates == "membership":
        return {"blind_guess": "a guess", "blind_membership_auc": 0.5}
    best = min((m for m in found if m.metric == f"blind_{matched}mse"), key=lambda m: m.value)
    if matched:
        return {"blind_guess": best.attack, best.metric: best.value}
    names = [c.name for p in party.federation.parties if p.name == config.party for c in p.columns]
    columns = _by_column((m for m in found if m.attack in (attack, "")), names)
    return {"blind_guess": best.attack, "blind_mse": best.value, "columns": columns}


def _adversaries(config: DataConfig) -> list[str]:
    """The parties of its run that can attack the party of ``config``."""
    leader = config.leader.name
    if isinstance(config, ClientConfig):
        return [leader]
    return [leader, *(p.name for p in Federation.load(config.out).parties if p.name != config.party)]


def _by_column(figures: Iterable[Metric], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Column → its figures: "mse", "blind_mse" and, in bits where it has an alphabet, "entropy",
    "conditional_entropy".
    """
    columns: dict[str, dict[str, float]] = {}
    for m in figures:
        if m.metric.startswith("column_"):
            for name, value in m.by_column(names).items():
                columns.setdefault(name, {})[m.metric.removeprefix("column_")] = value
    return columns


def _keep_score(config: DataConfig, submission: Submission) -> None:
    unpictured = config.scoring.model_copy(update={"pictures": 0})  # the run's own pictures stay
    party = alone(config.model_copy(update={"scoring": unpictured}))
    try:
        party.resume()
        party.score(submission, ended=True)
    finally:
        party.close()


@overload
def alone(config: PassiveConfig | ActiveConfig) -> PassiveParty | ActiveParty: ...
@overload
def alone(config: ClientConfig) -> Client: ...
def alone(config: DataConfig) -> PassiveParty | ActiveParty | Client:
    """The party of ``config``, without peers."""
    in_process = read_party(config.out).federation.in_process  # closing it writes this again
    if isinstance(config, ClientConfig):
        return Client(config, {}, in_process=in_process)
    if isinstance(config, PassiveConfig):
        return PassiveParty(config, {}, in_process=in_process)
    return ActiveParty(config, {}, in_process=in_process)


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
