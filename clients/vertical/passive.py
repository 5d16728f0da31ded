"""The passive party: features, a block of the model, grants, and the scoring service of a target."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from vflens.array import ScaledColumns
from vflens.clients.pace import Pace
from vflens.clients.vertical.aligned_run import AlignedRun
from vflens.clients.vertical.clear.passive import ClearPassive
from vflens.clients.vertical.malicious import optimizing
from vflens.clients.vertical.party import VerticalParty
from vflens.clients.vertical.protected.passive import PassiveOnShares
from vflens.clients.vertical.released_model import known_errors, released_model
from vflens.config import PassiveConfig
from vflens.config.compatibility import check_grants, check_worst_error
from vflens.errors import ConfigError, StateError
from vflens.member.stage import Stage
from vflens.models.part import PassivePart
from vflens.protocol.acts import Deliver, Describe, Disclose, Done, Forward, together
from vflens.protocol.checks import MODEL_VERSION, check_exchange, check_version
from vflens.protocol.link import Handlers, Link
from vflens.protocol.vertical.access import DIRECT, ON_SHARES, SUMMED, Way
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.disclosed import check_disclosed, disclosure_number
from vflens.randomness import stream
from vflens.score.columns import ColumnScoring
from vflens.storage.files import save_arrays
from vflens.storage.metrics import Name
from vflens.types import Array, Exchange, PartyInfo, Phase, Point, Released
from vflens.words import counted

_TRAININGS: Mapping[Way, type[ClearPassive | PassiveOnShares]] = {
    SUMMED: ClearPassive,
    DIRECT: ClearPassive,
    ON_SHARES: PassiveOnShares,
}
_NO_ROWS = np.zeros(0, np.int32)
_POINTS = {
    "parameters": Point.PARAMETERS,
    "auxiliary": Point.AUXILIARY,
    "moments": Point.MOMENTS,
    "dataset": Point.DATASET,
}


class PassiveParty(VerticalParty[AlignedRun[PassivePart]]):
    """Answers the aggregator's steps with embeddings, and submissions with receipts; attacks the labels.

    Args:
        config: its configuration.
        links: to the coordinator and the active party by name; none for a party that only scores.
    """

    config: PassiveConfig

    def __init__(self, config: PassiveConfig, links: Mapping[str, Link], *, in_process: bool = False) -> None:
        super().__init__(config, links, _TRAININGS[config.way], in_process=in_process)
        limits = config.limits
        self._pace = Pace(
            self.name, limits.rows_per_second, min(limits.step_seconds, limits.call_seconds) / 2
        )

    @cached_property
    def training(self) -> ClearPassive | PassiveOnShares:
        return _TRAININGS[self.run.federation.way](self, self._pace)

    def handlers(self) -> Handlers:
        return {**super().handlers(), Forward: self.forward}

    def describe(self, act: Describe) -> PartyInfo:
        """Its columns, and where it trains with masks their key, signed."""
        info, key = super().describe(act), _TRAININGS[self.config.way].key_of_masks(self)
        return self.with_signed_key(replace(info, mask_key=key), act) if key else info

    def aligned_run(self, federation: VerticalAgreement, order: Array) -> AlignedRun[PassivePart]:
        check_grants(self.config, len(federation.train))
        try:
            check_worst_error(federation.model, self.config.limits, len(federation.passive))
        except ValueError as error:
            raise ConfigError(str(error)) from None
        # Labels of its own take no part in the protocol: a defence may read them.
        labels = self.table.targets
        rows = self.take_rows(federation, order, None if labels is None else labels[order])
        return AlignedRun(
            federation,
            *rows,
            model=self._new_part(federation, rows.inputs.shape[1]),
            spending=self.new_spending(federation),
            scoring=self._scoring_of(rows.truth, federation),
            labels=None,
        )

    def _new_part(self, federation: VerticalAgreement, features: int) -> PassivePart:
        return federation.model.passive_part(optimizing(self, self.site(federation, features), federation))

    def _scoring_of(self, truth: ScaledColumns, federation: VerticalAgreement) -> ColumnScoring:
        return ColumnScoring(
            truth=truth,
            columns=self.table.columns,
            training=federation.train,
            pictures=self.config.scoring.pictures,
            tolerance=self.config.scoring.tolerance,
            told_means=lambda to: self._told_means(truth, federation, to),
            model=lambda: released_model(
                self.run,
                self._told_parameters,
                granted=any(d.what == "auxiliary" for d in self.config.disclose),
            ),
            **self.scores_for(len(federation.predict)),
        )

    def _told_means(self, truth: ScaledColumns, federation: VerticalAgreement, to: str) -> Array:
        """The column means (d,) that a guess of ``to`` starts from: granted ones, of granted rows, or ½."""
        rows = self.granted_rows(to)
        if any(d.what == "moments" and d.to in together(to) for d in self.config.disclose):
            rows = federation.train
        return truth.mean(rows) if len(rows) else np.full(truth.shape[1], 0.5)

    def check_disclosed(self, released: Released) -> None:
        """Labels of training rows, from the active party; see :meth:`VerticalParty.check_disclosed`."""
        check_disclosed(released, self.run.federation.active.name, self.run.federation)

    def deliver(self, act: Deliver) -> Done:
        """Record labels, and keep the data that an attack on labels may also use, see
        :mod:`vflens.experiments.offline.attack`.
        """
        done = super().deliver(act)
        with self.lock:  # two deliveries would share the temporary file
            save_arrays(self.folder / "own.npz", self.adversary.own())
        return done

    def forward(self, act: Forward) -> Released:
        """Release the embedding of prediction rows, each row once."""
        check_exchange(act.exchange, self.config.run, Phase.PREDICT)
        run = self.run
        self.check_open()
        self._pace.wait(len(act.rows))
        with self.lock:
            self.settle()
            rows = run.federation.checked_rows(act.rows, Phase.PREDICT)
            self._check_worst_error(rows)
            return self.gate.release_rows(
                Point.EMBEDDING,
                act.exchange,
                rows,
                lambda fresh: run.model.forward(self.inputs_of(fresh, act.exchange), act.exchange),
            )

    def _check_worst_error(self, rows: Array) -> None:
        """Refuse every prediction, so ``rows`` too, if known attacks on all of them err too little.

        It is decided once, of all prediction rows: an answer for each row that is asked for would be an
        oracle for its values. The error stays with this party, in its log and in what its operator reads.
        """
        least = self.config.limits.worst_error
        if least is None:
            return
        attack, error = self._least_error
        if error < least:
            self.own_refusal = self._refused(rows, least, attack, error)
            raise StateError(
                f"with scores of {self.name!r} a known attack would err by less than limits.worst_error, or "
                "its error cannot be counted beside a defence: none leave; train for fewer classes or with "
                "more columns, or lower the limit"
            )

    def _refused(self, rows: Array, least: float, attack: str, error: float) -> str:
        """For the operator of this party: what its limit refused, whose request, and what to do."""
        run = self.run.federation
        asked = np.flatnonzero(np.isin(run.predict, rows))
        places = f"{asked.min()}" if len(asked) == 1 else f"{asked.min()} to {asked.max()}"
        why = (
            f"{attack} would err by {error:.3g} on all its prediction rows"
            if attack
            else ("what attacks would find cannot be counted beside its defence")
        )
        return (
            f"{self.name!r}, this party, released no scores: its own limits.worst_error = {least:g} refused "
            f"{run.active.name!r} its request for {counted(len(asked), 'prediction row')} ({places}), "
            f"{why}. Train for fewer classes or with more columns, or lower the limit"
        )

    @cached_property
    def _least_error(self) -> tuple[str, float]:
        """The known attack that errs least on the prediction rows, and its error; "" and 0 where none can be
        counted.
        """
        run = self.run
        model = released_model(run, lambda: None, granted=False)
        errors = {"": 0.0}
        if model is not None:
            training, predicting = run.federation.train, run.federation.predict
            errors = dict(known_errors(model, run.truth[training], run.truth[predicting]))
        attack = min(errors, key=errors.__getitem__)
        self.log.info("counted", attack=attack or "not counted", worst_error=errors[attack])
        return attack, errors[attack]

    def disclose(self, act: Disclose) -> tuple[Released, ...]:
        """What the configuration grants to ``act.to``, through the gate."""
        self.check_run(act.run)
        check_version(act.version)
        granted = [d for d in self.config.disclose if d.to == act.to]
        wanted: list[tuple[str, int]] = [(d.what, d.rows) for d in granted]
        if act.to == self.run.federation.active.name and self.chain.overrides("on_dataset"):
            wanted.append(("dataset", 0))
        with self.lock:
            self.settle()
            self.advance(Stage.DISCLOSED)
            released = tuple(self.disclosed(what, rows, act.version) for what, rows in wanted)
            self.keep_metrics()
            return released

    def complete(self) -> str:
        self.attack()
        return ""

    def attack(self) -> None:
        """Attack the labels with the messages of training and disclosures, then report to the coordinator."""
        self.adversary.attack_labels()
        self.report_finished()

    def sent_again(self, gradients: Iterable[Released]) -> Iterator[Released]:
        """The embeddings that it sent in training, computed again from ``gradients``, those that it received,
        all of them and in order. Its model begins anew.
        """
        federation = self.run.federation
        self._run = replace(self.run, model=self._new_part(federation, self.run.inputs.shape[1]))
        for received in gradients:
            rows, exchange = received.rows, received.exchange
            h = self.run.model.forward(self.inputs_of(rows, exchange), exchange)
            h = self.chain.fold("on_embedding", h, exchange, rows)
            yield Released(self.name, exchange, Point.EMBEDDING, rows, tensors={"embedding": h})
            self.training.relearn([received])

    def disclosed(self, what: str, count: int, version: int) -> Released:
        """A disclosure, made once: with ``count`` rows under model ``version``."""
        point = _POINTS[what]
        # Two receivers may be granted different numbers of rows: those are two disclosures.
        exchange = Exchange(self.config.run, Phase.DISCLOSE, version, disclosure_number(point, count))
        if (disclosed := self.gate.disclosed(point, exchange)) is not None:
            return disclosed
        self.log.info("disclosed", what=what, rows=count)
        rows = self._auxiliary_rows(count) if what == "auxiliary" else _NO_ROWS
        if what == "dataset":
            rows = np.arange(self.run.federation.rows, dtype=np.int32)
            self._record_bounds()
        return self.gate.release(point, exchange, rows, self._disclosed_tensors(what, rows))

    def _disclosed_tensors(self, what: str, rows: Array) -> Mapping[str, Array]:
        if what == "parameters":
            return self.parameters()
        if what == "auxiliary":
            return {"features": self.run.truth[rows]}
        if what == "dataset":
            return {"dataset": self.run.truth[:]}
        training = self.run.truth[self.run.federation.train]
        return {"mean": training.mean(axis=0), "covariance": np.atleast_2d(np.cov(training, rowvar=False))}

    def _told_parameters(self) -> Mapping[str, Array] | None:
        """The parameters disclosed to the active party, or None."""
        active = self.run.federation.active.name
        if not any(d.what == "parameters" and d.to == active for d in self.config.disclose):
            return None
        with self.lock:
            return self.disclosed("parameters", 0, MODEL_VERSION).tensors

    def _record_bounds(self) -> None:
        """The claimed errors of the released table, for comparison with attacks."""
        for claim in self.chain.claims():
            for name, value in (
                (Name.RELEASED_BOUND, claim.error_bound),
                (Name.RELEASED_LINEAR, claim.linear_error),
            ):
                if value is not None:
                    self.metrics.add(name, value, target=self.name)

    def _auxiliary_rows(self, count: int) -> Array:
        """``count`` training rows, the same in every call: granted to the adversary, never scored."""
        chosen = stream(self.secret, "auxiliary").permutation(self.run.federation.train)[:count]
        return np.sort(chosen)

    def granted_rows(self, to: str) -> Array:
        return self._auxiliary_rows(self.granted_count(to))
