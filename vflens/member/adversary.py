"""What the adversaries of both settings share: they run plug-ins on views and submit what these estimate.

Attacks read what their party received and owns; the target computes their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from vflens.config import PartyConfig
from vflens.errors import ConfigError, KnowledgeError, PluginError, ProtocolError, StateError, StorageError
from vflens.plugins.attack import Attack
from vflens.plugins.views.horizontal import ServerView
from vflens.plugins.views.remembered import recalled
from vflens.plugins.views.vertical import AdversaryView
from vflens.protocol.acts import Guess, Receipt, Submission
from vflens.protocol.link import Links
from vflens.randomness import stream
from vflens.score.service import scorable
from vflens.storage.files import save_arrays
from vflens.storage.journal import Reader
from vflens.storage.metrics import Metrics, Name
from vflens.types import Estimate, Phase, numbered
from vflens.words import counted

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

T = TypeVar("T")


class Attacker(Protocol):
    """A member as its adversary takes it."""

    name: str
    links: Links
    secret: bytes
    folder: Path
    metrics: Metrics
    log: FilteringBoundLogger

    @property
    def config(self) -> PartyConfig:
        """Its configuration."""

    def patiently(self, work: Callable[[], T]) -> T:
        """The result of ``work``, repeated while its party is away."""


class Adversary:
    """The configured ``attacks`` of one party, by name."""

    def __init__(self, party: Attacker, attacks: Mapping[str, Attack]) -> None:
        self.attacks = dict(attacks)
        self.received = Reader(party.folder / "transcript")  # readers cannot write to it
        self._attacker = party
        self._noted: set[tuple[Name, str, str]] = set()

    def estimated(
        self,
        name: str,
        target: str,
        see: Callable[[Attack], AdversaryView | ServerView],
        *,
        final: bool = True,
    ) -> Estimate | None:
        """What the attack called ``name`` makes of the view that ``see`` gives; None where it lacks knowledge
        or fails, which is recorded. What it lacks may come before the ``final`` view.
        """
        attack = self.attacks[name]
        try:
            view = see(attack)
            found = reconstructed(attack, view, stream(self._attacker.secret, "attack", name, target))
            if view.granted:
                self._note_granted(name, target, view)
            return found
        except KnowledgeError as error:
            if final:
                self._note(Name.SKIPPED, name, target, str(error))
        except (PluginError, ConfigError) as error:  # an attack must not end the run
            self._note(Name.FAILED, name, target, str(error))
        return None

    def _note_granted(self, attack: str, target: str, view: AdversaryView | ServerView) -> None:
        """Record what ``attack`` read that no round sends: its figure is not one of the protocol."""
        add = partial(self._attacker.metrics.add, Name.GRANTED, 1.0, adversary=self._attacker.name)
        add(attack=attack, target=target, detail=", ".join(sorted(view.granted)))

    def _note(self, outcome: Name, attack: str, target: str, reason: str) -> None:
        """Record once that ``attack`` on ``target`` was skipped or failed."""
        if (outcome, attack, target) in self._noted:
            return
        self._noted.add((outcome, attack, target))
        party = self._attacker
        party.metrics.add(outcome, 1.0, attack=attack, adversary=party.name, target=target, detail=reason)
        party.log.warning(f"attack {outcome}", attack=attack, target=target, reason=reason)

    def submit(
        self,
        target: str,
        scored: str,
        found: Mapping[str, Estimate],
        *,
        estimates: str = "",
        step: int | None = None,
    ) -> None:
        """Send what attacks ``found`` of the same rows; ``scored``, ``estimates`` and ``step`` as in a
        submission.

        Raises:
            ProtocolError: the receipt is of another submission.
        """
        party, rows = self._attacker, next(iter(found.values())).rows
        guesses = tuple(Guess(name, e.values, numbered(e.status)) for name, e in found.items())
        facts = party.config.run, party.name, str(scored), rows, guesses
        submission = Submission(*facts, estimates, step)
        try:
            receipt = party.patiently(lambda: party.links[target].call(submission))
        except (ProtocolError, StateError) as refusal:
            party.log.warning("not scored", target=target, reason=str(refusal))
            return
        shown: dict[Name, dict[str, float]] = {}
        add = partial(
            party.metrics.add, adversary=party.name, target=target, scored_set=submission.metrics_of
        )
        for attack, error in self._errors(receipt, submission, target).items():
            metric, value = self._metric(attack, error)
            add(metric, value, attack=attack, rows=len(rows))
            shown.setdefault(metric, {})[attack] = value
        party.log.info("receipt", target=target, rows=receipt.rows, attacks=receipt.attacks, **shown)
        party.metrics.save()

    def _errors(self, receipt: Receipt, submission: Submission, target: str) -> Mapping[str, float]:
        """What ``target`` says of each attack, in lab mode alone: elsewhere it could say anything."""
        due = {guess.attack for guess in submission.guesses}
        if (receipt.rows, receipt.attacks) != (len(submission.rows), len(due)):
            raise ProtocolError(
                f"the receipt of {target!r} is of {counted(receipt.rows, 'row')} and "
                f"{counted(receipt.attacks, 'attack')}: {len(submission.rows)} and {len(due)} were submitted"
            )
        if not self._attacker.config.lab:
            return {}
        odd = sorted(due ^ set(receipt.errors)) or [
            n for n, e in receipt.errors.items() if not self._may_be(n, e)
        ]
        if odd:
            raise ProtocolError(
                f"the receipt of {target!r} has {receipt.errors.get(odd[0])} as error of attack {odd[0]!r}: "
                "a finite error of each submitted attack is due"
            )
        return receipt.errors

    def _may_be(self, attack: str, error: float) -> bool:
        """Whether ``error`` can be a mean square; of other attacks than on columns a share, or of a number in
        [0, 1] a mean square.
        """
        most = 4e140 if self.attacks[attack].estimates == "features" else 1.0  # guesses are below 1e70
        return bool(0 <= error <= most)

    def _metric(self, attack: str, error: float) -> tuple[Name, float]:
        """The metric's name and value of a receipt: wrong classes are recorded as the share of right ones, a
        number as the column that it is.
        """
        kind = self.attacks[attack]
        if kind.estimates == "membership":
            return Name.MEMBERSHIP_AUC, 1 - error
        if kind.estimates == "source":
            return Name.SOURCE_RIGHT, 1 - error
        if kind.estimates == "labels" and kind.label_kind == "classes":
            return Name.MATCHED_LABEL_ACCURACY if kind.unordered else Name.LABEL_ACCURACY, 1 - error
        return Name.MATCHED_MSE if kind.unordered else Name.MSE, error

    def save(
        self,
        target: str,
        scored: str,
        found: Mapping[str, Estimate],
        *,
        estimates: str = "",
        step: int | None = None,
    ) -> None:
        """Keep what attacks ``found`` on disk; the other arguments as in :meth:`submit`.

        Raises:
            StorageError: they cannot be written.
        """
        party, end = self._attacker, "npz" if scored == Phase.PREDICT else f"{scored}.npz"
        names = {"run": party.config.run, "adversary": party.name, "estimates": estimates}
        for name, estimate in found.items():
            file = party.folder / "estimates" / f"{target}.{name}.{end}"
            save_estimate(file, estimate, **names, attack=name, scored=scored, step=step)


def reconstructed(attack: Attack, view: AdversaryView | ServerView, rng: np.random.Generator) -> Estimate:
    """The estimate of ``attack`` from ``view``.

    Raises:
        KnowledgeError: it lacks knowledge.
        ConfigError: a parameter does not fit what it finds.
        StorageError: the transcript is damaged.
        PluginError: it fails in another way, or returns an invalid estimate.
    """
    attack.check_label(view.label_kind)
    try:
        estimate = recalled(attack, view, rng, lambda: attack.reconstruct(view, rng=rng))
    except (KnowledgeError, ConfigError, StorageError):
        raise
    except (Exception, SystemExit) as error:  # a plug-in must not end the process
        raise PluginError(f"{type(error).__name__}: {error}") from error
    _check_estimate(estimate, view, attack)
    return estimate


def _check_estimate(estimate: Estimate, view: AdversaryView | ServerView, attack: Attack) -> None:
    """Refuse what the target would refuse: one attack's mistake must not stop the scoring of others."""
    rows, target = view.rows, view.target
    widths = {"labels": view.n_classes, "membership": 1, "source": len(view.members)}
    width = widths.get(attack.estimates) or view.widths()[target]
    if not isinstance(estimate, Estimate) or estimate.target != target:
        raise PluginError(f"it must return an Estimate of {target!r}")
    if not np.array_equal(estimate.rows, rows) or estimate.status.shape != rows.shape:
        raise PluginError(f"rows and status must be those of the {counted(len(rows), 'row')} of its view")
    if estimate.values.shape != (len(rows), width):
        raise PluginError(f"values have the shape {estimate.values.shape}, not ({len(rows)}, {width})")
    if not scorable(estimate.values):
        raise PluginError("its values are not all finite and moderate: set its rate, or weights, lower")


def save_estimate(
    file: Path,
    estimate: Estimate,
    *,
    run: str,
    adversary: str,
    attack: str,
    scored: str,
    estimates: str = "",
    step: int | None = None,
) -> None:
    """Write ``estimate`` to ``file`` (npz), with the names by which its target can score it; ``estimates``
    and ``step`` are those of its submission.

    Raises:
        StorageError: it cannot be written.
    """
    names = {"run": run, "adversary": adversary, "attack": attack, "scored_set": str(scored)}
    names |= {"estimates": estimates} if estimates else {}
    texts = {name: np.array(text) for name, text in {**names, "target": estimate.target}.items()}
    number = {} if step is None else {"step": np.array(step)}
    save_arrays(file, {**texts, **number, **estimate.arrays()})
