"""Attacks on a recorded transcript, and scoring at the target, without any party running."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from clients.passive import PassiveParty
from clients.utility import auc
from experiments.folders import read_party
from services.folder import claimed
from vfl import journal
from vfl.acts import Guess, Submission
from vfl.arrays import load_arrays, save_arrays
from vfl.attack import Attack
from vfl.config import (
    ActiveConfig,
    CoordinatorConfig,
    PassiveConfig,
    Plugin,
    build_plugins,
    load_party,
    read_toml,
)
from vfl.errors import ConfigError, DataError, ProtocolError
from vfl.federation import Federation
from vfl.metrics import Metrics
from vfl.randomness import secret_from_seed, stream
from vfl.registry import ATTACKS
from vfl.types import Array, Estimate, Phase, Point, Released, Role
from vfl.view import AdversaryView


class _Recorded:
    """A transcript folder that can be read again and again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __iter__(self) -> Iterator[Released]:
        return journal.read(self._folder)


def attack_recorded(folder: Path, name: str, target: str | None, out: Path) -> dict[str, Any]:
    """Run attack ``name`` on a party's ``folder`` and write the estimate to ``out`` (npz).

    Attacks on columns sit in the active party's folder. Those on labels sit in any other party's: the gradients of
    training reach the passive parties and the coordinator alike, and their target is the active party. It has the parameters that the run configured for it; its defaults if the run did not use it.

    Raises:
        StorageError: the folder is no party's run folder, or cannot be read.
        ConfigError: an unknown target.
        KnowledgeError: the transcript lacks what the attack needs.
    """
    federation = Federation.load(folder)
    config = read_toml(folder / "config.toml")
    attack = _configured(config, name)
    party, target = _sides(attack, str(config["party"]), federation, target)
    transcript = _Recorded(folder / "transcript")
    kept = folder / "own.npz"  # a passive party has it if it was granted labels
    own = load_arrays(kept) if party == federation.active.name or kept.exists() else {}
    scored = Phase.PREDICT if Phase.PREDICT in attack.estimated_rows else Phase.TRAIN
    view = AdversaryView(
        party=party,
        target=target,
        rows=_predicted(transcript) if scored is Phase.PREDICT else _trained(transcript, federation, target),
        n_classes=federation.n_classes,
        transcript=transcript,
        own=own,
        parties=federation.parties,
        needs=attack.needs,
        phases=attack.phases,
        training=federation.train,
        network=federation.network,
    )
    estimate = attack.reconstruct(view, rng=stream(secret_from_seed(config["seed"]), "attack", name, target))
    _write(out, federation.run, name, scored, estimate)
    return {"attack": name, "target": target, "rows": len(estimate.rows), "estimate": str(out)}


def score_estimate(file: Path, config_file: Path) -> dict[str, Any]:
    """The target scores ``file`` against its own table; the errors are kept in its folder and returned to it.

    A passive party scores columns, the active party beliefs in labels.

    Raises:
        ConfigError: not a data party's configuration, or the party is running.
        DataError: ``file`` is no estimate.
        ProtocolError: an estimate of other rows or columns.
    """
    config = load_party(config_file)
    if isinstance(config, CoordinatorConfig):
        raise ConfigError(
            f"{config_file} configures a {config.role}: only the target, a data party, can score"
        )
    attack, submission = _read(file)
    if isinstance(config, ActiveConfig):
        return _score_labels(config, attack, submission)
    with claimed(config.out):  # two writers would spoil its logs
        _score(config, submission)
    rows = len(submission.rows)
    found = [
        m for m in read_party(config.out).metrics if m.rows == rows and m.scored_set == submission.scored_set
    ]
    blind = min((m for m in found if m.metric == "blind_mse"), key=lambda m: m.value)
    figures = {
        m.metric: m.value for m in found if m.attack == attack and not m.column and m.metric != "blind_mse"
    }
    return {"attack": attack, "rows": rows, **figures, "blind_guess": blind.attack, "blind_mse": blind.value}


def _score(config: PassiveConfig, submission: Submission) -> None:
    unpictured = config.scoring.model_copy(update={"pictures": 0})  # the run's own pictures stay
    party = PassiveParty(config.model_copy(update={"scoring": unpictured}))
    party.in_process = read_party(config.out).federation.in_process  # closing it writes this again
    try:
        party.resume()
        party.scoring.due = [
            len(submission.rows)
        ]  # the run is over, and may have ended early: this is all there is
        party.score(submission)
    finally:
        party.close()


def _score_labels(config: ActiveConfig, attack: str, submission: Submission) -> dict[str, Any]:
    """Share of rows whose likeliest class is the label, beside that of the training rows' most frequent class."""
    federation, labels = Federation.load(config.out), load_arrays(config.out / "own.npz")["labels"]
    (guess,) = submission.guesses
    rows, shape = submission.rows, (len(submission.rows), federation.n_classes)
    if submission.run != federation.run or guess.values.shape != shape or not len(rows):
        raise ProtocolError(
            f"estimate of run {submission.run!r} with values of shape {guess.values.shape}: beliefs of shape {shape} of run {federation.run!r} are scored"
        )
    rows = federation.checked_rows(rows, Phase(submission.scored_set))
    with np.errstate(divide="ignore"):
        beliefs = np.log(guess.values)
    likeliest = np.bincount(labels[federation.train]).argmax()
    figures = {
        "label_auc": auc(beliefs, labels[rows]),
        "label_accuracy": float((guess.values.argmax(axis=1) == labels[rows]).mean()),
        "blind_label_accuracy": float((labels[rows] == likeliest).mean()),
    }
    with claimed(config.out):
        metrics = Metrics(config.out / "metrics.parquet")
        for name, value in figures.items():
            scored = submission.scored_set
            metrics.add(name, value, attack=attack, target=config.party, scored_set=scored, rows=len(rows))
        metrics.save()
    return {"attack": attack, "rows": len(rows), **figures, "blind_guess": "the most frequent class"}


def _sides(attack: Attack, party: str, federation: Federation, target: str | None) -> tuple[str, str]:
    """Who attacks whom."""
    active = federation.active.name
    if attack.estimates == "features":
        return active, _target(federation, target)
    if party == active:
        raise ConfigError(
            f"labels are no secret from {active!r}, which holds them: give the folder of another party"
        )
    if target not in (None, active):
        raise ConfigError(f"--target {target!r}: the labels are those of {active!r}")
    return party, active


def _configured(config: dict[str, Any], name: str) -> Attack:
    plugin = next(
        (Plugin(**a) for a in config.get("attacks", ()) if a.get("name") == name), Plugin(name=name)
    )
    (attack,) = build_plugins(ATTACKS, [plugin])
    assert isinstance(attack, Attack)
    return attack


def _target(federation: Federation, named: str | None) -> str:
    names = [p.name for p in federation.parties if p.role == Role.PASSIVE]
    if named is None and len(names) == 1:
        return names[0]
    if named not in names:
        raise ConfigError(f"--target {named!r}: name one of {', '.join(sorted(names))}")
    return named


def _predicted(transcript: _Recorded) -> Array:
    """The rows whose scores, or embeddings in a split network, arrived, in order of first arrival."""
    points = (Point.SCORES, Point.EMBEDDING)
    arrived = [r.rows for r in transcript if r.point in points and r.exchange.phase is Phase.PREDICT]
    if not arrived:
        raise ConfigError("the transcript holds no scores: attack a run that predicted")
    rows = np.concatenate(arrived)
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]


def _trained(transcript: _Recorded, federation: Federation, target: str) -> Array:
    """The training rows but those that the target granted, which are not scored."""
    granted = [r.rows for r in transcript if r.point is Point.AUXILIARY and r.sender == target]
    return np.setdiff1d(federation.train, np.concatenate([np.zeros(0, np.int32), *granted]))


def _write(out: Path, run: str, attack: str, scored: Phase, e: Estimate) -> None:
    named = {"run": np.array(run), "attack": np.array(attack), "target": np.array(e.target)}
    named["scored_set"] = np.array(scored.value)
    save_arrays(out, {**named, "rows": e.rows, "values": e.values, "status": e.status})


def _read(file: Path) -> tuple[str, Submission]:
    saved = load_arrays(file)
    try:
        guess = Guess(str(saved["attack"]), saved["values"], saved["status"])
        return guess.attack, Submission(str(saved["run"]), str(saved["scored_set"]), saved["rows"], (guess,))
    except KeyError as error:
        raise DataError(f"{file} is no estimate, it lacks {error}: write one with `vflens attack`") from error
