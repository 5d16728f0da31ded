"""A client but for its training: rows of its own, what it says of them, grants of them, and how it scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vflens.clients.data_party import DataParty
from vflens.clients.horizontal.grants import Grants
from vflens.clients.horizontal.local_run import LocalRun
from vflens.clients.horizontal.own_file import client_info, split_rows
from vflens.clients.horizontal.scoring import ClientScoring
from vflens.clients.horizontal.spending import UpdateSpending, released_rounds
from vflens.clients.horizontal.utility import record_utility
from vflens.clients.membership import check_limits, check_settings, described, unknown
from vflens.config import ClientConfig
from vflens.config.compatibility import check_family, check_wrapped
from vflens.errors import ConfigError, ProtocolError, StateError
from vflens.member.stage import Stage
from vflens.member.start_nonce import start_nonce
from vflens.models.part import Keys, Site
from vflens.models.whole import WholeModel
from vflens.protocol.acts import Describe, Disclose, Done, Prepare, Receipt, Submission
from vflens.protocol.checks import check_version
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.link import Handlers, Link
from vflens.randomness import derive, secret_from_seed
from vflens.score.service import disabled
from vflens.storage.metrics import Name
from vflens.tables.order import load_order
from vflens.types import Array, Exchange, PartyInfo, Phase, Point, Released
from vflens.words import counted


def check_client(federation: HorizontalAgreement, config: ClientConfig, info: PartyInfo) -> None:
    """Refuse a federation with another description of the client than its own ``info``.

    Raises:
        ProtocolError, ConfigError: names the difference.
    """
    if described(federation, config) != info:
        raise unknown(federation, config)
    check_limits(federation, info, config.limits)
    check_settings(federation, config)
    federation.check_keys()  # its own tells whether it agreed to masks


if TYPE_CHECKING:
    from vflens.protocol.horizontal.secure_sum import Masking


class _Prepared(NamedTuple):
    """All that exists only once the run is prepared."""

    run: LocalRun
    grants: Grants


class PreparedClient(DataParty):
    """A client before and after the rounds."""

    config: ClientConfig

    def __init__(self, config: ClientConfig, links: Mapping[str, Link], *, in_process: bool = False) -> None:
        super().__init__(
            config,
            links,
            learns_from=Point.PARAMETERS,
            asked_for_rows=False,
            common=derive(secret_from_seed(config.seed), "own rows"),  # it holds features and labels
            in_process=in_process,
        )
        if self.table.labels is None:
            raise ConfigError(
                f"data.label_column is missing at client {self.name!r}: name the column of labels"
            )
        self._labels = self.table.labels
        self._order = split_rows(config, self.table)
        self._prepared: _Prepared | None = None

    def handlers(self) -> Handlers:
        return {
            **super().handlers(),
            Prepare: self.prepare,
            Disclose: self.disclose,
            Submission: self.score,
        }

    @property
    def federation(self) -> HorizontalAgreement | None:
        return None if self._prepared is None else self._prepared.run.federation

    @property
    def clipped(self) -> int:
        return 0 if self._prepared is None else self._prepared.run.clipped

    @property
    def run(self) -> LocalRun:
        """Rows and model of the run.

        Raises:
            StateError: the run was not prepared yet.
        """
        return self._made.run

    @property
    def _made(self) -> _Prepared:
        if self._prepared is None:
            raise StateError(f"client {self.name!r} has no run yet: its server prepares it first")
        return self._prepared

    def describe(self, act: Describe) -> PartyInfo:
        """Columns, classes, and the numbers of rows."""
        super().describe(act)
        masking = self.masking
        info = client_info(self.config, self.table)
        if masking is None:
            return info
        return self.with_signed_key(replace(info, mask_key=masking.public.hex()), act)

    @cached_property
    def masking(self) -> Masking | None:
        """Its masks, where updates are summed securely; their key holds the nonce of its start."""
        if not self.config.secure_aggregation:
            return None
        from vflens.protocol.horizontal.secure_sum import masking_of  # takes .1 s

        nonce = start_nonce(self.folder, lab=self.config.lab)
        return masking_of(self.secret, nonce, self.config.run, self.name)

    def prepare(self, act: Prepare) -> Done:
        """Scale the rows, defend them, build the model. A second call changes nothing."""
        federation = act.federation
        self.check_run(federation.run)
        if not isinstance(federation, HorizontalAgreement):
            raise ProtocolError(f"run {federation.run!r} is vertical: {self.name!r} is a client")

        def order() -> Array:
            check_client(federation, self.config, self.describe(Describe(federation.run, federation.nonce)))
            self.check_signed_keys(federation)
            return np.concatenate(self._order)

        return self.prepare_once(federation, order, partial(self.begin_run, federation))

    def take_up(self) -> None:
        self.begin_run(HorizontalAgreement.load(self.folder), load_order(self.folder, self.table))

    def begin_run(self, federation: HorizontalAgreement, order: Array) -> None:
        """Scale and defend the rows of the file in ``order``, build the model and the grants.

        Raises:
            ConfigError: the run does not fit this client's table, limits or defences.
        """
        labels: Array = self._labels[order]
        rows = self.take_rows(federation, order, labels)
        soft = self.soft_labels(labels, federation)
        private = federation.horizontal.private_bottom
        model = WholeModel(federation.model, self.site(federation), private_bottom=private)
        spending = UpdateSpending(self.config, self.chain.claims_at, federation, released_rounds(self.folder))
        spending.check_run()
        self.gate.limit(spending.take)
        run = LocalRun(federation, *rows, model=model, labels=labels, soft_labels=soft, spending=spending)
        grants = Grants(self.config, run, self.secret, self.chain)
        self._prepared = _Prepared(run, grants)
        _ = self.training
        self.log.info("prepared", rows=len(order), columns=len(self.table.columns), clipped=rows.clipped)

    def site(self, federation: HorizontalAgreement) -> Site:
        """What its model is built from."""
        check_family(self.chain.named, self.name, federation.model)
        check_wrapped(self.chain.named, self.name, federation.horizontal)
        federation.model.check_device(self.config.device, f" at {self.name!r}")
        start = Exchange(federation.run, Phase.TRAIN, 0, 0)
        return Site(
            party=self.name,
            columns=self.table.columns,
            features=len(self.table.columns),
            classes=federation.n_classes,
            training=federation.training,
            keys=Keys.under(self.secret),
            wrap=self.chain.wrap(start),
            device=self.config.device,
            received=federation.received_width,
            holds_bias=True,
            wraps_bottom=True,
        )

    def disclose(self, act: Disclose) -> tuple[Released, ...]:
        """What the configuration grants to the server, through the gate; training is over then."""
        self.check_run(act.run)
        check_version(act.version)
        if act.to != self.leader:
            raise ProtocolError(f"disclosures to {act.to!r}: client {self.name!r} grants to its server alone")
        with self.lock:
            self.settle()
            if (learned := self.recovery.learned) < (last := self.run.federation.steps):
                raise StateError(
                    f"disclosures after round {learned} of {last}: {self.name!r} grants after the last round"
                )
            if self.reached.stage is Stage.TRAINING:  # a repetition is not logged: it would fill the disk
                self.log.info("disclosed", what=[granted.what for granted in self.config.disclose])
            self.advance(Stage.DISCLOSED)
            released = tuple(
                self._made.grants.released(granted, self.gate) for granted in self.config.disclose
            )
            self.keep_metrics()
            return released

    def score(self, act: Submission, *, ended: bool = False) -> Receipt:
        """Score the server's estimates; see :class:`vflens.clients.horizontal.scoring.ClientScoring`."""
        self.check_run(act.run)
        if not self.config.scoring.enabled:
            raise disabled()
        if not ended:  # else its run is over
            self.check_open()
        return self.scoring.score(act, ended=ended)

    @cached_property
    def scoring(self) -> ClientScoring:
        """Its services, made for the first estimate: few clients of many are attacked."""
        return ClientScoring(self, self.run, *self._made.grants.scored)

    def record_totals(self) -> None:
        """See :meth:`vflens.member.member.Member.record_totals`: what the updates cost."""
        if self._prepared is not None:
            self._prepared.run.spending.record(self.metrics)

    def complete(self) -> str:
        """See :meth:`DataParty.complete`: accuracy of the last parameters, and of a model of its own rows."""
        record_utility(self, self.run, self.site(self.run.federation))
        if not self.gate.heads["digests"].records:  # drawn for no round: it sent nothing to defend
            self.chain.excuse()
        self.report_finished()
        figure = self.metrics.last
        return (
            f"accuracy {figure(Name.ACCURACY) or 0:.3f} on {counted(len(self._order[1]), 'row')} of its own "
            f"({figure(Name.ACCURACY_ALONE) or 0:.3f} alone)"
        )
