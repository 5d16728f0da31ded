"""Simulated models of the planned federation, and the adversary's data.

Nothing is trained together: a simulated active party brings columns and labels (the real ones, where the
audit knows them), a softmax regression, of a numeric label a linear one, on both parties' columns is drawn or
trained, and its scores, parameters and messages of training stand in a transcript as they would arrive,
defended or not. The attacks read it through the usual view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from vflens.array import ScaledColumns
from vflens.experiments.audit.subject import AuditSubject
from vflens.member.adversary import reconstructed
from vflens.models.part import Keys, Site, plain
from vflens.models.settings import Training
from vflens.models.softmax_regression import LinearBlock, as_targets, batches
from vflens.numerics.measures.fit import r2, rmse
from vflens.numerics.measures.ranking import accuracy, auc
from vflens.plugins.attack import Attack
from vflens.plugins.chain import DefenseChain
from vflens.plugins.defense import NamedDefense
from vflens.plugins.findings import Joint
from vflens.plugins.steps import silent
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.storage.metrics import Name
from vflens.tables.scaling import Scaler
from vflens.types import (
    Array,
    Document,
    Estimate,
    Exchange,
    LabelKind,
    Owner,
    PartyInfo,
    Phase,
    Point,
    Progress,
    Released,
    Role,
)

_EPOCHS: Document = {"epochs": 30, "batch_size": 64}
_TRAINING: Mapping[LabelKind, Training] = {
    "classes": Training(**_EPOCHS, learning_rate=0.05),
    "number": Training(**_EPOCHS, learning_rate=0.01),  # larger steps lose some R² at the end
}
_TRAINING_SHARE = 0.8  # of the rows, drawn anew for each model
_LOGIT_STD = 2.0  # of the teacher that draws unknown labels: classes overlap, but not fully
_NUMBER_STD, _NOISE_STD = 0.25, 0.125  # the same of a number in [0, 1]: columns explain four fifths of it
_NO_ROWS = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class World:
    """One released model.

    ``inputs`` (n, d) are the party's columns as the model gets them, ``weight`` (k, d) is its own block and
    ``bias`` (k,), ``released`` are log-probabilities (n, k), of a number predictions (n, 1), after defences,
    ``parameters`` the disclosed weight (k, d) and bias or None, ``own_weight`` (k, m) and ``other`` (n, m)
    the active party's, ``labels`` (n,). Of a trained model ``trained`` int32 are its training rows,
    ascending, and ``sent`` what the party's partial logits of each batch became: training in the clear shows
    them.
    """

    subject: AuditSubject
    inputs: Array
    weight: Array
    bias: Array
    released: Array
    parameters: Mapping[str, Array] | None
    other: Array
    own_weight: Array
    labels: Array
    secret: bytes
    trained: Array = field(default_factory=lambda: _NO_ROWS)
    sent: tuple[Released, ...] = ()
    joint: Joint = field(default_factory=list)

    @cached_property
    def training(self) -> bytes:
        """A digest of the messages of training."""
        digest = blake2b(digest_size=16)
        for released in self.sent:
            digest.update(released.digest)
        return digest.digest()

    def attack(
        self,
        attack: Attack,
        rows: Array,
        known: Array,
        rng: np.random.Generator,
        progress: Progress = silent,
    ) -> Estimate:
        """The estimate of ``attack`` for ``rows`` int32 (n,), the rows ``known`` disclosed: the adversary
        gets predictions of both.

        Raises:
            KnowledgeError: it needs what was withheld.
            PluginError: it fails.
        """
        subject, predicted = self.subject, np.union1d(rows, known)
        scores = {"scores": self.released[predicted]}
        received = [
            Released("coordinator", _exchange(Phase.PREDICT), Point.SCORES, predicted, tensors=scores),
            Released(
                "passive", _exchange(Phase.DISCLOSE), Point.PARAMETERS, _NO_ROWS, tensors=self.parameters
            ),
            *self.sent,
        ]
        if len(known):
            features = {"features": subject.x[known]}
            received.append(
                Released("passive", _exchange(Phase.DISCLOSE), Point.AUXILIARY, known, tensors=features)
            )
        view = AdversaryView(
            party="active",
            target="passive",
            rows=rows,
            n_classes=subject.classes,
            transcript=Messages(received),
            own={"features": self.other, "labels": self.labels, "parameters": self.own_weight},
            parties=[
                PartyInfo("active", Role.ACTIVE, n_classes=subject.classes, label=subject.label),
                PartyInfo("passive", Role.PASSIVE, columns=subject.columns),
            ],
            needs=attack.needs | attack.helped_by,
            phases=attack.phases,
            training=self.trained,
            model=subject.family,
            joint=self.joint,
            progress=progress,
        )
        return reconstructed(attack, view, rng)

    @property
    def tested(self) -> Array:
        """The rows that did not train it, int32: what it is worth is measured on them."""
        return np.setdiff1d(np.arange(len(self.labels), dtype=np.int32), self.trained)

    def figures(self, scores: Array) -> dict[str, float]:
        """Accuracy and AUC of ``scores`` (n, k) on the tested rows; of a number R², and RMSE in its unit."""
        found, truth = scores[self.tested], self.labels[self.tested]
        if self.subject.label is None:
            return {Name.ACCURACY: accuracy(found, truth), Name.AUC: auc(found, truth)}
        unit = Scaler.of_bounds(self.subject.label).inverse
        return {Name.R2: r2(found[:, 0], truth), Name.RMSE: rmse(unit(found[:, 0]), unit(truth))}

    def alone(self, rng: np.random.Generator) -> Array:
        """Scores (n, k) of a model of the active party's columns alone, trained on the same rows."""
        return _fitted(self.subject, self.other, self.labels, self.trained, rng=rng).forward(self.other)

    def under(self, defense: NamedDefense) -> World:
        """The same model under one defence, which must not act in training."""
        defended = _Defended(self.subject, [defense], self.secret)
        others = self.other @ self.own_weight.T
        return replace(self, joint=[], **defended.releases(self.inputs, self.weight, self.bias, others))


def simulate(
    subject: AuditSubject, kind: str, rng: np.random.Generator, defenses: Iterable[NamedDefense] = ()
) -> World:
    """A world of ``subject``.

    Args:
        subject: whose columns are the passive ones.
        kind: "random": Gaussian weights; "trained": a model of labels; "given": ``subject.weight``.
        rng: draws everything that is not given.
        defenses: by name, fold over inputs, partial logits (those of training too), parameters and scores,
            all with the passive party as owner.
    """
    n, d = subject.x.shape
    everything = np.arange(n, dtype=np.int32)
    other = rng.random((n, d)) if subject.other is None else subject.other
    weight, bias = _teacher(np.hstack([subject.x, other]), subject.classes, rng)
    labels = _labels(subject, kind, np.hstack([subject.x, other]) @ weight.T + bias, rng)
    secret: bytes = rng.bytes(32)
    defended = _Defended(subject, defenses, secret)
    inputs = defended.fold("on_inputs", subject.x, Phase.TRAIN)
    drawn, sent = _NO_ROWS, list[Released]()
    if kind == "trained":
        drawn = rng.permutation(everything)[: math.ceil(_TRAINING_SHARE * n)]
        both = np.hstack([inputs, other])
        logits = _sending(both, d, defended.chain, sent)
        block = _fitted(subject, both, labels, drawn, rng=rng, logits=logits)
        weight, bias = block.weight, block.parameters()["bias"]
    mine = subject.weight if kind == "given" and subject.weight is not None else weight[:, :d]
    return World(
        subject,
        inputs,
        mine,
        bias,
        **defended.releases(inputs, mine, bias, other @ weight[:, d:].T),
        other=other,
        own_weight=weight[:, d:],
        labels=labels,
        secret=secret,
        trained=np.sort(drawn),
        sent=tuple(sent),
    )


class _Defended:
    """The passive party's ``chain`` of defences of a simulated model, and what it leaves of releases."""

    def __init__(self, subject: AuditSubject, defenses: Iterable[NamedDefense], secret: bytes) -> None:
        self._disclosed: dict[str, Array] = {}  # what a defence may be fitted to, once it is there
        self._family = subject.family
        self._rows = np.arange(len(subject.x), dtype=np.int32)
        owner = Owner("passive", ScaledColumns(subject.x), None, subject.classes, parameters=self._disclosed)
        self.chain = DefenseChain(lambda: owner, list(defenses), secret)

    def fold(self, hook: str, value: Any, phase: Phase) -> Any:
        """``value`` of all rows after the defences."""
        return self.chain.fold(hook, value, _exchange(phase), self._rows)

    def releases(self, inputs: Array, weight: Array, bias: Array, others: Array) -> Document:
        """``released`` and ``parameters`` of a :class:`World` with the active party's logits ``others``."""
        self._disclosed.update(weight=weight.copy(), bias=bias)
        partial = self.fold("on_embedding", inputs @ weight.T + bias, Phase.PREDICT)
        scores = self.fold("on_scores", self._family.scores(partial + others), Phase.PREDICT)
        return {
            "released": scores,
            "parameters": self.fold("on_parameters", self._disclosed, Phase.DISCLOSE),
        }


def _fitted(
    subject: AuditSubject,
    x: Array,
    labels: Array,
    rows: Array,
    *,
    rng: np.random.Generator,
    logits: Callable[[LinearBlock, Array], Array] | None = None,
) -> LinearBlock:
    """The planned model of the columns ``x`` (n, d), trained on ``rows``.

    ``logits`` gives those of a batch of rows (m, k) under the block so far; None: its own.
    """
    training = _TRAINING[subject.family.label_kind]
    size = {"features": x.shape[1], "classes": subject.classes, "holds_bias": True}
    site = Site("audit", (), training=training, keys=Keys.under(bytes(32)), wrap=plain, **size)
    block = subject.family.active_part(site)
    assert isinstance(block, LinearBlock)
    for _ in range(training.epochs):
        for batch in batches(rows, training.batch_size, rng):
            z = logits(block, batch) if logits else block.forward(x[batch])
            block.learn(x[batch], block.loss_of(z, as_targets(labels[batch], subject.classes))[1])
    return block


def _sending(
    x: Array, d: int, chain: DefenseChain, sent: list[Released]
) -> Callable[[LinearBlock, Array], Array]:
    """What gives the logits of a batch of rows of both parties' columns ``x``: those of the first ``d`` as
    the defences leave them, which it puts into ``sent``, and those of the others.
    """

    def logits(block: LinearBlock, rows: Array) -> Array:
        exchange = Exchange("audit", Phase.TRAIN, 1, len(sent))
        assert block.bias is not None
        partial = x[rows, :d] @ block.weight[:, :d].T + block.bias
        seen = chain.fold("on_embedding", partial, exchange, rows)
        sent.append(Released("coordinator", exchange, Point.EMBEDDING, rows, tensors={"embedding": seen}))
        found: Array = seen + x[rows, d:] @ block.weight[:, d:].T
        return found

    return logits


def _teacher(features: Array, classes: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Weights (k, D) whose logits have a standard deviation of about 2, none for constant columns, and a bias
    (k,)
    that makes the classes equally likely."""
    std = features.std(axis=0)
    weight = rng.normal(size=(classes, features.shape[1])) * _LOGIT_STD / np.sqrt(features.shape[1])
    weight = np.where(std > 0, weight / np.where(std > 0, std, 1.0), 0.0)
    return weight, -(features @ weight.T).mean(axis=0)


def _labels(subject: AuditSubject, kind: str, logits: Array, rng: np.random.Generator) -> Array:
    """The known labels for a trained model; else drawn from softmax(logits), by Gumbel's trick, of a number
    from a normal law around the logit.
    """
    if kind == "trained" and subject.labels is not None:
        return subject.labels
    if subject.label is not None:
        around = _NUMBER_STD / _LOGIT_STD * logits[:, 0] + _NOISE_STD * rng.standard_normal(len(logits))
        return np.clip(0.5 + around, 0.0, 1.0)
    labels: Array = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return labels


def _exchange(phase: Phase) -> Exchange:
    return Exchange("audit", phase, 1, 0)
