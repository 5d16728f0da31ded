"""The dictionary attack on an alignment: who has a data party's keys and candidate ids tries them all."""

from pathlib import Path

import numpy as np

from vflens.config import PartyConfig, load_party
from vflens.errors import ConfigError, DataError
from vflens.protocol.vertical.alignment import DIGEST_BYTES, digests
from vflens.protocol.vertical.blinding import blinded_ids, blinding_key
from vflens.randomness import secret_from_seed
from vflens.recorded.vertical.lists import Lists
from vflens.storage.json_file import in_words
from vflens.storage.regular import read_text
from vflens.types import Array, Document


def try_ids(folder: Path, config_file: Path, candidates: Path) -> Document:
    """Try the ids in ``candidates``, one a line, against what a coordinator's ``folder`` has of the others.

    The adversary is the coordinator together with the data party of ``config_file``, or with a thief of that
    file: it computes the digest of each candidate with the party's keys. By party: the number of its ids, how
    many of them are ``named`` so, and how many are ``common``, which the alignment itself says.

    Raises:
        ConfigError: not the configuration of a data party of the run.
        StorageError: ``folder`` is not that of a coordinator in lab mode.
        DataError: ``candidates`` cannot be read.
    """
    config, lists = load_party(config_file), Lists.load(folder)
    if config.party not in lists.sent or config.aligns_by != lists.mode:
        raise ConfigError(
            f"{config_file} is not that of a data party of the run in {folder}: give the one it ran with"
        )
    ids = _ids(candidates)
    known, own = _digests(config, lists, ids), _elements(lists.compared[config.party].digests)
    found: Document = {"mode": lists.mode, "candidates": len(ids), "parties": {}}
    for party in lists.sent.keys() - {config.party}:
        sent, compared = (_elements(kind[party].digests) for kind in (lists.sent, lists.compared))
        named = len(known & sent | known & compared)
        found["parties"][party] = {"ids": len(sent), "named": named, "common": len(own & compared)}
    return found


def _digests(config: PartyConfig, lists: Lists, ids: Array) -> set[bytes]:
    """What the keys of ``config`` give of ``ids``, in lab mode."""
    if lists.mode == "psi":
        key = blinding_key(secret_from_seed(config.seed), lists.salts)
        return _elements(blinded_ids(ids, key, lists.salts))
    return _elements(digests(ids, dict(config.secrets())["alignment_key"].encode()))


def _elements(found: bytes) -> set[bytes]:
    return {found[at : at + DIGEST_BYTES] for at in range(0, len(found), DIGEST_BYTES)}


def _ids(file: Path) -> Array:
    """The different ids in ``file``."""
    try:
        lines = {line.strip() for line in read_text(file).splitlines()} - {""}
    except (OSError, ValueError) as error:
        raise DataError(
            f"{file} cannot be read ({in_words(error)}): give a text with an id on each line"
        ) from error
    return np.array(sorted(line.encode() for line in lines), "S")
