"""One servicer for every act: authenticate the caller, decode, delegate, encode, map errors. Nothing else.

The metadata of each call and of each stream's opening holds the caller's name and token. The party checks
:data:`vflens.protocol.access.Access` for its permissions. Methods that are no act do not exist. Unknown
callers are refused before their request arrives: the library keeps a thread waiting for each request, and
strangers who open calls without a request could hold all threads. For the same reason a known caller has a
limit of open calls. Over TLS the caller's certificate must name it too, before its request is read.
"""

from __future__ import annotations

import hmac
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

from google.protobuf.message import DecodeError

from vflens.errors import AccessError, ProtocolError, StateError, UnavailableError, VflensError, shortened
from vflens.protocol.access import check_access
from vflens.protocol.acts import Act
from vflens.protocol.link import Party
from vflens.types import Role
from vflens.wire.channel import INCARNATION_KEY, PARTY_KEY, TOKEN_KEY, grpc
from vflens.wire.messages import RPCS, Rpc
from vflens.wire.parts import check_parts
from vflens.wire.status import CODES, ERROR_KEY
from vflens.words import counted

if TYPE_CHECKING:
    from vflens.services.metrics_page import Calls
    from vflens.wire.tls.identity import Identity
    from vflens.wire.tls.subject import Subject

Credentials = Mapping[str, tuple[Role, str]]
CALLS = 6  # open calls of one caller: a server has threads for all of its callers (vflens.services.hall)
# characters of a refusal, each up to 12 bytes on its way: gRPC has 8 KiB for trailers, and it may repeat what
# a caller sent
_MOST = 600
_LOGGED = 1000  # logged refusals; of later ones a few: refused callers must not fill the disk


Turn: TypeAlias = AbstractContextManager[object]
ANY_TIME: Turn = nullcontext()


class Caller(NamedTuple):
    """Who calls: its name, its role, and the number of its restarts."""

    name: str
    role: Role
    incarnation: int


class Servicer(grpc.GenericRpcHandler):
    """Serves ``party``; ``credentials`` has the role and the token of every known caller.

    With an ``identity`` the caller's certificate must name the party that it claims to be. ``calls`` counts
    for a page of metrics. ``turn`` is held while an act is performed.
    """

    def __init__(
        self,
        party: Party,
        credentials: Credentials,
        log: Any,
        identity: Identity | None = None,
        calls: Calls | None = None,
        *,
        turn: Turn = ANY_TIME,
    ) -> None:
        self._party, self._credentials, self._log, self._calls = party, credentials, log, calls
        self._turn = turn
        self.acting = self.ended = False  # one that has ended refuses all acts
        self._certified: Mapping[str, frozenset[Subject]] | None = None
        if identity is not None:
            self._certified = {name: identity.accepted(name, role) for name, (role, _) in credentials.items()}
        self._refusals = itertools.count(1)
        self._open: Counter[str] = Counter()
        self._lock = threading.Lock()
        # All acts of every party: unknown callers get our error text, not UNIMPLEMENTED, as in process.
        self._rpcs = {rpc.path: (act, rpc) for act, rpc in RPCS.items()}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of a method; None (UNIMPLEMENTED) for methods that are no act."""
        found = self._rpcs.get(handler_call_details.method)
        if found is None:
            return None
        act, rpc = found
        try:
            caller = self._identify(dict(handler_call_details.invocation_metadata or ()), act)
        except VflensError as error:
            return self.refusal(error)
        # Requests stay bytes here: our error answers a malformed one, not a traceback of the library.
        # Single calls are streams of one request: for other calls the library gives no sign of a missing
        # request.
        if rpc.stream:
            return grpc.stream_stream_rpc_method_handler(
                self._answered(rpc, caller), None, rpc.reply.SerializeToString
            )
        return grpc.stream_unary_rpc_method_handler(
            self._answered_once(rpc, caller), None, rpc.reply.SerializeToString
        )

    def refusal(self, error: VflensError) -> Any:
        """The handler of a call that is refused for ``error``, a stream for every method: the library waits
        for no request.
        """
        return grpc.stream_stream_rpc_method_handler(lambda requests, context: self._abort(context, error))

    def _answered(
        self, rpc: Rpc, caller: Caller
    ) -> Callable[[Iterator[bytes], grpc.ServicerContext], Iterator[Any]]:
        def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Any]:
            try:
                self._check_certificate(context, caller.name)
                with self._counted(caller.name):
                    for request in requests:
                        yield self._perform(rpc, request, caller)
                        self._settle()  # the library asks for the next reply after sending this one
            except Exception as error:
                self._abort(context, error)

        return answer

    def _answered_once(
        self, rpc: Rpc, caller: Caller
    ) -> Callable[[Iterator[bytes], grpc.ServicerContext], Any]:
        def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
            try:
                self._check_certificate(context, caller.name)
                with self._counted(caller.name):
                    reply = self._perform(rpc, _only(requests, rpc), caller)
                    self._settle()  # no later reply could carry the error
                    return reply
            except Exception as error:
                self._abort(context, error)

        return answer

    @contextmanager
    def _counted(self, caller: str) -> Iterator[None]:
        """Count one more open call of ``caller``."""
        with self._lock:
            if self._open[caller] >= CALLS:
                raise StateError(
                    f"caller {caller!r} has {CALLS} calls open at {self._party.name!r}: wait for their "
                    "answers"
                )
            self._open[caller] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[caller] -= 1

    def _perform(self, rpc: Rpc, request: bytes, caller: Caller) -> Any:
        with self._own_turn():
            if self.ended:
                raise UnavailableError(f"party {self._party.name!r} has ended: look at its log")
            return self._performed(rpc, request, caller)

    def _settle(self) -> None:
        with self._own_turn():
            if not self.ended:
                self._party.settle()

    @contextmanager
    def _own_turn(self) -> Iterator[None]:
        """Say that the party acts before it looks whether it has ended: who ends it does the reverse."""
        with self._turn:
            self.acting = True
            try:
                yield
            finally:
                self.acting = False

    def _performed(self, rpc: Rpc, request: bytes, caller: Caller) -> Any:
        began, act = time.perf_counter(), decode_request(rpc, request)
        self._party.fence.admit(caller.name, caller.incarnation)
        reply = rpc.encode_reply(self._party.perform(act, caller.name, caller.role))
        if self._calls is not None:
            seconds = time.perf_counter() - began
            self._calls.answered(type(act).__name__, len(request), reply.ByteSize(), seconds)
        return reply

    def _identify(self, sent: Mapping[str, Any], act: type[Act[Any]]) -> Caller:
        """The caller, who may ask for ``act``, from its metadata ``sent``.

        Raises:
            AccessError: it may not, or its token is wrong; ProtocolError: it does not count its restarts.
        """
        name = str(sent.get(PARTY_KEY, ""))
        role, token = self._credentials.get(name, (Role.OPERATOR, ""))
        if not token or not hmac.compare_digest(token.encode(), str(sent.get(TOKEN_KEY, "")).encode()):
            raise AccessError(
                f"caller {name!r} is no peer of {self._party.name!r}, or its token is another: compare both "
                "configurations"
            )
        check_access(act, name, role, self._party.name, self._party.role, access=self._party.access)
        return Caller(name, role, _incarnation(name, sent.get(INCARNATION_KEY, "0")))

    def _check_certificate(self, context: grpc.ServicerContext, caller: str) -> None:
        """Bind the connection to ``caller`` before its request is read; the library shows the certificate
        only here.

        Raises:
            AccessError: the certificate names another party, or another role; or it has ended.
        """
        if self._certified is None:
            return
        from vflens.wire.tls.caller import caller_of

        accepted = self._certified[caller]
        if caller_of(context) not in accepted:
            raise AccessError(
                f"caller {caller!r} at {self._party.name!r} shows the certificate of another: it must "
                f"name {' or '.join(sorted(subject.uri for subject in accepted))}"
            )

    def _abort(self, context: grpc.ServicerContext, error: Exception) -> NoReturn:
        if not isinstance(error, VflensError):
            if not context.is_active():
                context.abort(grpc.StatusCode.CANCELLED, "the caller left")
            self._log.error("unexpected", error=f"{type(error).__name__}: {error}", exc_info=error)
            error = VflensError(
                f"unexpected {type(error).__name__} at {self._party.name!r}: see its events.jsonl"
            )
        else:
            self._note(error)
        if self._calls is not None:
            self._calls.refused()
        context.set_trailing_metadata(((ERROR_KEY, type(error).__name__),))
        context.abort(CODES.get(type(error), grpc.StatusCode.INTERNAL), shortened(str(error), _MOST))

    def _note(self, error: VflensError) -> None:
        """Log a refusal: each of the first, then the 1024th, 2048th, 4096th, …"""
        number = next(self._refusals)
        if number <= _LOGGED or number.bit_count() == 1:
            kind = type(error).__name__
            self._log.warning("refused", error=shortened(str(error), _MOST), kind=kind, number=number)


def _incarnation(name: str, sent: Any) -> int:
    """The number of restarts that the caller ``name`` has ``sent``."""
    text = str(sent)
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ProtocolError(
            f"caller {name!r} has no whole number of restarts: use a peer of the same version"
        )
    return int(text)


def _only(requests: Iterator[bytes], rpc: Rpc) -> bytes:
    """The request of a single call.

    Raises:
        ProtocolError: the caller closed the call without a request, which is no empty message.
    """
    request = next(requests, None)
    if request is None:
        raise ProtocolError(f"a call of {rpc.path} was closed without a request: send exactly one")
    return request


def decode_request(rpc: Rpc, data: bytes) -> Act[Any]:
    """The act in ``data``.

    Raises:
        ProtocolError: not the message of this rpc, or one that breaks its contract.
    """
    check_parts(data, rpc.request)
    try:
        act: Act[Any] = rpc.decode(rpc.request.FromString(data))
    except DecodeError:
        raise ProtocolError(
            f"{counted(len(data), 'byte is', many='bytes are')} no {rpc.request.__name__}: use a peer of "
            "the same version"
        ) from None
    return act
