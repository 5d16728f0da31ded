"""The host of the adversary's plug-ins: builds their views, runs them, submits what they believe.

Attacks see their party's transcript and its own columns; their errors are computed by the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from vfl.acts import Guess, Submission
from vfl.arrays import save_arrays
from vfl.attack import Attack
from vfl.compatibility import build_attacks
from vfl.errors import KnowledgeError, PluginError, ProtocolError, StateError
from vfl.link import Link
from vfl.randomness import stream
from vfl.score.service import scorable
from vfl.types import Array, Estimate, Phase, Point, Role
from vfl.view import AdversaryView

if TYPE_CHECKING:
    from clients.party import DataParty


class Adversary:
    """The configured attacks of one data party: an active party's against each passive one, a passive party's against the active one."""

    def __init__(self, party: DataParty, targets: Mapping[str, Link]) -> None:
        self._party = party
        self._targets = targets
        self.attacks = build_attacks(party.config)
        self._skipped: set[tuple[str, str]] = set()

    def attack(self, rows: Array, *, final: bool) -> None:
        """Reconstruct prediction ``rows`` int32 (n,) of every target and submit.

        ``final`` keeps the estimates on disk, and reconstructs the training rows too.
        """
        own = self.own()
        for target in sorted(self._targets):
            self._attack(target, Phase.PREDICT, rows, own, keep=final)
            if final:
                self._attack(target, Phase.TRAIN, self._training_rows(target), own, keep=False)

    def attack_training(self) -> None:
        """Estimate the training rows of every target, keep the estimates and submit."""
        own = self.own() if self.attacks else {}
        for target in sorted(self._targets):
            self._attack(target, Phase.TRAIN, self._training_rows(target), own, keep=True)

    def _attack(
        self, target: str, scored: Phase, rows: Array, own: Mapping[str, Array], *, keep: bool
    ) -> None:
        able = [name for name, attack in self.attacks.items() if scored in attack.estimated_rows]
        estimates = {n: e for n in able if (e := self._reconstruct(n, target, rows, own)) is not None}
        if keep:
            self._save(target, estimates)
        if estimates:
            self._submit(target, scored, rows, estimates)

    def _training_rows(self, target: str) -> Array:
        """All but those that the target granted, which are not scored."""
        granted = [
            r.rows for r in self._party.transcript if r.point is Point.AUXILIARY and r.sender == target
        ]
        train = self._party.run.federation.train
        return np.setdiff1d(train, np.concatenate(granted)) if granted else np.sort(train)

    def own(self) -> dict[str, Array]:
        """What the adversary's party owns, as :class:`vfl.view.AdversaryView` takes it."""
        party, run = self._party, self._party.run
        own = {"features": run.inputs}
        if party.role is Role.ACTIVE and party.owner.labels is not None:
            own["labels"] = party.owner.labels
        if run.federation.network is None:
            own["parameters"] = run.model.weight
        else:
            own |= {f"parameters/{name}": array for name, array in run.model.parameters().items()}
        return {name: _read_only(array) for name, array in own.items()}

    def _reconstruct(self, name: str, target: str, rows: Array, own: Mapping[str, Array]) -> Estimate | None:
        party, attack = self._party, self.attacks[name]
        federation = party.run.federation
        view = AdversaryView(
            party=party.name,
            target=target,
            rows=rows,
            n_classes=federation.n_classes,
            transcript=party.transcript,
            own=own,
            parties=federation.parties,
            needs=attack.needs,
            phases=attack.phases,
            training=federation.train,
            network=federation.network,
            every=party.config.transcript.every,
        )
        try:
            estimate = attack.reconstruct(view, rng=stream(party.secret, "attack", name, target))
            _check_estimate(estimate, view, attack)
            return estimate
        except KnowledgeError as error:
            self._skip(name, target, str(error))
        except Exception as error:  # a plug-in's bug must not end the run
            self._skip(name, target, f"the plug-in failed: {type(error).__name__}: {error}")
        return None

    def _skip(self, attack: str, target: str, reason: str) -> None:
        if (attack, target) in self._skipped:
            return
        self._skipped.add((attack, target))
        self._party.metrics.add(
            "skipped", 1.0, attack=attack, adversary=self._party.name, target=target, column=reason
        )
        self._party.log.warning("attack skipped", attack=attack, target=target, reason=reason)

    def _submit(self, target: str, scored: Phase, rows: Array, estimates: Mapping[str, Estimate]) -> None:
        party = self._party
        guesses = tuple(Guess(name, e.values, e.status) for name, e in estimates.items())
        submission = Submission(party.config.run, party.name, scored.value, rows, guesses)
        try:
            receipt = self._targets[target].call(submission)
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
        """What a receipt's error is called and counts: a share of wrong labels is told as that of right ones."""
        if self.attacks[attack].estimates == "labels":
            return "label_accuracy", 1 - error
        return "mse", error

    def _save(self, target: str, estimates: Mapping[str, Estimate]) -> None:
        for name, e in estimates.items():
            file = self._party.folder / "estimates" / f"{target}.{name}.npz"
            save_arrays(file, {"rows": e.rows, "values": e.values, "status": e.status})


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def _check_estimate(estimate: Estimate, view: AdversaryView, attack: Attack) -> None:
    """Refuse what the target would refuse: one attack's mistake must not cost the others their scores."""
    rows, target = view.rows, view.target
    width = view.n_classes if attack.estimates == "labels" else view.widths()[target]
    if not isinstance(estimate, Estimate) or estimate.target != target:
        raise PluginError(f"it must return an Estimate of {target!r}")
    if not np.array_equal(estimate.rows, rows) or estimate.status.shape != rows.shape:
        raise PluginError(f"rows and status must be those of the {len(rows)} rows of its view")
    if estimate.values.shape != (len(rows), width) or not scorable(estimate.values):
        raise PluginError(
            f"values of shape {estimate.values.shape}: finite ones of shape ({len(rows)}, {width}) are due"
        )
