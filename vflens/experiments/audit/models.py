"""Simulated models of the planned federation, and the adversary's data.

Nothing is trained together: a simulated active party brings columns and labels (the real ones, where the
audit knows them), a softmax regression on both parties' columns is drawn or trained, and its scores and
parameters stand in a transcript as they would arrive, defended or not. The attacks read it through the usual
view.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vflens.array import ScaledColumns
from vflens.experiments.audit.subject import Subject
from vflens.member.adversary import reconstructed
from vflens.models.settings import Training
from vflens.models.softmax_regression import log_softmax, train_alone
from vflens.plugins.attack import Attack
from vflens.plugins.chain import DefenseChain
from vflens.plugins.defense import NamedDefense
from vflens.plugins.view import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import Array, Estimate, Exchange, Owner, PartyInfo, Phase, Point, Released, Role

_TRAINING = Training(epochs=30, batch_size=64, learning_rate=0.05)
_TRAINING_SHARE = 0.8  # of the rows, drawn anew for each model
_LOGIT_STD = 2.0  # of the teacher that draws unknown labels: classes overlap, but not fully
_NO_ROWS = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class World:
    """One released model.

    ``weight`` (k, d) is the party's own block, ``released`` are log-probabilities (n, k) after defences,
    ``parameters`` the disclosed weight (k, d) and bias or None, ``own_weight`` (k, m) and ``other`` (n, m)
    the active party's, ``labels`` (n,).
    """

    subject: Subject
    weight: Array
    released: Array
    parameters: Mapping[str, Array] | None
    other: Array
    own_weight: Array
    labels: Array

    def attack(self, attack: Attack, rows: Array, known: Array, rng: np.random.Generator) -> Estimate:
        """The estimate of ``attack`` for ``rows`` int32 (n,), with the rows ``known`` disclosed.

        Raises:
            KnowledgeError: it needs what was withheld.
            PluginError: it fails.
        """
        subject = self.subject
        received = [
            Released(
                "coordinator", _exchange(Phase.PREDICT), Point.SCORES, rows, {"scores": self.released[rows]}
            ),
            Released("passive", _exchange(Phase.DISCLOSE), Point.PARAMETERS, _NO_ROWS, self.parameters),
        ]
        if len(known):
            features = {"features": subject.x[known]}
            received.append(Released("passive", _exchange(Phase.DISCLOSE), Point.AUXILIARY, known, features))
        view = AdversaryView(
            party="active",
            target="passive",
            rows=rows,
            n_classes=subject.classes,
            transcript=Messages(received),
            own={"features": self.other, "labels": self.labels, "parameters": self.own_weight},
            parties=[
                PartyInfo("active", Role.ACTIVE, n_classes=subject.classes),
                PartyInfo("passive", Role.PASSIVE, subject.columns),
            ],
            needs=attack.needs,
            phases=attack.phases,
        )
        return reconstructed(attack, view, rng)

    @property
    def accuracy(self) -> float:
        """Share of rows whose first arg-max among the released scores is the label."""
        return float((self.released.argmax(axis=1) == self.labels).mean())


def simulate(
    subject: Subject, kind: str, rng: np.random.Generator, defenses: Iterable[NamedDefense] = ()
) -> World:
    """A world of ``subject``.

    Args:
        subject: whose columns are the passive ones.
        kind: "random": Gaussian weights; "trained": softmax regression on labels; "given":
            ``subject.weight``.
        rng: draws everything that is not given.
        defenses: by name, fold over inputs, partial logits, parameters and scores, all with the passive
            party as owner.
    """
    n, d = subject.x.shape
    everything = np.arange(n, dtype=np.int32)
    other = rng.random((n, d)) if subject.other is None else subject.other
    weight, bias = _teacher(np.hstack([subject.x, other]), subject.classes, rng)
    labels = _labels(subject, kind, np.hstack([subject.x, other]) @ weight.T + bias, rng)
    disclosed: dict[str, Array] = {}
    owner = Owner("passive", ScaledColumns(subject.x), None, subject.classes, parameters=disclosed)
    secret: bytes = rng.bytes(32)
    chain = DefenseChain(lambda: owner, list(defenses), secret)

    def fold(hook: str, value: Any, phase: Phase) -> Any:
        return chain.fold(hook, value, _exchange(phase), everything)

    inputs = fold("on_inputs", subject.x, Phase.TRAIN)
    if kind == "trained":
        drawn = rng.permutation(n)[: math.ceil(_TRAINING_SHARE * n)]
        block = train_alone(np.hstack([inputs, other]), labels, drawn, subject.classes, _TRAINING, rng=rng)
        weight, bias = block.weight, block.parameters()["bias"]
    mine = subject.weight if kind == "given" and subject.weight is not None else weight[:, :d]
    disclosed.update(weight=mine.copy(), bias=bias)
    partial = fold("on_embedding", inputs @ mine.T + bias, Phase.PREDICT)
    return World(
        subject,
        mine,
        fold("on_scores", log_softmax(partial + other @ weight[:, d:].T), Phase.PREDICT),
        fold("on_parameters", disclosed, Phase.DISCLOSE),
        other,
        weight[:, d:],
        labels,
    )


def _teacher(features: Array, classes: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Weights (k, D) whose logits have a standard deviation of about 2, none for constant columns, and a bias
    (k,)
    that makes the classes equally likely."""
    std = features.std(axis=0)
    weight = rng.normal(size=(classes, features.shape[1])) * _LOGIT_STD / np.sqrt(features.shape[1])
    weight = np.where(std > 0, weight / np.where(std > 0, std, 1.0), 0.0)
    return weight, -(features @ weight.T).mean(axis=0)


def _labels(subject: Subject, kind: str, logits: Array, rng: np.random.Generator) -> Array:
    """The known labels for a trained model; else drawn from softmax(logits), by Gumbel's trick."""
    if kind == "trained" and subject.labels is not None:
        return subject.labels
    labels: Array = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return labels


def _exchange(phase: Phase) -> Exchange:
    return Exchange("audit", phase, 1, 0)
