"""What keeps the secrets of a party's configuration secret: nobody can guess them, nobody else reads the
file.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from pathlib import Path

from vflens.errors import ConfigError
from vflens.storage.private import exposure

EXAMPLE = "example-"  # how the secrets of the example configurations begin
BITS = 128
_DIFFERENT = 8  # characters; 32 random hexadecimal digits have fewer once in 25 million times


def is_weak(secret: str) -> bool:
    """Whether ``secret`` cannot have 128 random bits.

    That is so where it is too short (a digit counts as log2(10) bits, any other character as a hexadecimal
    digit, 4 bits), has few different characters, no digit, or repeats one text. The rest cannot be seen: a
    sentence with a year passes and is weak all the same.
    """
    bits = len(secret) * (math.log2(10) if secret.isdecimal() else 4)
    worded = not any(
        map(str.isdecimal, secret)
    )  # 32 random hexadecimal digits are once in 40 million million times
    return bits < BITS or len(set(secret)) < _DIFFERENT or worded or secret in (secret * 2)[1:-1]


def check_secrets(file: Path, secrets: Iterable[tuple[str, str]]) -> None:
    """Refuse weak secrets (name of the field, value), and any in a ``file`` that other users can open.

    Those of the examples are public anyway: addresses on one machine are all that they are accepted for.

    Raises:
        ConfigError: naming the command that mends it.
    """
    own = [(name, value) for name, value in secrets if not value.startswith(EXAMPLE)]
    weak = ", ".join(name for name, value in own if is_weak(value))
    if weak:
        raise ConfigError(
            f"{file}: {weak} can be guessed, {BITS} random bits are due: draw better with: vflens secrets "
            f"init {shlex.quote(str(file))}"
        )
    if own and (open_to := exposure(file, 0o600)):
        raise ConfigError(f"{file} holds secrets ({', '.join(name for name, _ in own)}) and {open_to}")
