"""One contract for every link: in this process, and over gRPC through a socket and through a port."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs
from stubparty import CALLERS, LIMITS, Stub, raising, served, short_folder

from vflens.config import Limits
from vflens.errors import (
    AccessError,
    ProtocolError,
    StateError,
    StorageError,
    UnavailableError,
    VflensError,
    classes,
)
from vflens.models.settings import Training
from vflens.protocol import acts, mask_acts
from vflens.protocol.access import Access
from vflens.protocol.horizontal.access import HORIZONTAL_ACCESS
from vflens.protocol.link import InProcessLink, Link, Party
from vflens.protocol.standing import Standing
from vflens.protocol.vertical import row_ids
from vflens.protocol.vertical.access import ACCESS, DIRECT_ACCESS, SHARES_ACCESS
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.types import Array, Exchange, PartyInfo, Phase, Point, Released, Role
from vflens.wire.channel import grpc
from vflens.wire.grpc_link import GrpcLink

Connect = Callable[..., Link]
RUN = "a run"


def exchange(step: int) -> Exchange:
    return Exchange(RUN, Phase.TRAIN, 0, step)


def released(step: int, value: Array) -> Released:
    return Released(
        "callee", exchange(step), Point.EMBEDDING, np.arange(3, dtype="<i4"), tensors={"embedding": value}
    )


def forward(step: int) -> acts.Forward:
    return acts.Forward(exchange(step), np.arange(3, dtype="<i4"))


def grpc_link(address: str, caller: Role, limits: Limits = LIMITS, token: str = "") -> GrpcLink:
    token = token or CALLERS[str(caller)][1]
    return GrpcLink("callee", address, caller=str(caller), token=token, limits=limits)


@pytest.fixture(params=["in process", "socket", "port"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Serve a party to a caller of some role; the caller's link."""
    with ExitStack() as cleanup:

        def connected(party: Party, caller: Role = Role.COORDINATOR) -> Link:
            if request.param == "in process":
                return InProcessLink("callee", str(caller), caller, {"callee": party})
            address = cleanup.enter_context(served(party, tcp=request.param == "port"))
            link = grpc_link(address, caller)
            cleanup.callback(link.close)
            return link

        yield connected


#: Before a refusal: whose words they are, where it came over gRPC.
SAID = "^(party 'callee': )?"


def _asked(access: Access) -> set[Role]:
    return {callee for pairs in access.values() for _, callee in pairs if callee is not Role.OPERATOR}


_TABLES = (ACCESS, DIRECT_ACCESS, SHARES_ACCESS, HORIZONTAL_ACCESS)
#: Who is asked in each setting, and in each of two a role that nobody may ask.
CALLED = [
    *((access, callee) for access in _TABLES for callee in Role if callee in _asked(access)),
    *((ACCESS, Role.SERVER), (HORIZONTAL_ACCESS, Role.ACTIVE)),
]


class TestLink:
    """What holds for all of them."""

    def test_replies_come_back(self, connect: Connect) -> None:
        value = np.array([[-np.inf, 1.5], [0, -0.0], [5e-324, 1]])
        link = connect(Stub(lambda act: released(act.exchange.step, value), Role.PASSIVE))
        assert link.call(forward(4)).tensor("embedding").tobytes() == value.tobytes()
        described = connect(Stub(lambda act: acts.Done(), Role.PASSIVE)).submit(acts.Stop(RUN, "why"))
        assert described.result() == acts.Done()

    @pytest.mark.parametrize("error", classes())
    @pytest.mark.parametrize("act", [acts.Describe(RUN), forward(0)])
    def test_every_error_survives(
        self, connect: Connect, error: type[VflensError], act: acts.Act[Any]
    ) -> None:
        sentence = "rows of 3 bytes: expected 4 bytes a row – naïve, −inf"
        link = connect(Stub(raising(error(sentence)), Role.PASSIVE))
        with pytest.raises(VflensError, match=f"{SAID}{re.escape(sentence)}$") as caught:
            link.submit(act).result()
        assert type(caught.value) is error

    def test_a_party_answers_after_an_error(self, connect: Connect) -> None:
        def answer(act: acts.Forward) -> Released:
            if act.exchange.step == 1:
                raise StateError("too early")
            return released(act.exchange.step, np.ones((3, 1)))

        link = connect(Stub(answer, Role.PASSIVE))
        assert link.call(forward(0)).exchange.step == 0
        with pytest.raises(StateError, match=f"{SAID}too early$"):
            link.call(forward(1))
        assert link.call(forward(2)).exchange.step == 2

    @pytest.mark.parametrize(("access", "callee"), CALLED)
    def test_the_access_table_is_enforced(self, connect: Connect, callee: Role, access: Access) -> None:
        reached: list[type] = []

        def answer(act: acts.Act[Any]) -> Any:
            reached.append(type(act))
            raise StateError("reached")

        party = Stub(answer, callee)
        party.access = access
        for role in Role:
            link = connect(party, role)
            for kind, pairs in access.items():
                allowed = (role, callee) in pairs
                with pytest.raises(StateError if allowed else AccessError) as caught:
                    link.submit(signed(EXAMPLES[kind], role)).result()
                if not allowed:
                    why = "only the " if pairs else "nobody may"
                    words = f"{role} '{role}' may not ask {callee} 'callee' to {kind.__name__}: {why}"
                    assert str(caught.value).removeprefix("party 'callee': ").startswith(words)
        assert set(reached) == {kind for kind, pairs in access.items() if callee in {c for _, c in pairs}}

    def test_nobody_signs_with_the_name_of_another(self, connect: Connect) -> None:
        party = Stub(raising(StateError("reached")), Role.COORDINATOR)
        with pytest.raises(StateError, match=f"{SAID}reached$"):
            connect(party, Role.ACTIVE).call(acts.Finished(RUN, "active"))
        with pytest.raises(
            AccessError, match=rf"{SAID}Finished in the name of 'passive' came from 'active': sign with"
        ):
            connect(party, Role.ACTIVE).call(acts.Finished(RUN, "passive"))

    def test_replies_come_in_order_with_several_in_flight(self, connect: Connect) -> None:
        link = connect(Stub(lambda act: released(act.exchange.step, np.ones((3, 1))), Role.PASSIVE))
        replies = [link.submit(forward(step)) for step in range(6)]  # as many as a server answers
        assert [r.result().exchange.step for r in replies] == list(range(6))

    def test_abandoned_replies_are_passed_over(self, connect: Connect) -> None:
        link = connect(Stub(lambda act: released(act.exchange.step, np.ones((3, 1))), Role.PASSIVE))
        replies = [link.submit(forward(step)) for step in range(6)]
        assert replies[3].result().exchange.step == 3
        assert replies[3].result().exchange.step == 3
        assert replies[5].result().exchange.step == 5

    def test_what_was_put_off_and_failed_is_heard_of(self, connect: Connect) -> None:
        class Full(Stub):
            def settle(self) -> None:
                raise StorageError("the disk is full")

        link = connect(Full(lambda act: acts.Done(), Role.PASSIVE))
        with pytest.raises(StorageError, match=f"{SAID}the disk is full$"):
            link.call(acts.Stop(RUN))


NO_ROWS = np.zeros(0, "<i4")
MEMBERS = (PartyInfo("p", Role.PASSIVE), PartyInfo("a", Role.ACTIVE, n_classes=2))
NOTHING = Released("a", exchange(0), Point.EMBEDDING, NO_ROWS, tensors=None)
EXAMPLES: dict[type[acts.Act[Any]], acts.Act[Any]] = {
    type(act): act
    for act in (
        acts.Describe(RUN),
        row_ids.Salt(RUN),
        row_ids.Identify(RUN, bytes(32), 0),
        row_ids.Blind(RUN, bytes(32), "active", 0, ids=1, elements=bytes(32)),
        acts.Prepare(
            VerticalAgreement(
                run=RUN,
                parties=MEMBERS,
                rows=0,
                train=NO_ROWS,
                predict=NO_ROWS,
                training=Training(),
                lab=True,
            ),
            NO_ROWS,
        ),
        acts.Rejoin(RUN, Standing("1", 0, "training", -1, released=0, federation=b"")),
        acts.Step(exchange(0), NO_ROWS, None),
        acts.Train(RUN),
        acts.Epoch(RUN, 0),
        mask_acts.Seed(RUN),
        mask_acts.Deal(RUN, 0),
        acts.Disclose(RUN, 1, "active"),
        acts.Deliver(NOTHING),
        acts.Begin(RUN, 1),
        forward(0),
        acts.Stop(RUN),
        acts.Predict(NOTHING),
        acts.Finished(RUN, ""),
        acts.Submission(RUN, "", "predict", NO_ROWS, guesses=()),
        acts.Query("all"),
    )
}


def signed(act: acts.Act[Any], role: Role) -> acts.Act[Any]:
    """``act`` with the name of a caller of this ``role``, if it carries one."""
    return replace(act, sender=str(role)) if isinstance(act, acts.Signed) else act  # type: ignore[type-var]


def test_every_act_with_the_name_of_its_sender_is_signed() -> None:
    named = {kind for kind, act in EXAMPLES.items() if any("sender" in f.name for f in fields(act))}  # type: ignore[arg-type]
    assert named == {kind for kind in EXAMPLES if issubclass(kind, acts.Signed)} != set()


def test_the_examples_are_all_acts() -> None:
    assert EXAMPLES.keys() == ACCESS.keys()


class TestGrpcLink:
    """What only a wire can do wrong."""

    @pytest.mark.parametrize("caller", ["coordinator", "operator", "stranger", ""])
    def test_a_caller_proves_who_it_is(self, caller: str) -> None:
        with served(Stub(raising(StateError("reached")), Role.ACTIVE)) as address:
            link = GrpcLink("callee", address, caller=caller, token="another-token-of-20", limits=Limits())
            sentence = (
                f"caller {caller!r} is no peer of 'callee', or its token is another: "
                "compare both configurations"
            )
            for act in (acts.Describe(RUN), EXAMPLES[acts.Query], EXAMPLES[acts.Step]):
                with pytest.raises(AccessError, match=f"{SAID}{re.escape(sentence)}$"):
                    link.submit(act).result()
            link.close()

    def test_nobody_borrows_another_ones_token(self) -> None:
        with served(Stub(raising(StateError("reached")), Role.PASSIVE)) as address:
            token = CALLERS["coordinator"][1]
            link = GrpcLink("callee", address, caller="active", token=token, limits=Limits())
            with pytest.raises(AccessError, match=rf"{SAID}caller 'active' is no peer"):
                link.call(acts.Describe(RUN))
            link.close()

    @pytest.mark.parametrize("act", [acts.Describe(RUN), forward(0)])
    def test_deadlines_are_honoured(self, act: acts.Act[Any]) -> None:
        wake = threading.Event()
        limits = Limits(call_seconds=0.5, step_seconds=0.5)
        with served(Stub(lambda act: wake.wait(100), Role.PASSIVE)) as address:
            link = grpc_link(address, Role.COORDINATOR, limits)
            started = time.monotonic()
            with pytest.raises(
                UnavailableError, match=r"^party 'callee' did not answer .*within 0.5 s: raise limits\."
            ):
                link.call(act)
            assert 0.4 < time.monotonic() - started < 90, "the answer was waited for"
            wake.set()
            link.close()

    def test_a_link_goes_on_after_a_deadline(self) -> None:
        slow = threading.Event()

        def answer(act: acts.Forward) -> Released:
            if act.exchange.step == 0:
                slow.wait(100)
            return released(act.exchange.step, np.ones((3, 1)))

        with served(Stub(answer, Role.PASSIVE)) as address:
            link = grpc_link(address, Role.COORDINATOR, Limits(call_seconds=3))
            with pytest.raises(UnavailableError):
                link.call(forward(0))
            slow.set()
            assert link.call(forward(1)).exchange.step == 1
            link.close()

    @pytest.mark.parametrize("side", ["request", "reply"])
    def test_a_message_over_the_limit(self, side: str) -> None:
        big = np.ones(2**18 if side == "reply" else 1)
        rows = np.zeros(2**19 if side == "request" else 1, "<i4")
        limits = Limits(message_mib=1)
        with served(Stub(lambda act: released(0, big), Role.PASSIVE), limits=limits) as address:
            link = grpc_link(address, Role.COORDINATOR, limits)
            with pytest.raises(
                ProtocolError,
                match=r"^a message to or from 'callee' is over the limit \(.*\): raise limits\.message_mib "
                r"at both, or lower the batch$",
            ):
                link.call(acts.Forward(exchange(0), rows))
            link.close()

    @pytest.mark.parametrize("act", [acts.Describe(RUN), forward(0)])
    def test_nobody_listens(self, act: acts.Act[Any]) -> None:
        with served(Stub(raising(StateError("reached")), Role.PASSIVE)) as address:
            link = grpc_link(address, Role.COORDINATOR)
            with pytest.raises(StateError):
                link.call(act)
        with pytest.raises(UnavailableError, match=r"^party 'callee' cannot be reached \("):
            link.call(act)
        link.close()

    @pytest.mark.parametrize("act", [acts.Describe(RUN), forward(0)])
    def test_a_closed_link(self, act: acts.Act[Any]) -> None:
        link = grpc_link("unix:/nobody", Role.COORDINATOR)
        link.close()
        for attempt in (link.call, link.submit):
            with pytest.raises(UnavailableError, match=r"^the link to 'callee' is closed: open another$"):
                attempt(act)

    def test_replies_reach_who_asked_in_any_order_and_from_any_thread(self) -> None:
        with served(Stub(lambda act: released(act.exchange.step, np.ones((3, 1))), Role.PASSIVE)) as address:
            link = grpc_link(address, Role.COORDINATOR)
            replies = [link.submit(forward(step)) for step in range(4)]
            del replies[1]  # nobody asks for it
            assert [reply.result().exchange.step for reply in reversed(replies)] == [3, 2, 0]
            with ThreadPoolExecutor(5) as threads:  # a server answers six calls of a caller at a time
                steps = threads.map(lambda step: link.call(forward(step)).exchange.step, range(400))
                assert list(steps) == list(range(400))
            link.close()

    def test_an_unforeseen_failure_tells_no_more_than_its_kind(self) -> None:
        with (
            capture_logs() as logs,
            served(Stub(raising(RuntimeError("the secret is 42")), Role.PASSIVE)) as address,
        ):
            link = grpc_link(address, Role.COORDINATOR)
            with pytest.raises(
                VflensError, match=rf"{SAID}unexpected RuntimeError at 'callee': see its events\.jsonl$"
            ):
                link.call(acts.Describe(RUN))
            link.close()
        assert any("the secret is 42" in str(entry) for entry in logs)

    def test_a_long_sentence_is_shortened(self) -> None:
        """The library takes 8 KiB of trailers; a sentence may repeat what the caller sent."""
        with served(Stub(raising(ProtocolError("−" * 100_000)), Role.PASSIVE)) as address:
            link = grpc_link(address, Role.COORDINATOR)
            with pytest.raises(ProtocolError, match=rf"{SAID}−{{300}} … −{{300}} \(100000 characters\)$"):
                link.call(acts.Describe(RUN))
            link.close()

    @pytest.mark.parametrize("act", [acts.Describe(RUN), forward(0)])
    def test_a_refusal_commands_no_terminal(self, act: acts.Act[Any]) -> None:
        commands = "\x1b[2J\x1b]0;owned\x07all is well\r\n\x9b32m\u202e"
        with served(Stub(raising(StateError(commands)), Role.PASSIVE)) as address:
            link = grpc_link(address, Role.COORDINATOR)
            with pytest.raises(StateError) as refused:
                link.call(act)
            link.close()
        assert str(refused.value) == r"party 'callee': \x1b[2J\x1b]0;owned\x07all is well\r\n\x9b32m\u202e"

    @pytest.mark.parametrize("act", [acts.Describe(RUN), forward(0)])
    def test_a_reply_that_is_none(self, act: acts.Act[Any], capfd: pytest.CaptureFixture[str]) -> None:
        """A party of another version answers in other messages: one sentence, no traceback."""
        with short_folder() as folder, ThreadPoolExecutor(1) as workers:
            server = grpc.server(workers)
            server.add_generic_rpc_handlers((_Garbage(),))
            server.add_insecure_port(f"unix:{folder}/s")
            server.start()
            link = grpc_link(f"unix:{folder}/s", Role.COORDINATOR)
            with pytest.raises(
                ProtocolError, match=r"^party 'callee' answered with 3 bytes that are no \w+: use"
            ):
                link.call(act)
            link.close()
            server.stop(0).wait()
        assert "Traceback" not in capfd.readouterr().err


class _Garbage(grpc.GenericRpcHandler):
    """Answers everything with three bytes that are no message."""

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        if details.method.endswith("Forward"):
            return grpc.stream_stream_rpc_method_handler(lambda requests, _: (b"\xff" * 3 for _ in requests))
        return grpc.unary_unary_rpc_method_handler(lambda *_: b"\xff" * 3)
