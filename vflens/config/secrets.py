"""Protection of the secrets in a party's configuration: against guesses, and against other users."""

import math
import shlex
from collections.abc import Iterable
from pathlib import Path

from vflens.errors import ConfigError
from vflens.storage.private import exposure

EXAMPLE = "example-"  # prefix of secrets in the example configurations
BITS = 128
_DIFFERENT = 8  # different characters; 32 random hexadecimal digits have fewer once in 25 million times


def is_weak(secret: str) -> bool:
    """Whether ``secret`` must have fewer than 128 random bits.

    It must if it is too short (a digit counts as log2(10) bits, any other character as a hexadecimal digit, 4
    bits), has few different characters, no digit, or repeats one text. No more can be tested: a sentence with
    a year passes and is still weak.
    """
    bits = len(secret) * (math.log2(10) if secret.isdecimal() else 4)
    worded = not any(
        map(str.isdecimal, secret)
    )  # so are 32 random hexadecimal digits once in 40 million million times
    return bits < BITS or len(set(secret)) < _DIFFERENT or worded or secret in (secret * 2)[1:-1]


def check_secrets(file: Path, secrets: Iterable[tuple[str, str]]) -> None:
    """Refuse weak secrets (field, value), and all secrets in a ``file`` that other users can open.

    Secrets of the examples are public; only addresses on one machine may use them.

    Raises:
        ConfigError: names the command that replaces them.
    """
    own = [(name, value) for name, value in secrets if not value.startswith(EXAMPLE)]
    weak = ", ".join(name for name, value in own if is_weak(value))
    if weak:
        raise ConfigError(
            f"{file}: {weak} can be guessed, {BITS} random bits are needed: draw better with: vflens secrets "
            f"init {shlex.quote(str(file))}"
        )
    if own and (open_to := exposure(file, 0o600)):
        raise ConfigError(f"{file} holds secrets ({', '.join(name for name, _ in own)}) and {open_to}")
