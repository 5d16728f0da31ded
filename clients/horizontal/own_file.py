"""What a client's own file says: which of its rows train, and how the server sees it."""

import json
from hashlib import blake2b

import numpy as np

from vflens.config import ClientConfig
from vflens.protocol.split import drawn_split
from vflens.randomness import secret_from_seed, stream
from vflens.tables.table import PREDICT, TRAIN, Table
from vflens.types import Array, PartyInfo, Role


def split_rows(config: ClientConfig, table: Table) -> tuple[Array, Array]:
    """The rows of ``table`` that train and that are predicted, int32; drawn where it has no split."""
    split = table.split
    if split is None:
        drawn = stream(secret_from_seed(config.seed), "split")
        split = drawn_split(len(table.ids), config.predict_share, drawn)
    train, predict = (np.flatnonzero(split == use).astype(np.int32) for use in (TRAIN, PREDICT))
    return train, predict


def client_info(config: ClientConfig, table: Table) -> PartyInfo:
    """What the server knows of the client with ``table``: columns, classes, and the numbers of rows."""
    names = table.class_names
    train, predict = map(len, split_rows(config, table))
    digests = tuple(_digest(table.categories.get(c.name)) for c in table.columns if table.categories)
    return PartyInfo(
        config.party,
        Role.CLIENT,
        columns=table.columns,
        n_classes=len(names),
        classes=names,
        train_rows=train,
        predict_rows=predict,
        categories=digests,
    )


def _digest(categories: tuple[str, ...] | None) -> str:
    """What tells whether two clients code the same texts; "" of a column without codes."""
    return "" if categories is None else blake2b(json.dumps(categories).encode(), digest_size=8).hexdigest()
