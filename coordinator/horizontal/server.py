"""The server of a horizontal run: sends parameters, averages the clients' updates.

It holds no rows. It sees every client's update of every round, unless the client's defences change it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from vflens.config import ServerConfig
from vflens.config.compatibility import build_attacks
from vflens.coordinator.horizontal.adversary import ServerAdversary
from vflens.coordinator.horizontal.granted import check_claims, check_grants
from vflens.coordinator.horizontal.participation import Absences, drawn_participants
from vflens.coordinator.horizontal.rounds import Rounds
from vflens.coordinator.horizontal.split_rounds import SplitRounds
from vflens.coordinator.leader import Leader
from vflens.errors import ConfigError, StateError, UnavailableError
from vflens.member.event_loop import run_to_end
from vflens.member.recovery import check_state
from vflens.member.stage import CLOCK, Stage
from vflens.member.start_nonce import run_nonce
from vflens.models.part import Keys, Site, plain
from vflens.models.whole import WholeModel
from vflens.protocol.acts import Begin, Disclose, Finished, Prepare
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.horizontal.agreement import HorizontalAgreement, check_alike
from vflens.protocol.link import Handlers, Link
from vflens.recorded.horizontal.parameters import averaged, check_update, owned
from vflens.storage.files import save_arrays
from vflens.storage.metrics import Name
from vflens.types import Array, Point, Progress, Released
from vflens.words import counted

_NO_ROWS = np.zeros(0, np.int32)


class Server(Leader):
    """Leads one run over ``links``, one link to every client by name."""

    config: ServerConfig

    def __init__(
        self, config: ServerConfig, links: Mapping[str, Link], progress: Progress, *, in_process: bool = False
    ) -> None:
        masked = config.horizontal.secure_aggregation
        learns_from = Point.MASKED_UPDATE if masked else Point.UPDATE
        super().__init__(config, links, progress, learns_from=learns_from, in_process=in_process)
        self._federation: HorizontalAgreement | None = None
        self._absences = Absences(self.folder / "absent.json")
        self._parameters: Mapping[str, Array] = {}  # those of the next round
        self._start: Mapping[str, Array] = {}  # those of the first
        self.adversary = ServerAdversary(self, build_attacks(config))
        self._unfinished.add(self.name)  # the run is over when its own attacks are, too

    def handlers(self) -> Handlers:
        return {Finished: self.finish}

    @property
    def federation(self) -> HorizontalAgreement | None:
        return self._federation

    @property
    def prepared(self) -> HorizontalAgreement:
        """The run's clients and settings.

        Raises:
            StateError: before :meth:`prepare`.
        """
        if self._federation is None:
            raise StateError(f"run {self.config.run!r} is not prepared yet: wait until the server has")
        return self._federation

    @property
    def parameters(self) -> Mapping[str, Array]:
        """The parameters of the next round, after the last one those of the run."""
        return self._parameters

    @property
    def outcome(self) -> str:
        seconds = self.metrics.last(Name.TRAIN_SECONDS) or 0
        without = f", at the end without {', '.join(sorted(self.left_out))}" if self.left_out else ""
        return (
            f"the run is complete: {counted(self.prepared.epochs, 'round')} of "
            f"{counted(len(self.prepared.parties), 'client')} in {seconds:.1f} s{without}; the folder of "
            "each client has its accuracy"
        )

    def step_messages(self, step: int) -> int:
        """See :meth:`vflens.member.member.Member.step_messages`: an update of each participant."""
        return len(self.participants(step))

    def participants(self, number: int) -> tuple[str, ...]:
        """The clients that train in round ``number``, in name order; after the last round all that are
        present.
        """
        return drawn_participants(self.prepared, number, self.secret, self._absences.at(number))

    @property
    def left_out(self) -> Collection[str]:
        """See :attr:`Leader.left_out`: the clients that are absent now."""
        return self._absences.at(self.recovery.learned + 1)

    def rejoin(self) -> None:
        """See :meth:`Leader.rejoin`; clients that may be left out are absent from the next round on.

        An absent one is not waited for. After training it has no part any more: it lacks the last parameters.

        Raises:
            UnavailableError: nobody is present, or a client is away whose update of this round is logged.
        """
        own, limits, gone = self.standing(), self.config.limits, set[str]()
        for name in sorted(self.links):
            was_absent = name in self.left_out
            if was_absent and self.reached.stage is not Stage.TRAINING:
                gone.add(name)
                continue
            try:
                self.take_back(name, own, 0 if was_absent else limits.rejoin_seconds)
            except UnavailableError:
                if self.config.horizontal.absent == "wait" or self._is_needed(name):
                    raise
                gone.add(name)
        if len(gone) == len(self.links):
            raise UnavailableError(
                f"no client came back within {limits.rejoin_seconds:g} s: start them again"
            )
        self._leave_out(gone)

    def _is_needed(self, name: str) -> bool:
        """Whether nothing goes on without the client ``name``: it has not its rows yet, or its update of the
        next round may be logged.
        """
        number = self.recovery.learned + 1
        return self._federation is None or (
            number == self.recovery.incomplete and name in self.participants(number)
        )

    def _leave_out(self, gone: Collection[str]) -> None:
        """From the next round on the clients ``gone`` are absent, and no others."""
        number = self.recovery.learned + 1
        if number == self.recovery.incomplete:  # updates of its clients are logged: it keeps them
            number += 1
        for name in sorted(set(gone) - set(self.left_out)):
            self.log.warning("left out", client=name, round=number)
        self._absences.change(number, gone)

    def lead(self, check_alive: Callable[[], None] = lambda: None) -> None:
        if not self._agreed:
            self.prepare()
        if self.reached.stage is Stage.TRAINING:
            self.train()
        if not self.reached.is_open:
            self.disclose()
        if not self.finished.is_set():
            self.open_predictions()
            self.attack()

    def learned_by(self, party: str, own: int) -> int:
        """See :meth:`Leader.learned_by`: a client that sent the update of a round had its parameters."""
        return next((number for number in range(own, -1, -1) if party in self.participants(number)), -1)

    def prepare(self) -> None:
        """Describe the clients, compare them, start the model, and prepare all of them."""
        clients, config = self._describe(), self.config
        check_alike(clients)
        clients = tuple(replace(c, columns=clients[0].columns) for c in clients)  # equal ones stand once
        check_claims(clients, config.limits.max_rows)
        federation = HorizontalAgreement(
            run=config.run,
            parties=clients,
            training=config.training,
            lab=config.lab,
            model=config.model,
            horizontal=config.horizontal,
            nonce=run_nonce(self.folder),
        )
        federation.check_keys()
        self._begin(federation)  # a model that does not fit is refused before a client prepares
        # Side by side: a client with a network imports torch now, which takes seconds.
        act = Prepare(federation, _NO_ROWS)
        for reply in [self.links[p.name].submit(act) for p in clients]:
            reply.result()
        self.save_summary()
        self.reached.save()
        self._agreed = True
        self.log.info("prepared", clients=len(clients), rows=sum(p.train_rows for p in clients))

    def _begin(self, federation: HorizontalAgreement) -> None:
        site = Site(
            party=self.name,
            columns=federation.columns,
            features=len(federation.columns),
            classes=federation.n_classes,
            training=federation.training,
            keys=Keys.under(self.secret),
            wrap=plain,
            received=federation.received_width,
            holds_bias=True,
        )
        private = federation.horizontal.private_bottom
        self._parameters = WholeModel(federation.model, site, private_bottom=private).parameters()
        if not self._parameters:
            raise ConfigError(
                f"horizontal.method = {federation.horizontal.method!r} of a top model without parameters: "
                "nothing is averaged, set model.trainable_top = true or choose 'fedavg'"
            )
        self._parameters = self.adversary.planted(federation, self._parameters)
        self._start = self._parameters
        self._federation = federation

    def take_up(self) -> None:
        self._begin(HorizontalAgreement.load(self.folder))
        self._agreed = True

    def train(self) -> None:
        """All rounds from the next one on; then every client has the last parameters."""
        clock, first, rounds = CLOCK.get(), self.next_round, self.rounds()
        began = clock()
        clients = self.links.to(self.prepared.parties)
        run_to_end(rounds.run(clients, first, self._parameters))
        if self.left_out:
            self.rejoin()  # who is back by now gets the last parameters too
            run_to_end(rounds.run(clients, self.prepared.epochs, self._parameters))
        self._record_participation()
        taken = self.prepared.epochs - first
        self._record_speed(self.prepared.epochs, taken, clock() - began)
        self.keep_metrics()

    @property
    def next_round(self) -> int:
        """The first round that was not learned from."""
        return self.recovery.learned + 1

    def rounds(self) -> Rounds | SplitRounds:
        """What trains, round by round."""
        return Rounds(
            federation=self.prepared,
            gate=self.gate,
            transcript=self.transcript,
            recovery=self.recovery,
            report=self._report,
            participants=self.participants,
            keep=self._keep,
        )

    def _record_participation(self) -> None:
        """In how many rounds each client trained."""
        taken = Counter(name for number in range(self.prepared.epochs) for name in self.participants(number))
        for party in self.prepared.parties:
            self.metrics.add(Name.ROUNDS, taken[party.name], target=party.name)

    def _keep(self, parameters: Mapping[str, Array]) -> None:
        self._parameters = parameters

    def disclose(self) -> None:
        """Record what each client grants, and keep what an attack on the record needs beside it."""
        self.advance(Stage.DISCLOSED)
        save_arrays(self.folder / "own.npz", owned(self._start, self._parameters))
        for name in self.participants(self.prepared.epochs):
            granted = self.links[name].call(Disclose(self.config.run, MODEL_VERSION, self.name))
            check_grants(granted, name, self.prepared)
            for released in granted:
                self.transcript.record(released)

    def attack(self) -> None:
        """Attack every client that is there, while they measure what they gained; a restart repeats it."""
        present = self.participants(self.prepared.epochs)
        self.adversary.attack(present, owned(self._start, self._parameters), self._report)
        self.keep_metrics()
        self._note_finished(self.name)

    def open_predictions(self) -> None:
        """Tell the clients that training is over: each measures what it gained. Absent ones do not."""
        self.advance(Stage.OPEN)
        for name in self.left_out:
            self._note_finished(name)
        for name in self.participants(self.prepared.epochs):
            self.links[name].call(Begin(self.config.run, MODEL_VERSION))

    def check_logged(self, released: Released) -> None:
        check_update(released, released.sender, self.prepared, self._parameters)

    def relearn(self, logged: Sequence[Released]) -> None:
        self._parameters = averaged(self.prepared, self._parameters, logged)

    def load(self, state: Mapping[str, Array]) -> None:
        check_state(state, self._parameters)
        self._parameters = {name: state[name] for name in self._parameters}
