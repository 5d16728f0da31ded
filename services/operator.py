"""The operator of an active party: asks the running process for scores, reads row ids from its own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from services.folder import state_of
from vfl.acts import Query
from vfl.config import OPERATOR, ActiveConfig, load_party
from vfl.errors import ConfigError, StateError, UnavailableError
from vfl.federation import Federation, load_order
from vfl.partytable import read_party_table
from vfl.types import Array
from vfl.wire.grpc_link import GrpcLink


def ask(config_file: Path, rows: str) -> list[dict[str, Any]]:
    """Scores of prediction ``rows`` ("all", or numbers and ranges counted from 0) from the running federation.

    Raises:
        ConfigError: not an active party's configuration, no operator_token, rows that are no such list.
        StateError: the party has no aligned run yet.
        StorageError: its table has changed since: ids would name others.
        UnavailableError: it does not run, or not in this folder.
    """
    config = load_party(config_file)
    if not isinstance(config, ActiveConfig) or config.operator_token is None:
        raise ConfigError(
            f"{config_file} is not an active party's configuration with an operator_token: predictions are asked there"
        )
    federation = _aligned(config)
    numbers = parse_rows(rows, len(federation.predict))
    positions = federation.predict[numbers]
    state = state_of(config.out)
    if state not in ("running", ""):  # another run may answer at this address, about other rows
        raise UnavailableError(
            f"party {config.party!r} does not run in {config.out}, its run there is {state}: start it, or give the configuration in the folder of the one that runs"
        )
    link = GrpcLink(
        config.party, config.address, caller=OPERATOR, token=config.operator_token, limits=config.limits
    )
    try:
        scores = np.exp(link.call(Query(positions)).tensor("scores"))
    finally:
        link.close()
    return _answers(config, numbers, positions, scores)


def _aligned(config: ActiveConfig) -> Federation:
    """The federation of the party's run: absent until its rows are aligned."""
    if not (config.out / "federation.json").exists():
        raise StateError(
            f"party {config.party!r} has no prediction rows yet: start all parties, and ask when the coordinator serves predictions"
        )
    return Federation.load(config.out)


def parse_rows(text: str, count: int) -> Array:
    """ "all", or numbers and ranges such as "0-9,17", as distinct positions below ``count``.

    Raises:
        ConfigError: anything else.
    """
    if text == "all":
        return np.arange(count)
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not part.isascii() or not first.isdecimal() or (dash and not last.isdecimal()):
            raise ConfigError(f"--rows {text!r}: give all, or numbers and ranges such as 0-9,17")
        end = int(last or first)
        if end >= count:
            raise ConfigError(f"--rows {text!r}: there are {count} prediction rows, counted from 0")
        found.update(range(int(first), end + 1))
    if not found:
        raise ConfigError(f"--rows {text!r} names no row: a range goes from the lower to the higher number")
    return np.array(sorted(found))


def _answers(config: ActiveConfig, numbers: Array, positions: Array, scores: Array) -> list[dict[str, Any]]:
    table = read_party_table(config.data)
    ids = table.ids[load_order(config.out, table)[positions]]
    names = table.class_names
    return [
        {
            "row": int(n),
            "id": i.decode(),
            "class": names[int(s.argmax())],
            "scores": dict(zip(names, s.tolist(), strict=True)),
        }
        for n, i, s in zip(numbers, ids, scores, strict=True)
    ]
