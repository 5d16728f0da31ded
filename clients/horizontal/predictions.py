"""What a client's model says of its own prediction rows, for its owner."""

from pathlib import Path

from vflens.clients.operator import numbered
from vflens.config import ClientConfig
from vflens.errors import StateError
from vflens.protocol.acts import Answers
from vflens.storage.files import load_arrays, save_arrays
from vflens.tables.files import read_party_table
from vflens.tables.order import load_order
from vflens.types import Array

_FILE = "predictions.npz"


def save_predictions(folder: Path, rows: Array, log_scores: Array) -> None:
    """Write the scores float64 (m, k) of ``rows`` int32 (m,) of the run in ``folder``.

    Raises:
        StorageError: it cannot be written.
    """
    save_arrays(folder / _FILE, {"rows": rows, "log_scores": log_scores})


def own_predictions(config: ClientConfig, rows: str) -> Answers:
    """The scores of prediction ``rows`` ("all", or numbers and ranges counted from 0) of its last run.

    Raises:
        StateError: no run has ended in its folder.
        StorageError: the file is damaged, or the run had another table.
        ConfigError: the rows are wrong.
    """
    if not (config.out / _FILE).exists():
        raise StateError(
            f"client {config.party!r} has no predictions in {config.out}: it makes them at the end of a run, "
            "start one"
        )
    saved, table = load_arrays(config.out / _FILE), read_party_table(config.data)
    chosen = numbered(rows, len(saved["rows"]))
    places = load_order(config.out, table)[saved["rows"][chosen]]
    ids = tuple(i.decode() for i in table.ids[places])
    return Answers(chosen, ids, table.class_names, saved["log_scores"][chosen])
