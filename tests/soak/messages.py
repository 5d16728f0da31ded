"""Mutated messages against every act of every role, at three moments of a run, without a network.

Each is refused with a numbered error, which leaves the callee's logs untouched, or is a valid message. They
come in rounds: a round is one federation at one moment, and follows from its key alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count, islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psutil
from accidents import train_until, trainer
from criterion import LOGS
from laboratory import deal
from mutation import mutated
from world import KINDS, NUMBER, World, experiment_of

from vflens.config import OPERATOR, ActiveConfig, PartyConfig, load_party
from vflens.errors import classes
from vflens.protocol.acts import Act, Predict, Query, Train
from vflens.protocol.link import Party
from vflens.services.servicer import Servicer
from vflens.types import Role
from vflens.wire.channel import PARTY_KEY, TOKEN_KEY
from vflens.wire.messages import RPCS

#: Both attack each other: between them the runs of these kinds ask every role for every act.
_MUTUAL = {
    "attacks": [{"name": "half"}, {"name": "gradient_sign", "at": "passive"}],
    "disclose": [{"what": "parameters", "to": "active"}, {"what": "labels", "to": "passive", "rows": 4}],
}
#: The server attacks, and submits what it finds.
_ONE_STEP: dict[str, Any] = {
    "horizontal": {"rounds": 3, "local_steps": 1},
    "training": {"optimizer": "sgd", "batch_size": 1, "learning_rate": 0.1},
    "attacks": [{"name": "softmax_inversion"}],
}
_PSI: dict[str, Any] = {"align": {"mode": "psi"}}
_IN_THE_CLEAR: dict[str, Any] = {
    "training": KINDS["whole transcript"]["training"],
    "attacks": [{"name": "half"}, {"name": "first_residuals", "at": "passive"}],
}
SETTINGS = {
    "coordinator aggregates": KINDS["whole transcript"] | _MUTUAL | _PSI,
    "active aggregates": KINDS["active aggregates"] | _PSI,
    "shares": KINDS["protected training"] | _MUTUAL | _PSI,
    "number": KINDS["whole transcript"] | NUMBER | _IN_THE_CLEAR | _PSI,
    "number on shares": KINDS["number on shares"] | _PSI,
    "server averages": KINDS["server averages"] | _ONE_STEP,
}
MOMENTS = ("before", "training", "after")
ROUND = 2_500  # messages
MOST_GROWN_MIB = 64  # from a third of the messages to the last: 100 bytes for each would be 64 MiB
WORDS = (
    *("tiny/run", "other/run", "passive", "active", "coordinator", "client-1", "server"),
    *(OPERATOR, "nobody", "predict", "train"),
)
#: Acts whose callee sends something to others before one of them refuses: it logs what it sent.
ASKS_OTHERS = (Query, Predict, Train)
_NUMBERED = {error.__name__ for error in classes()[1:]}
_TRAINED_STEPS = 2


class Key(NamedTuple):
    """A round: the kind of its federation, the moment, a seed."""

    kind: str
    moment: str
    seed: int

    def __str__(self) -> str:
        return f"messages:{self.kind}:{self.moment}:{self.seed}"


class Recorded(NamedTuple):
    """A valid message of an undisturbed run."""

    caller: str
    callee: str
    act: Act[Any]


class Failed(AssertionError):  # noqa: N818 - its place is all it says
    """A message did what none may do."""


class _Aborted(Exception):  # noqa: N818 - as the library ends a call
    pass


class _Context:
    """What a handler sees of a call."""

    refusal = ("", "")

    def is_active(self) -> bool:
        return True

    def set_trailing_metadata(self, metadata: Sequence[tuple[str, str]]) -> None:
        self._error = metadata[0][1]

    def abort(self, code: object, sentence: str) -> None:
        self.refusal = (self._error, sentence)
        raise _Aborted


class _Log:
    """The party's log: refusals are expected, errors are not."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def warning(self, event: str, **_: object) -> None:
        pass

    def error(self, event: str, **text: object) -> None:
        self.errors.append(str(text))


@dataclass
class _Call:
    method: str
    invocation_metadata: tuple[tuple[str, str | bytes], ...]


class Target:
    """A party behind its servicer."""

    def __init__(self, party: Party, config: PartyConfig) -> None:
        self.log, self.config = _Log(), config
        self.credentials: dict[str, tuple[Role, str]] = {p.name: (p.role, p.token) for p in config.peers}
        if isinstance(config, ActiveConfig) and config.operator_token:
            self.credentials[OPERATOR] = (Role.OPERATOR, config.operator_token)
        self._servicer = Servicer(party, self.credentials, self.log)
        self._files = [config.out / log / name for log in LOGS for name in ("index.jsonl", "payload.bin")]

    def send(
        self, caller: str, token: str, act: type[Act[Any]], requests: Sequence[bytes]
    ) -> tuple[str, str]:
        """The name and the sentence of the refusal; empty ones where all ``requests`` were answered."""
        context, call = _Context(), _Call(RPCS[act].path, ((PARTY_KEY, caller), (TOKEN_KEY, token)))
        handler = self._servicer.service(call)
        with suppress(_Aborted):
            if handler.stream_stream:
                for reply in handler.stream_stream(iter(requests), context):
                    reply.SerializeToString()
            else:
                handler.stream_unary(iter(requests), context).SerializeToString()
        return context.refusal

    def sizes(self) -> list[int]:
        """The sizes of its logs' files."""
        return [file.stat().st_size for file in self._files]

    def contents(self) -> list[bytes]:
        """The sizes of its logs' files."""
        return [file.read_bytes() for file in self._files]


class Rounds:
    """Rounds over federations that were dealt and recorded once, below ``home``."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.configs = cache(self._dealt)
        self.recorded = cache(self._recorded)
        self.slowest = 0.0  # seconds

    def _dealt(self, kind: str) -> list[PartyConfig]:
        home = self._home / kind
        return [load_party(file) for file in deal(experiment_of(home, SETTINGS[kind]), home).values()]

    def _recorded(self, kind: str) -> list[Recorded]:
        """All messages of an undisturbed run, the leader's return and the end among them."""
        with closing(World(self.configs(kind), self._home / f"{kind} recorded", "plain")) as world:
            world.local.leader.lead()
            world.local.leader.rejoin()
            world.local.complete()
            world.local.leader.stop()
            asked = [Recorded(*message) for message in world.asked]
        serving = [c.party for c in self.configs(kind) if isinstance(c, ActiveConfig)]
        return [*asked, *(Recorded(OPERATOR, party, Query("0-1")) for party in serving)]

    def run(self, key: Key, number: int = ROUND) -> Counter[str]:
        """Send ``number`` messages; how many of each error, "" for those that were answered.

        Raises:
            Failed: naming the message, counted from 0, and what it did.
        """
        rng, found = Random(repr(key)), Counter[str]()
        by_act: dict[tuple[str, type], list[Recorded]] = {}
        for message in self.recorded(key.kind):
            by_act.setdefault((message.callee, type(message.act)), []).append(message)
        with TemporaryDirectory() as home, closing(self._at(key, Path(home))) as world:
            targets = {p.name: Target(p, p.config) for p in world.local.members()}
            before = {name: target.contents() for name, target in targets.items()}
            for place in range(number):
                recorded = rng.choice(by_act[rng.choice(list(by_act))])
                try:
                    found[self._send(rng, recorded, targets[recorded.callee])] += 1
                except Exception as error:
                    raise Failed(f"message {place}, {type(recorded.act).__name__}: {error}") from error
            for name, target in targets.items():
                for old, new in zip(before[name], target.contents(), strict=True):
                    assert new.startswith(old), f"a log of {name} was changed"
            world.draws.note_logs(Path(home))
        return found

    def _at(self, key: Key, home: Path) -> World:
        """A federation at the moment of ``key``."""
        world = World(self.configs(key.kind), home, "plain")
        if key.moment == "training":
            trainer(world.local).prepare()
            train_until(world.local, _TRAINED_STEPS)
        elif key.moment == "after":
            world.local.leader.lead()
            world.local.complete()
        return world

    def _send(self, rng: Random, recorded: Recorded, target: Target) -> str:
        """Send one mutated message; the name of its refusal, "" for none."""
        act, caller = type(recorded.act), recorded.caller
        right = RPCS[act].encode(recorded.act)
        requests = [mutated(rng, right, WORDS) for _ in range(rng.choice((1, 1, 1, 2)))]
        if rng.random() < 0.05:
            caller = rng.choice([*target.credentials, "nobody"])
        token = target.credentials.get(caller, ("", "of nobody"))[1]
        sizes, began = target.sizes(), time.perf_counter()
        name, sentence = target.send(caller, token, act, requests)
        self.slowest = max(self.slowest, time.perf_counter() - began)
        assert not target.log.errors, target.log.errors
        if name:
            assert name in _NUMBERED, (name, sentence)
            assert 10 < len(sentence) < 700, sentence
            assert sentence.isprintable(), sentence
            may_log = len(requests) > 1 or issubclass(act, ASKS_OTHERS)
            assert may_log or target.sizes() == sizes, f"refused and logged: {sentence}"
        return name


def keys() -> Iterator[Key]:
    """All rounds, every kind and moment in turn."""
    return (Key(kind, moment, seed) for seed in count() for kind in SETTINGS for moment in MOMENTS)


def soak(seconds: float, number: int = 1_000_000) -> dict[str, Any]:
    """Send ``number`` messages, or as many as ``seconds`` allow.

    Returns:
        Figures, and the failures: each with the key of its round.
    """
    process, found = psutil.Process(), Counter[str]()
    figures: dict[str, Any] = {"planned": number, "ran": 0, "failures": []}
    resident: list[int] = []
    began = time.monotonic()
    with TemporaryDirectory() as home:
        rounds = Rounds(Path(home))
        for key in islice(keys(), number // ROUND + 1):
            size = min(ROUND, number - figures["ran"])
            if not size or time.monotonic() - began > seconds:
                break
            try:
                found += rounds.run(key, size)
            except AssertionError as error:
                figures["failures"].append({"cell": str(key), "error": str(error)})
            figures["ran"] += size
            resident.append(process.memory_info().rss)
    answered = found.pop("", 0)
    resident_mib = [round(resident[i] / 2**20, 1) for i in (len(resident) // 3, -1)]
    if resident_mib[1] - resident_mib[0] > MOST_GROWN_MIB:
        figures["failures"].append({"cell": str(key), "error": f"resident MiB grew: {resident_mib}"})
    return figures | {
        "seconds": round(time.monotonic() - began),
        "answered": answered,
        "refused": dict(found.most_common()),
        "slowest_ms": round(1000 * rounds.slowest, 1),
        "resident_mib": resident_mib,
        "threads": process.num_threads(),
        "descriptors": process.num_fds(),
    }


def repeat(kind: str, moment: str, seed: str) -> None:
    """Run one round again.

    Raises:
        Failed: see :meth:`Rounds.run`.
    """
    with TemporaryDirectory() as home:
        print(dict(Rounds(Path(home)).run(Key(kind, moment, int(seed)))))
