"""Whether a folder's unfinished run has a configuration's settings: ``settings.json`` holds their digests."""

import json
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vflens.config import PartyConfig
from vflens.errors import ConfigError, StorageError
from vflens.storage.files import write_whole
from vflens.storage.json_file import in_words, read_as

_version = cache(version)  # read anew for each of many clients it takes 2 ms
#: Settings that change no result of a run: places and deadlines.
_FREE = {"resume", "limits", "address", "insecure", "out", "tls", "metrics"}


def note_settings(config: PartyConfig) -> None:
    """Write the digests of the settings of ``config`` into its folder, when its run begins.

    Raises:
        StorageError: they cannot be written.
    """
    write_whole(_file(config.out), json.dumps(_digests(config)).encode())


def check_settings(config: PartyConfig) -> None:
    """Refuse to go on in the folder of ``config`` with a run of other settings, or of another VFLens.

    Raises:
        ConfigError: names the setting.
        StorageError: the folder does not say which settings its run has.
    """
    try:
        began = read_as(dict[str, str], _file(config.out))
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{_file(config.out)} does not say which settings the run has ({in_words(error)}): begin a new "
            "run, without --resume"
        ) from error
    now = _digests(config)
    changed = next((name for name in {**began, **now} if began.get(name) != now.get(name)), None)
    if changed is not None:
        raise ConfigError(
            f"{changed} of party {config.party!r} is not that of the run in {config.out}: bring it back as "
            "it was, or begin a new run, without --resume"
        )


def _file(folder: Path) -> Path:
    return folder / "settings.json"


def _digests(config: PartyConfig) -> dict[str, str]:
    settings = {
        "the version of vflens": _version("vflens"),
        **config.model_dump(mode="json", exclude=_FREE),
    }
    settings["peers"] = [[peer.name, peer.role] for peer in config.peers]
    if "data" in settings:
        del settings["data"]["file"]  # the table has a digest of its own, and may move
    return {name: _digest(value) for name, value in settings.items()}


def _digest(value: Any) -> str:
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()
