"""Runs the adversary's plug-ins: builds their views, runs them, submits their estimates.

Attacks read their party's transcript and its own columns; the target computes their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from vflens.clients.dealt_labels import found_anew
from vflens.clients.vertical.aligned_run import LabelledRun, PartyHost
from vflens.errors import KnowledgeError
from vflens.member.adversary import Adversary
from vflens.models.part import Copied, Predicting
from vflens.numerics.theory.distortion_theory import logit_moment
from vflens.plugins.attack import FAIR_GUESS, Attack
from vflens.plugins.findings import Joint
from vflens.plugins.malicious import Replaced
from vflens.plugins.views.own_reads import AGAIN, NETWORK
from vflens.plugins.views.reads import read_only
from vflens.protocol.checks import MODEL_VERSION
from vflens.randomness import stream
from vflens.recorded.vertical.view import knows_rows, scored_training_rows, view_of
from vflens.registry import ATTACKS
from vflens.storage.journal import Reader
from vflens.storage.metrics import Name
from vflens.types import Array, Estimate, Exchange, Phase, Point, Role

if TYPE_CHECKING:
    from torch.nn import Module

Reconstruct: TypeAlias = Callable[[str, str, Phase, Array], Estimate | None]  # attack, target and rows

_AT_ONCE = 4096  # rows of a network's forward pass: its memory has a bound


class VerticalAdversary(Adversary):
    """The configured attacks of one data party: an active party's against each passive one, a passive party's
    against the active one. Those on columns have FAIR_GUESS beside them on the target's side too.
    """

    def __init__(self, party: PartyHost, attacks: Mapping[str, Attack]) -> None:
        on_columns = any(attack.estimates == "features" for attack in attacks.values())
        unguessed = on_columns and FAIR_GUESS not in attacks
        super().__init__(party, {**attacks, **({FAIR_GUESS: ATTACKS.get(FAIR_GUESS)()} if unguessed else {})})
        self._party, self._where_known = party, {FAIR_GUESS} if unguessed else set()

    def attack(self, rows: Array, *, final: bool) -> None:
        """Reconstruct prediction ``rows`` int32 (n,) of every target and submit.

        ``final`` keeps the estimates on disk, and reconstructs the training rows too.
        """
        reconstruct = self._reconstruction(final=final)
        for target in self._attacked():
            self._attack(target, Phase.PREDICT, rows, reconstruct, keep=final)
            if final:
                self._attack(target, Phase.TRAIN, self._trained(target), reconstruct, keep=False)

    def attack_labels(self) -> None:
        """Estimate the labels of every target's training and prediction rows; keep and submit them."""
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

    def _reconstruction(self, *, final: bool = True) -> Reconstruct:
        """:meth:`_reconstruct` with what all attacks on all targets share."""
        own = self.own() if self.attacks else {}
        return partial(self._reconstruct, own=own, joint=[], final=final)

    def _attack(
        self, target: str, scored: Phase, rows: Array, reconstruct: Reconstruct, *, keep: bool
    ) -> None:
        able = [name for name, attack in self.attacks.items() if scored in attack.declared().rows]
        asked = [name for name in able if name not in self._where_known]
        able = able if asked and knows_rows(self.received, target) else asked
        estimates = {n: e for n in able if (e := reconstruct(n, target, scored, rows)) is not None}
        if keep:
            self.save(target, scored, estimates)
        if keep and scored is Phase.PREDICT:
            self._record_guessed_scores(target, rows, estimates)
        if estimates:
            self.submit(target, scored, estimates)

    def _trained(self, target: str) -> Array:
        return scored_training_rows(self._party.run.federation, self.received, target)

    def own(self) -> dict[str, Array]:
        """The own data of the adversary's party, for :class:`vflens.plugins.views.vertical.AdversaryView`."""
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
        if isinstance(run, LabelledRun):
            own |= {**run.public, AGAIN: run.again}
        if isinstance(run.model, Replaced):
            own |= run.model.sent_by()
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
        """A copy of the passive party's trained bottom model.

        See :meth:`vflens.plugins.views.vertical.AdversaryView.own_model`.

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
        """Its embeddings (N, w) of all its rows as in predictions, its own passport included."""
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
        self,
        name: str,
        target: str,
        scored: Phase,
        rows: Array,
        *,
        own: Mapping[str, Array],
        joint: Joint,
        final: bool,
    ) -> Estimate | None:
        party = self._party
        see = partial(
            view_of,
            federation=party.run.federation,
            party=party.name,
            target=target,
            rows=rows,
            transcript=self.received,
            own=own,
            every=party.config.transcript.every,
            device=party.config.device,
            joint=joint,
            own_model=self.own_model if party.role is Role.PASSIVE else None,
        )
        found, attack = self.estimated(name, target, see, final=final), self.attacks[name]
        if (
            found is not None
            and len(rows)
            and attack.estimates == "labels"
            and attack.label_kind == "classes"
        ):
            rng = stream(party.secret, "labels dealt anew", name, target)
            gain = found_anew(attack, partial(see, joint=[]), found, own["features"], rng)
            if gain is not None:
                add = partial(party.metrics.add, Name.LABELS_ANEW, gain, adversary=party.name)
                add(attack=name, target=target, scored_set=scored, rows=len(rows))
        return found

    def _record_guessed_scores(self, target: str, rows: Array, estimates: Mapping[str, Estimate]) -> None:
        """Distance of the scores that an attack guessed from those received, for VAR's (13) and (21)."""
        guessed = {
            name: e.extras["logits"]
            for name, e in estimates.items()
            if self.attacks[name].estimates == "features" and "logits" in e.extras
        }
        if not guessed:
            return
        log_c = _received_scores(self.received, rows)
        known = np.isfinite(log_c).all(axis=1)
        for name, logits in guessed.items():
            if known.any():
                moment = logit_moment((logits - log_c)[known])
                labels = {"attack": name, "target": target, "scored_set": "predict", "rows": int(known.sum())}
                self._party.metrics.add_matrix(Name.GUESSED_SCORES_ERROR, moment, **labels)


def _predictions(run: str) -> Exchange:
    """The exchange whose keys all predictions of ``run`` share."""
    return Exchange(run, Phase.PREDICT, MODEL_VERSION, 0)


def _received_scores(transcript: Reader, rows: Array) -> Array:
    """The log-probabilities (n, k) of ``rows``, all of which arrived."""
    scores = [(r.rows, r.tensor("scores")) for r in transcript.select(Point.SCORES)]
    arrived, log_c = (np.concatenate(parts) for parts in zip(*scores, strict=True))
    order = np.argsort(arrived, kind="stable")
    found: Array = log_c[order[np.searchsorted(arrived, rows, sorter=order)]]
    return found
