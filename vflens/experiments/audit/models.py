"""Simulated models of the planned federation, and the adversary's data.

Nothing is trained together: a simulated active party brings columns and labels (the real ones, where the
audit knows them), a softmax regression, of a numeric label a linear one, on both parties' columns is drawn or
trained, and its scores, parameters and messages of training stand in a transcript as they would arrive,
defended or not. The attacks read it through the usual view.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any

import numpy as np

from vflens.array import ScaledColumns
from vflens.defenses._row_noise import RowNoise
from vflens.experiments.audit.subject import AuditSubject
from vflens.member.adversary import reconstructed
from vflens.models.part import Keys, Site, plain
from vflens.models.settings import Training
from vflens.models.softmax_regression import LinearBlock, as_targets
from vflens.models.stacked import Course, fit, side_by_side
from vflens.numerics.measures.fit import r2, rmse
from vflens.numerics.measures.ranking import accuracy, auc
from vflens.plugins.attack import Attack
from vflens.plugins.chain import DefenseChain
from vflens.plugins.defense import NamedDefense
from vflens.plugins.findings import Joint
from vflens.plugins.steps import silent
from vflens.plugins.together import Together
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

EPOCHS = 30
_EPOCHS: Document = {"epochs": EPOCHS, "batch_size": 64}
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
            *(self.sent if Phase.TRAIN in attack.phases else ()),
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

    @cached_property
    def tested(self) -> Array:
        """The rows that did not train it, int32: what it is worth is measured on them."""
        return np.setdiff1d(np.arange(len(self.labels), dtype=np.int32), self.trained)

    @cached_property
    def worth(self) -> dict[str, float]:
        """:meth:`figures` of its own scores."""
        return self.figures(self.released)

    def figures(self, scores: Array) -> dict[str, float]:
        """Accuracy and AUC of ``scores`` (n, k) on the tested rows; of a number R², and RMSE in its unit."""
        found, truth = scores[self.tested], self.labels[self.tested]
        if self.subject.label is None:
            return {Name.ACCURACY: accuracy(found, truth), Name.AUC: auc(found, truth)}
        unit = Scaler.of_bounds(self.subject.label).inverse
        return {Name.R2: r2(found[:, 0], truth), Name.RMSE: rmse(unit(found[:, 0]), unit(truth))}

    def under(self, defense: NamedDefense) -> World:
        """The same model under one defence, which must not act in training."""
        defended = _Defended(self.subject, [defense], self.secret)
        others = self.other @ self.own_weight.T
        return replace(self, joint=[], **defended.releases(self.inputs, self.weight, self.bias, others))


def simulate(
    subject: AuditSubject, kind: str, rng: np.random.Generator, defenses: Sequence[NamedDefense] = ()
) -> World:
    """A world of ``subject``.

    Args:
        subject: whose columns are the passive ones.
        kind: "random": Gaussian weights; "trained": a model of labels; "given": ``subject.weight``.
        rng: draws everything that is not given.
        defenses: by name, fold over inputs, partial logits (those of training too), parameters and scores,
            all with the passive party as owner.
    """
    return simulate_several(subject, kind, [rng], defenses)[0]


def simulate_several(
    subject: AuditSubject,
    kind: str,
    rngs: Sequence[np.random.Generator],
    defenses: Sequence[NamedDefense] = (),
) -> list[World]:
    """What :func:`simulate` makes with each of ``rngs``; models are trained side by side."""
    drafts = [_Draft(subject, kind, rng, defenses) for rng in rngs]
    parameters = [(draft.weight, draft.bias) for draft in drafts]
    if kind == "trained":
        parameters = _fitted(subject, [draft.course for draft in drafts], drafts)
    return [draft.world(*trained) for draft, trained in zip(drafts, parameters, strict=True)]


def alone(worlds: Sequence[World], rngs: Sequence[np.random.Generator]) -> list[Array]:
    """Scores (n, k) of a model of the active party's columns alone, trained on the same rows, for each of
    ``worlds`` of one subject.
    """
    subject = worlds[0].subject
    courses = [
        Course(w.other, as_targets(w.labels, subject.classes), w.trained, rng)
        for w, rng in zip(worlds, rngs, strict=True)
    ]
    fitted = _fitted(subject, courses)
    return [w.other @ weight.T + bias for w, (weight, bias) in zip(worlds, fitted, strict=True)]


class _Draft:
    """A world in the making: all but its trained model."""

    def __init__(
        self, subject: AuditSubject, kind: str, rng: np.random.Generator, defenses: Sequence[NamedDefense]
    ) -> None:
        n, d = subject.x.shape
        self._subject, self._kind = subject, kind
        self._other = rng.random((n, d)) if subject.other is None else subject.other
        both = np.hstack([subject.x, self._other])
        self.weight, self.bias = _teacher(both, subject.classes, rng)
        self._labels = _labels(subject, kind, both @ self.weight.T + self.bias, rng)
        self._secret: bytes = rng.bytes(32)
        self.defended, self.sent = _Defended(subject, defenses, self._secret), list[Released]()
        self._inputs = self.defended.fold("on_inputs", subject.x, Phase.TRAIN)
        self._drawn, self._rng = _NO_ROWS, rng
        if kind == "trained":
            self._drawn = rng.permutation(np.arange(n, dtype=np.int32))[: math.ceil(_TRAINING_SHARE * n)]

    @property
    def course(self) -> Course:
        """The training of its model: the party's partial logits leave as the defences leave them."""
        both, d = np.hstack([self._inputs, self._other]), self._inputs.shape[1]
        targets = as_targets(self._labels, self._subject.classes)
        return Course(both, targets, self._drawn, self._rng, own=d)

    def world(self, weight: Array, bias: Array) -> World:
        """It, with the model of ``weight`` (k, d + m) and ``bias`` (k,)."""
        subject, d = self._subject, self._inputs.shape[1]
        given = subject.weight if self._kind == "given" else None
        mine = weight[:, :d] if given is None else given
        others = self._other @ weight[:, d:].T
        return World(
            subject,
            self._inputs,
            mine,
            bias,
            **self.defended.releases(self._inputs, mine, bias, others),
            other=self._other,
            own_weight=weight[:, d:],
            labels=self._labels,
            secret=self._secret,
            trained=np.sort(self._drawn),
            sent=tuple(self.sent),
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
    subject: AuditSubject, courses: Sequence[Course], drafts: Sequence[_Draft] = ()
) -> list[tuple[Array, Array]]:
    """The weight and the bias of the planned model after each of ``courses``, those of ``drafts``."""
    training = _TRAINING[subject.family.label_kind]
    size: Document = {"features": 0, "classes": subject.classes}  # of a block that has the loss alone
    site = Site("audit", (), training=training, keys=Keys.under(bytes(32)), wrap=plain, **size)
    block = subject.family.active_part(site)
    assert isinstance(block, LinearBlock)
    several = side_by_side(len(courses))
    parts = [
        fit(courses[of.start : of.stop], training, block.loss_of, partial(_seen, drafts[of.start : of.stop]))
        for of in several
    ]
    return [parameters for part in parts for parameters in zip(*part, strict=True)]


def _seen(drafts: Sequence[_Draft], z: Array, rows: Sequence[Array]) -> Array:
    """What others see of partial logits (M, m, k) of ``rows`` int32 (m,) each, as each draft defends it."""
    if not drafts:
        return z
    hook, exchange = "on_embedding", Exchange("audit", Phase.TRAIN, 1, len(drafts[0].sent))
    chains = [(draft.defended.chain, of) for draft, of in zip(drafts, rows, strict=True)]
    noise, *others = chains[0][0].defenses or (None,)
    if isinstance(noise, RowNoise) and not others:
        contexts = [chain.context(0, hook, exchange, of) for chain, of in chains]
        several: Any = Together(contexts)
        z = noise.on_embedding(z.reshape(-1, z.shape[2]), several).reshape(z.shape)
    elif chains[0][0].overrides(hook):
        z = np.stack([c.fold(hook, own, exchange, of) for own, (c, of) in zip(z, chains, strict=True)])
    for draft, of, own in zip(drafts, rows, z, strict=True):
        sent = Released("coordinator", exchange, Point.EMBEDDING, of, tensors={"embedding": own})
        draft.sent.append(sent)
    return z


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
