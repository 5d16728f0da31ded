"""Whatever bytes arrive, a party answers with one of our errors or does what they say; it never crashes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from laboratory import close, deal, experiment, finish
from oneprocess import LocalFederation
from stubparty import CALLERS, LIMITS, served
from thinned import thinned
from wirecases import ACTS

from vflens.errors import VflensError
from vflens.protocol import acts, mask_acts
from vflens.protocol.link import Party
from vflens.protocol.standing import Standing
from vflens.protocol.vertical import row_ids
from vflens.protocol.vertical.access import ACCESS, DIRECT_ACCESS
from vflens.services.servicer import decode_request
from vflens.types import Exchange, Phase, Point, Released, Role, numbered
from vflens.wire.channel import PARTY_KEY, TOKEN_KEY, grpc
from vflens.wire.grpc_link import GrpcLink
from vflens.wire.messages import RPCS

RUN = "tiny/run"
PARTIES = ("passive", "active", "coordinator")
#: Softmax regression through the coordinator, and a network whose active party aggregates.
TABLES = {"hub": ACCESS, "direct": DIRECT_ACCESS}
NETWORK = {"architecture": "mlp", "width": 3, "precision": "float64"}
ASKED = [
    (kind, role, act)
    for kind, table in TABLES.items()
    for act, pairs in table.items()
    for role in PARTIES
    if Role(role) in {c for _, c in pairs} and (kind == "hub" or pairs != ACCESS[act])
]
thorough = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def made(home: Path, kind: str) -> LocalFederation:
    """It stops after three of four announced epochs, so that one more step is in order. Rows are aligned by
    private set intersection.
    """
    training = {"epochs": 4, "batch_size": 20, "learning_rate": 0.1, "patience": 2, "tolerance": 1e9}
    more = {"aggregator": "active", "model": NETWORK} if kind == "direct" else {}
    dealt = deal(experiment(home, training=training, align={"mode": "psi"}, **more), home)
    return LocalFederation(dealt, lambda stage, done, total: None)


def stepping(home: Path, kind: str) -> LocalFederation:
    """The same, a further step due."""
    federation = made(home, kind)
    federation.coordinator.prepare()
    federation.coordinator.train()
    return federation


def trained(home: Path, kind: str) -> LocalFederation:
    """The same, trained and predicted."""
    federation = stepping(home, kind)
    finish(federation)
    return federation


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, LocalFederation]]:
    """Federations that have been trained and have predicted."""
    found = {kind: trained(tmp_path_factory.mktemp(kind), kind) for kind in TABLES}
    yield found
    for federation in found.values():
        close(federation)


Moments = dict[str, tuple[LocalFederation, ...]]


@pytest.fixture(scope="module")
def moments(local: dict[str, LocalFederation], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moments]:
    """Federations of each kind before anything happened, in training and after predictions."""
    early = {
        kind: tuple(make(tmp_path_factory.mktemp(kind), kind) for make in (made, stepping)) for kind in TABLES
    }
    yield {kind: (*early[kind], local[kind]) for kind in TABLES}
    for federations in early.values():
        for federation in federations:
            close(federation)


def party_of(local: LocalFederation, role: str) -> Party:
    return {p.role: p for p in local.members()}[Role(role)]


def caller_of(party: Party, act: type[acts.Act[Any]]) -> Role:
    """One who may ask ``party`` for ``act``."""
    return min(caller for caller, callee in party.access[act] if callee is party.role)


def valid(local: LocalFederation, role: str) -> dict[type[acts.Act[Any]], acts.Act[Any]]:
    """A well-formed message of every kind to the party of ``role``, as this run would send it next: the seeds
    of mutation.
    """
    run = local.coordinator.aligned
    train, predict = run.train[:20], run.predict[:4]
    step, asked = Exchange(RUN, Phase.TRAIN, 3, 12), Exchange(RUN, Phase.PREDICT, 1, 900)
    numbers = np.zeros((20, 3))
    gradient = Released("active", step, Point.GRADIENT, train, tensors={"gradient": numbers})
    summed = Released("coordinator", step, Point.EMBEDDING, train, tensors={"embedding": numbers})
    after = Exchange(RUN, Phase.TRAIN, 3, 13)
    own = Released("active", asked, Point.EMBEDDING, predict, tensors={"embedding": np.zeros((4, 3))})
    width = 3 if role == "active" else len(local.passive["passive"].table.columns)
    guess = acts.Guess("half", np.full((4, width), 0.5), numbered(["ok"] * 4))
    sender = "passive" if role == "active" else "active"
    scored = ("train", np.sort(run.train)[:4]) if role == "active" else ("predict", predict)
    disclosed = Exchange(RUN, Phase.DISCLOSE, 1, 3)
    weight = {"weight": np.zeros((3, len(local.passive["passive"].table.columns)))}
    parameters = Released("passive", disclosed, Point.PARAMETERS, predict[:0], tensors=weight)
    of_four = disclosed._replace(step=4)
    labels = Released(
        "active", of_four, Point.AUXILIARY, train[:4], tensors={"labels": np.zeros(4, np.int64)}
    )
    other = local.data_parties[sender if role != "coordinator" else "active"]
    salts = b"".join(party.salt(row_ids.Salt(RUN)).salt for _, party in sorted(local.data_parties.items()))
    elements = other.identify(row_ids.Identify(RUN, salts, 0)).digests
    named: tuple[acts.Act[Any], ...] = (
        acts.Describe(RUN),
        row_ids.Salt(RUN),
        row_ids.Identify(RUN, salts, 0),
        row_ids.Blind(RUN, salts, other.name, 0, ids=90, elements=elements),
        acts.Prepare(run, np.arange(run.rows, dtype="<i4"), salts),
        acts.Rejoin(RUN, Standing(version("vflens"), 0, "open", 12, released=0, federation=run.digest)),
        acts.Step(step, train, summed) if role == "active" else acts.Step(after, train, gradient),
        acts.Train(RUN),
        acts.Epoch(RUN, 1),
        mask_acts.Seed(RUN),
        mask_acts.Deal(RUN, 1),
        acts.Disclose(RUN, 1, "active"),
        acts.Deliver(parameters if role == "active" else labels),
        acts.Begin(RUN, 1),
        acts.Forward(asked, predict),
        acts.Predict(own),
        acts.Query("all"),
        acts.Submission(RUN, sender, *scored, (guess,)),
        acts.Finished(RUN, sender),
        acts.Stop(RUN),
    )
    return {type(act): act for act in named}


def mutated(data: st.DataObject, message: bytes) -> bytes:
    """``message`` with bytes flipped, removed, repeated or cut off."""
    found = bytearray(message)
    for _ in range(data.draw(st.integers(1, 4))):
        if not found:
            break
        at = data.draw(st.integers(0, len(found) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "drop", "repeat"])):
            case "flip":
                found[at] ^= data.draw(st.integers(1, 255))
            case "cut":
                del found[at:]
            case "drop":
                del found[at : at + data.draw(st.integers(1, 9))]
            case _:
                found[at:at] = found[at : at + data.draw(st.integers(1, 9))]
    return bytes(found)


def without_a_field(data: st.DataObject, message: Any) -> bytes:
    """``message`` without one of its fields, at whatever depth."""
    inner = message
    while fields := inner.ListFields():
        field, value = data.draw(st.sampled_from(fields))
        if not isinstance(value, Message) or data.draw(st.booleans()):
            inner.ClearField(field.name)
            break
        inner = value
    return bytes(message.SerializeToString())


def ask(party: Party, act: type[acts.Act[Any]], data: bytes) -> None:
    """Answer as the servicer does, for a caller who may ask; our errors are fine."""
    caller, rpc = caller_of(party, act), RPCS[act]
    try:
        rpc.encode_reply(party.perform(decode_request(rpc, data), str(caller), caller))
        party.settle()
    except VflensError as error:
        refusal = str(error)
        assert len(refusal) > 10  # a sentence
        assert "\n" not in refusal


#: Every third of them; the others are slow facts.
SOME = thinned(((asked,) for asked in ASKED), 3)


@pytest.mark.parametrize("asked", ASKED, ids=lambda a: f"{a[0]}-{a[1]}-{a[2].__name__}")
@given(data=st.data())
@thorough
def test_random_bytes(
    moments: Moments,
    asked: tuple[str, str, type[acts.Act[Any]]],
    data: st.DataObject,
) -> None:
    kind, role, act = asked
    noise = data.draw(st.binary(max_size=200))
    for federation_ in moments[kind]:
        ask(party_of(federation_, role), act, noise)


@pytest.mark.parametrize("asked", SOME, ids=lambda a: f"{a[0]}-{a[1]}-{a[2].__name__}")
@given(data=st.data())
@thorough
def test_well_formed_nonsense(
    moments: Moments,
    asked: tuple[str, str, type[acts.Act[Any]]],
    data: st.DataObject,
) -> None:
    kind, role, act = asked
    message = RPCS[act].encode(data.draw(ACTS[act])).SerializeToString()
    for federation_ in moments[kind]:
        ask(party_of(federation_, role), act, message)


@pytest.mark.parametrize("asked", SOME, ids=lambda a: f"{a[0]}-{a[1]}-{a[2].__name__}")
@given(data=st.data())
@thorough
def test_mutated_messages(
    moments: Moments,
    asked: tuple[str, str, type[acts.Act[Any]]],
    data: st.DataObject,
) -> None:
    kind, role, act = asked
    message = RPCS[act].encode(valid(moments[kind][-1], role)[act])
    wrong = (
        without_a_field(data, message)
        if data.draw(st.booleans())
        else mutated(data, message.SerializeToString())
    )
    for federation_ in moments[kind]:
        ask(party_of(federation_, role), act, wrong)


@pytest.mark.parametrize("kind", TABLES)
def test_the_seeds_of_mutation_are_near_the_mark(tmp_path: Path, kind: str) -> None:
    """What the mutations begin with is what this run would send next: the parties take it."""
    in_training = (acts.Train, acts.Step)
    training, over = stepping(tmp_path / "training", kind), trained(tmp_path / "over", kind)
    for asked, role, act in sorted(
        ASKED, key=lambda a: a[2] is not acts.Train
    ):  # it comes before a further step
        if asked == kind:
            federation = training if act in in_training else over
            message = RPCS[act].encode(valid(federation, role)[act]).SerializeToString()
            party = party_of(federation, role)
            caller = caller_of(party, act)
            party.perform(decode_request(RPCS[act], message), str(caller), caller)
    close(training)
    close(over)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("role", PARTIES)
def test_a_real_server_outlives_them(
    local: dict[str, LocalFederation], kind: str, role: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Over a socket: unary calls and streams of noise, then a valid call is answered."""
    rng = np.random.default_rng(5)
    party = party_of(local[kind], role)
    with served(party) as address, grpc.insecure_channel(address) as channel:
        for act in (a for k, r, a in ASKED if (k, r) == (kind, role)):
            right = RPCS[act].encode(valid(local[kind], role)[act]).SerializeToString()
            for _ in range(4):
                for noise in (rng.bytes(int(rng.integers(1, 60))), right[: rng.integers(len(right))]):
                    with refused_in_order():
                        send(channel, act, noise, party)
        _assert_alive(role, address)
    assert "Traceback" not in capfd.readouterr().err


def send(channel: Any, act: type[acts.Act[Any]], noise: bytes, party: Party) -> None:
    """``noise`` as the request for ``act`` to ``party``, from a caller who may ask."""
    caller, rpc = str(caller_of(party, act)), RPCS[act]
    metadata = ((PARTY_KEY, caller), (TOKEN_KEY, CALLERS[caller][1]))
    if rpc.stream:
        list(channel.stream_stream(rpc.path)(iter([noise, noise]), metadata=metadata, timeout=60))
    else:
        channel.unary_unary(rpc.path)(noise, metadata=metadata, timeout=60)


@contextmanager
def refused_in_order() -> Iterator[None]:
    """Answered, or refused with the name of one of our errors and a status of its own."""
    refusal: Any = None
    try:
        yield
    except grpc.RpcError as error:
        refusal = error
    if refusal is not None:
        assert "vflens-error" in dict(refusal.trailing_metadata()), refusal
        assert refusal.code() is not grpc.StatusCode.UNKNOWN
        assert not refusal.details().startswith("unexpected"), refusal.details()


def _assert_alive(role: str, address: str) -> None:
    caller = "active" if role == "coordinator" else "coordinator"
    link = GrpcLink(role, address, caller=caller, token=CALLERS[caller][1], limits=LIMITS)
    act: acts.Act[Any] = acts.Finished(RUN, caller) if role == "coordinator" else acts.Describe(RUN)
    link.call(act)
    link.close()
