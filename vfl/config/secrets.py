"""What keeps the secrets of a party's configuration secret: nobody else reads its file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from vfl.errors import ConfigError
from vfl.private import opened

EXAMPLE = "example-"  # how the secrets of the example configurations begin


def check_kept(file: Path, secrets: Iterable[tuple[str, str]]) -> None:
    """Refuse secrets (name of the field, value) in a ``file`` that other users can open; those of the examples are public anyway.

    Raises:
        ConfigError: naming the command that closes it.
    """
    own = [name for name, value in secrets if not value.startswith(EXAMPLE)]
    if own and (said := opened(file, 0o600)):
        raise ConfigError(f"{file} holds secrets ({', '.join(own)}) and {said}")
