"""Seeds and shares of masks as messages, of protected training."""

from typing import Any

import numpy as np

from vflens.errors import ProtocolError
from vflens.protocol import mask_acts
from vflens.protos import vfl_pb2 as pb
from vflens.words import counted


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
