"""Errors over gRPC: the class travels as trailing metadata, the sentence as details. The caller raises the
same class, says whose sentence it is, and ends with an exit code that the other party cannot choose.
"""

from collections.abc import Mapping
from typing import Any

import grpc

from vflens import errors

ERROR_KEY = "vflens-error"
_TOO_MANY_CALLS = "Concurrent RPC limit exceeded!"  # the library's text, before any handler runs
_WRITTEN_TOO_LATE = "Internal error from Core"  # the library's text for a write to a call that has just ended

#: The status of each class for a generic gRPC client.
CODES: Mapping[type[errors.VflensError], grpc.StatusCode] = {
    errors.ConfigError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.DataError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.AlignmentError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.ProtocolError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.StateError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.AccessError: grpc.StatusCode.PERMISSION_DENIED,
    errors.KnowledgeError: grpc.StatusCode.PERMISSION_DENIED,
    errors.PluginError: grpc.StatusCode.UNIMPLEMENTED,
    errors.DefenseError: grpc.StatusCode.ABORTED,
    errors.UnavailableError: grpc.StatusCode.UNAVAILABLE,
    errors.StorageError: grpc.StatusCode.RESOURCE_EXHAUSTED,
}


def from_rpc(error: grpc.RpcError, peer: str, seconds: float) -> errors.VflensError:
    """The error that ``peer`` raised, or the one for a missing answer."""
    metadata: Any = error.trailing_metadata() or ()
    trailing = dict(metadata)
    details = errors.from_peer(error.details() or "")
    if ERROR_KEY in trailing:
        refusal = errors.by_name(str(trailing[ERROR_KEY]))(f"party {peer!r}: {details}")
        if not isinstance(refusal, errors.UnavailableError):  # it only passes on that a third party is away
            refusal.exit_code = errors.RefusedError.exit_code
        return refusal
    code = error.code()
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return errors.UnavailableError(
            f"party {peer!r} did not answer within {seconds:g} s: raise limits.call_seconds or look at its "
            "log"
        )
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and details == _TOO_MANY_CALLS:
        return errors.UnavailableError(
            f"party {peer!r} has more calls open than it answers: look at its log for who calls, then ask "
            "again"
        )
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return errors.ProtocolError(
            f"a message to or from {peer!r} is over the limit ({details}): raise limits.message_mib at both, "
            "or lower the batch"
        )
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED) or details == _WRITTEN_TOO_LATE:
        return errors.UnavailableError(
            f"party {peer!r} cannot be reached ({details}): it stopped, or its address is wrong"
        )
    return errors.VflensError(f"party {peer!r} failed: {code.name if code else 'unknown'}: {details}")
