"""What a coordinator got of the parties' row ids before it aligned them; in lab mode it keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

import numpy as np

from vflens.errors import StorageError
from vflens.protocol.vertical.alignment import DIGEST_BYTES
from vflens.protocol.vertical.row_ids import Identities
from vflens.storage.files import load_arrays, save_arrays
from vflens.types import AlignMode, Array

_FILE, _SENT, _COMPARED = "alignment.npz", "sent ", "compared "


@dataclass(frozen=True, eq=False)
class Lists:
    """The digests of every data party by name as it ``sent`` them, and those that are ``compared``: with mode
    "psi" all parties have blinded them.
    """

    mode: AlignMode
    salts: bytes
    sent: Mapping[str, Identities]
    compared: Mapping[str, Identities]

    def save(self, folder: Path) -> None:
        """Write all but splits into the coordinator's ``folder``.

        Raises:
            StorageError: it cannot be written.
        """
        arrays = {"mode": np.array(self.mode), "salts": _rows(self.salts)}
        for kind, lists in ((_SENT, self.sent), (_COMPARED, self.compared)):
            arrays |= {kind + party: _rows(found.digests) for party, found in lists.items()}
        save_arrays(folder / _FILE, arrays)

    @classmethod
    def load(cls, folder: Path) -> Lists:
        """Those that the coordinator kept in its ``folder``, without splits.

        Raises:
            StorageError: it kept none, or the file is damaged.
        """
        file = folder / _FILE
        arrays = load_arrays(file, remedy="give the coordinator's folder of a run with lab = true")
        mode = str(arrays.pop("mode", ""))
        if mode not in get_args(AlignMode) or not all(map(_is_list, arrays.values())):
            raise StorageError(f"{file} holds no digests of row ids: use a folder that nobody changed")
        salts = arrays.pop("salts", _rows(b"")).tobytes()
        sent, compared = (
            {n.removeprefix(k): Identities(a.tobytes(), None) for n, a in arrays.items() if n.startswith(k)}
            for k in (_SENT, _COMPARED)
        )
        return cls(cast(AlignMode, mode), salts, sent, compared)


def _rows(digests: bytes) -> Array:
    return np.frombuffer(digests, np.uint8).reshape(-1, DIGEST_BYTES)


def _is_list(array: Array) -> bool:
    return array.dtype == np.uint8 and array.shape[1:] == (DIGEST_BYTES,)
