"""What a vertical run alone sends: salts and digests of row ids, and seeds and shares of masks."""

from typing import Any, cast, get_args

import numpy as np

from vflens.errors import ProtocolError, from_peer
from vflens.protocol import mask_acts
from vflens.protocol.vertical.row_ids import Identities, Salted
from vflens.protos import vfl_pb2 as pb
from vflens.types import AlignMode
from vflens.words import counted


def decode_salted(message: pb.Salted) -> Salted:
    """The salt, the mode and the number of ids.

    Raises:
        ProtocolError: no such mode, or fewer than no ids.
    """
    if message.mode not in get_args(AlignMode) or message.ids < 0:
        raise ProtocolError(
            f"a party aligns {message.ids} ids by {from_peer(message.mode)!r}: use the same version "
            "everywhere"
        )
    return Salted(message.salt, cast(AlignMode, message.mode), message.ids)


def encode_identities(reply: Identities) -> pb.Identities:
    """Digests, and the split of their rows if there is one."""
    split = None if reply.split is None else reply.split.astype(np.uint8).tobytes()
    return pb.Identities(digests=reply.digests, split=split)


def decode_identities(message: pb.Identities) -> Identities:
    """The inverse of :func:`encode_identities`; its caller checks sizes."""
    split = np.frombuffer(message.split, np.uint8) if message.HasField("split") else None
    return Identities(message.digests, split)


def _decode_shares(message: pb.MaskShares) -> mask_acts.MaskShares:
    if len(message.numbers) % 8:
        raise ProtocolError(
            f"shares of masks of {counted(len(message.numbers), 'byte')}: 8 bytes a number are due"
        )
    return mask_acts.MaskShares(np.frombuffer(message.numbers, "<u8"))


SEED: dict[str, Any] = {
    "reply": pb.Seeded,
    "encode_reply": lambda reply: pb.Seeded(seed=reply.seed),
    "decode_reply": lambda message: mask_acts.Seeded(message.seed),
}
DEAL: dict[str, Any] = {
    "reply": pb.MaskShares,
    "encode_reply": lambda reply: pb.MaskShares(numbers=reply.numbers.astype("<u8", copy=False).tobytes()),
    "decode_reply": _decode_shares,
}
