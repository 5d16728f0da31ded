"""Runs the adversary's plug-ins: builds their views, runs them, submits their estimates.

Attacks read their party's transcript and its own columns; the target computes their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from vflens.clients.vertical.aligned_run import Host
from vflens.errors import ConfigError, KnowledgeError, PluginError, ProtocolError, StateError, StorageError
from vflens.models.part import Copied, Predicting
from vflens.numerics.theory.distortion_theory import logit_moment
from vflens.plugins.attack import Attack
from vflens.plugins.findings import Joint
from vflens.plugins.own_reads import NETWORK
from vflens.plugins.reads import read_only
from vflens.plugins.steps import Progress, silent
from vflens.plugins.view import AdversaryView
from vflens.protocol.acts import Guess, Submission
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.federation import Federation
from vflens.randomness import stream
from vflens.score.service import scorable
from vflens.storage.files import save_arrays
from vflens.storage.journal import Reader
from vflens.types import Array, Estimate, Exchange, Phase, Point, Role, numbered

if TYPE_CHECKING:
    from torch.nn import Module

Reconstruct: TypeAlias = Callable[[str, str, Array], Estimate | None]  # attack, target and rows

_AT_ONCE = 4096  # rows of a network's forward pass: its memory has a bound


class Adversary:
    """The configured attacks of one data party: an active party's against each passive one, a passive party's
    against the active one.
    """

    def __init__(self, party: Host, attacks: Mapping[str, Attack]) -> None:
        self._party, self.attacks = party, dict(attacks)
        self._received = Reader(party.folder / "transcript")  # readers cannot write to it
        self._noted: set[tuple[str, str, str]] = set()

    def attack(self, rows: Array, *, final: bool) -> None:
        """Reconstruct prediction ``rows`` int32 (n,) of every target and submit.

        ``final`` keeps the estimates on disk, and reconstructs the training rows too.
        """
        reconstruct = self._reconstruction()
        for target in self._attacked():
            self._attack(target, Phase.PREDICT, rows, reconstruct, keep=final)
            if final:
                self._attack(target, Phase.TRAIN, self._trained(target), reconstruct, keep=False)

    def attack_labels(self) -> None:
        """Estimate the labels of training and of prediction rows of every target, keep the estimates and
        submit.
        """
        reconstruct = self._reconstruction()
        for target in self._attacked():
            self._attack(target, Phase.TRAIN, self._trained(target), reconstruct, keep=True)
            predicted = self._party.run.federation.predict
            self._attack(target, Phase.PREDICT, predicted, reconstruct, keep=True)

    def _attacked(self) -> list[str]:
        """The names of the target parties with a link to their scoring services."""
        if not self.attacks:
            return []
        party, federation = self._party, self._party.run.federation
        others = federation.passive if party.role is Role.ACTIVE else (federation.active,)
        return [other.name for other in others if other.name in party.links]

    def _reconstruction(self) -> Reconstruct:
        """:meth:`_reconstruct` with what all attacks on all targets share."""
        return partial(self._reconstruct, own=self.own() if self.attacks else {}, joint=[])

    def _attack(
        self, target: str, scored: Phase, rows: Array, reconstruct: Reconstruct, *, keep: bool
    ) -> None:
        able = [name for name, attack in self.attacks.items() if scored in attack.declared().rows]
        estimates = {n: e for n in able if (e := reconstruct(n, target, rows)) is not None}
        if keep:
            self._save(target, scored, estimates)
        if keep and scored is Phase.PREDICT:
            self._record_guessed_scores(target, rows, estimates)
        if estimates:
            self._submit(target, scored, rows, estimates)

    def _trained(self, target: str) -> Array:
        return scored_training_rows(self._party.run.federation, self._received, target)

    def own(self) -> dict[str, Array]:
        """The own data of the adversary's party, for :class:`vflens.plugins.view.AdversaryView`."""
        party, run = self._party, self._party.run
        own = {"features": self._own_inputs()}
        if run.labels is not None:
            own["labels"] = run.labels
        if run.federation.model.linear:
            own["parameters"] = run.model.parameters()["weight"]
        elif party.role is Role.PASSIVE:
            own["embeddings"] = self._embedded()
        elif isinstance(run.model, Predicting):
            with party.lock:  # predictions may use the same model at the same time
                network = run.model.predicting(_predictions(party.config.run))
            own |= {f"{NETWORK}{name}": array for name, array in network.items()}
        return {name: read_only(array) for name, array in own.items()}

    def _own_inputs(self) -> Array:
        """The party's inputs (N, d); of the active party those of its part of the predictions, with the masks
        that its defences drew for them.
        """
        party, inputs = self._party, self._party.run.inputs
        if party.role is Role.PASSIVE or not party.chain.overrides("on_batch"):
            return inputs.kept
        everything = np.arange(len(inputs), dtype=np.int32)
        return party.inputs_of(everything, _predictions(party.config.run))

    def own_model(self) -> Module:
        """A copy of the passive party's trained bottom model; see :meth:`AdversaryView.own_model`.

        Raises:
            KnowledgeError: the party's part of the model has no such module.
        """
        party, run = self._party, self._party.run
        if not isinstance(run.model, Copied):
            title = run.federation.model.title
            raise KnowledgeError(
                f"the federation trains {title}: {party.name!r} has no module to learn on with"
            )
        with party.lock:
            return run.model.copied(_predictions(party.config.run))

    def _embedded(self) -> Array:
        """The party's embeddings (N, w) of all its rows as its model gives them in predictions, its own
        passport included.
        """
        party, run = self._party, self._party.run
        exchange = _predictions(party.config.run)
        with party.lock:
            rows = np.arange(len(run.inputs), dtype=np.int32)
            parts = [
                run.model.forward(party.inputs_of(rows[i : i + _AT_ONCE], exchange), exchange)
                for i in range(0, len(rows), _AT_ONCE)
            ]
        return np.concatenate(parts)

    def _reconstruct(
        self, name: str, target: str, rows: Array, *, own: Mapping[str, Array], joint: Joint
    ) -> Estimate | None:
        party, attack = self._party, self.attacks[name]
        view = view_of(
            attack,
            party.run.federation,
            party=party.name,
            target=target,
            rows=rows,
            transcript=self._received,
            own=own,
            every=party.config.transcript.every,
            device=party.config.device,
            joint=joint,
            own_model=self.own_model if party.role is Role.PASSIVE else None,
        )
        try:
            return reconstructed(attack, view, stream(party.secret, "attack", name, target))
        except KnowledgeError as error:
            self._note("skipped", name, target, str(error))
        except (PluginError, ConfigError) as error:  # an attack must not end the run
            self._note("failed", name, target, str(error))
        return None

    def _note(self, outcome: str, attack: str, target: str, reason: str) -> None:
        """Record once that ``attack`` on ``target`` was "skipped" or "failed"."""
        if (outcome, attack, target) in self._noted:
            return
        self._noted.add((outcome, attack, target))
        self._party.metrics.add(
            outcome, 1.0, attack=attack, adversary=self._party.name, target=target, column=reason
        )
        self._party.log.warning(f"attack {outcome}", attack=attack, target=target, reason=reason)

    def _submit(self, target: str, scored: Phase, rows: Array, estimates: Mapping[str, Estimate]) -> None:
        party = self._party
        guesses = tuple(Guess(name, e.values, numbered(e.status)) for name, e in estimates.items())
        submission = Submission(party.config.run, party.name, scored.value, rows, guesses)
        try:
            receipt = party.patiently(lambda: party.links[target].call(submission))
        except (ProtocolError, StateError) as refusal:
            party.log.warning("not scored", target=target, reason=str(refusal))
            return
        shown: dict[str, dict[str, float]] = {}
        add = partial(party.metrics.add, adversary=party.name, target=target, scored_set=scored.value)
        for attack, error in receipt.errors.items():
            metric, value = self._figure(attack, error)
            add(metric, value, attack=attack, rows=len(rows))
            shown.setdefault(metric, {})[attack] = value
        party.log.info("receipt", target=target, rows=receipt.rows, attacks=receipt.attacks, **shown)
        party.metrics.save()

    def _figure(self, attack: str, error: float) -> tuple[str, float]:
        """The metric's name and value of a receipt: wrong labels are recorded as the share of right ones."""
        if self.attacks[attack].estimates == "labels":
            return "label_accuracy", 1 - error
        return "mse", error

    def _record_guessed_scores(self, target: str, rows: Array, estimates: Mapping[str, Estimate]) -> None:
        """Distance of the scores that an attack guessed from those received, for VAR's (13) and (21)."""
        guessed = {
            name: e.extras["logits"]
            for name, e in estimates.items()
            if self.attacks[name].estimates == "features" and "logits" in e.extras
        }
        if not guessed:
            return
        log_c = _received_scores(self._received, rows)
        known = np.isfinite(log_c).all(axis=1)
        for name, logits in guessed.items():
            if known.any():
                moment = logit_moment((logits - log_c)[known])
                labels = {"attack": name, "target": target, "scored_set": "predict", "rows": int(known.sum())}
                self._party.metrics.add_matrix("guessed_scores_error", moment, **labels)

    def _save(self, target: str, scored: Phase, estimates: Mapping[str, Estimate]) -> None:
        party, end = self._party, "train.npz" if scored is Phase.TRAIN else "npz"
        for name, e in estimates.items():
            file = party.folder / "estimates" / f"{target}.{name}.{end}"
            save_estimate(file, e, run=party.config.run, adversary=party.name, attack=name, scored=scored)


def reconstructed(attack: Attack, view: AdversaryView, rng: np.random.Generator) -> Estimate:
    """The estimate of ``attack`` from ``view``.

    Raises:
        KnowledgeError: it lacks knowledge.
        ConfigError: a parameter does not fit what it finds.
        StorageError: the transcript is damaged.
        PluginError: it fails in another way, or returns an invalid estimate.
    """
    try:
        estimate = attack.reconstruct(view, rng=rng)
    except (KnowledgeError, ConfigError, StorageError):
        raise
    except (Exception, SystemExit) as error:  # a plug-in must not end the process
        raise PluginError(f"{type(error).__name__}: {error}") from error
    _check_estimate(estimate, view, attack)
    return estimate


def save_estimate(
    file: Path, estimate: Estimate, *, run: str, adversary: str, attack: str, scored: Phase
) -> None:
    """Write ``estimate`` to ``file`` (npz), with the names by which its target can score it.

    Raises:
        StorageError: it cannot be written.
    """
    names = {"run": run, "adversary": adversary, "attack": attack, "scored_set": scored.value}
    texts = {name: np.array(text) for name, text in {**names, "target": estimate.target}.items()}
    save_arrays(file, {**texts, **estimate.arrays()})


def view_of(
    attack: Attack,
    federation: Federation,
    *,
    party: str,
    target: str,
    rows: Array,
    transcript: Reader,
    own: Mapping[str, Array],
    every: int,
    device: str,
    joint: Joint | None = None,
    own_model: Callable[[], Module] | None = None,
    progress: Progress = silent,
) -> AdversaryView:
    """The view of ``attack`` in ``party`` on ``federation``, in a run or from its record; see
    :class:`AdversaryView`.
    """
    declared = attack.declared()
    return AdversaryView(
        party=party,
        target=target,
        rows=rows,
        n_classes=federation.n_classes,
        transcript=transcript,
        own=own,
        parties=federation.parties,
        needs=declared.needs,
        phases=declared.phases,
        training=federation.train,
        model=federation.model,
        every=every,
        device=device,
        joint=joint,
        own_model=own_model,
        progress=progress,
    )


def _predictions(run: str) -> Exchange:
    """The exchange whose keys all predictions of ``run`` share."""
    return Exchange(run, Phase.PREDICT, MODEL_VERSION, 0)


def scored_training_rows(federation: Federation, transcript: Reader, target: str) -> Array:
    """All training rows but those that ``target`` granted, which are not scored."""
    granted = [r.rows for r in transcript.select(Point.AUXILIARY, sender=target)]
    return np.setdiff1d(federation.train, np.concatenate([np.zeros(0, np.int32), *granted]))


def _received_scores(transcript: Reader, rows: Array) -> Array:
    """The log-probabilities (n, k) of ``rows``, all of which arrived."""
    scores = [(r.rows, r.tensor("scores")) for r in transcript.select(Point.SCORES)]
    arrived, log_c = (np.concatenate(parts) for parts in zip(*scores, strict=True))
    order = np.argsort(arrived, kind="stable")
    found: Array = log_c[order[np.searchsorted(arrived, rows, sorter=order)]]
    return found


def _check_estimate(estimate: Estimate, view: AdversaryView, attack: Attack) -> None:
    """Refuse what the target would refuse: one attack's mistake must not stop the scoring of others."""
    rows, target = view.rows, view.target
    width = view.n_classes if attack.estimates == "labels" else view.widths()[target]
    if not isinstance(estimate, Estimate) or estimate.target != target:
        raise PluginError(f"it must return an Estimate of {target!r}")
    if not np.array_equal(estimate.rows, rows) or estimate.status.shape != rows.shape:
        raise PluginError(f"rows and status must be those of the {len(rows)} rows of its view")
    if estimate.values.shape != (len(rows), width):
        raise PluginError(f"values have the shape {estimate.values.shape}, not ({len(rows)}, {width})")
    if not scorable(estimate.values):
        raise PluginError("its values are not all finite and moderate: set its rate, or weights, lower")
