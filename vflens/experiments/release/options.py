"""The owner's options, and the mechanism that follows from them and the table's moments."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from vflens.errors import ConfigError
from vflens.names import did_you_mean
from vflens.table_noise.bounded import Bounded
from vflens.table_noise.mechanisms import Gaussian, Laplace, Mechanism, positive
from vflens.table_noise.moments import TableMoments
from vflens.table_noise.parameters import (
    identity_pi,
    lambda_for_error,
    lambda_for_privacy,
    standardising_pi,
)
from vflens.tables.description import PartyFile
from vflens.types import Array
from vflens.words import counted

_SIZES = ("--lambda", "target_mse", "--epsilon")
#: The options that each mechanism reads; others are refused. Without dashes: what ``[release]`` alone has.
TAKES = {
    "gaussian": (*_SIZES, "--pi"),
    "laplace": (*_SIZES, "--pi", "matched"),
    "bounded": ("--lambda", "--pi", "lower", "upper"),
    "correlated": ("m", "theta", "rho"),
}
NEEDS = {"bounded": ("--lambda", "lower", "upper"), "correlated": ("m", "--label")}
MATCHED = ("cramer-rao", "variance")


DROP_ROW = ("drop_row", "drop-row")  # as in a party's file; the second is the older name


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """The flags of ``vflens release``, with the same names; None: absent. ``described``: how the table is
    written, and what it may hold.
    """

    table: Path
    out: Path
    mechanism: str
    label: str | None = None
    ids: tuple[str, ...] = ()
    keep_ids: bool = False
    encode: tuple[str, ...] = ()
    missing: str = "refuse"
    lambda_: float | None = None
    target_mse: float | None = None
    epsilon: float | None = None
    delta: float = 1e-5
    diameter: str | None = None
    pi: str | None = None
    matched: str | None = None
    lower: str | None = None
    upper: str | None = None
    m: float | None = None
    theta: float | None = None
    rho: float | None = None
    seed: str | None = None
    force: bool = False
    excel_safe: bool = False
    verify: bool = False
    described: PartyFile | None = None

    def __post_init__(self) -> None:
        if self.mechanism not in TAKES:
            near = did_you_mean(self.mechanism, TAKES)
            raise ConfigError(f"--mechanism {self.mechanism!r}: choose {', '.join(TAKES)}{near}")
        if self.missing not in ("refuse", *DROP_ROW):
            near = did_you_mean(self.missing, ("refuse", "drop_row"))
            raise ConfigError(f"--missing {self.missing!r}: choose refuse or drop_row{near}")
        if self.matched not in (None, *MATCHED):
            raise ConfigError(f"matched = {self.matched!r}: choose {' or '.join(MATCHED)}")
        if self.seed == "":
            raise ConfigError("--seed is empty, which anyone guesses: give a secret, or leave it out")
        if self.keep_ids and not self.ids:
            raise ConfigError("keep_ids keeps nothing: name the identifiers with --id")
        if self.verify and self.mechanism != "correlated":
            raise ConfigError(
                f"verify solves a classifier again, --mechanism {self.mechanism} has none: leave it out"
            )
        self._check_fit()

    def given(self, option: str) -> Any:
        """The value of ``option``, one of :data:`TAKES`, or None."""
        name = option.removeprefix("--")
        return getattr(self, {"lambda": "lambda_"}.get(name, name))

    @property
    def pi_from_data(self) -> bool:
        """Whether Π is computed from the table."""
        return self.pi == "standardise"

    def span(self, width: int) -> Array | None:
        """The public diameter (p,), or None."""
        return (
            None
            if self.diameter is None
            else positive("diameter", numbers("--diameter", self.diameter, width))
        )

    def as_key(self) -> list[str]:
        """All other inputs of the noise than secret and table, as text."""
        plumbing = {"table", "out", "seed", "force", "excel_safe", "verify", "described"}
        return [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name not in plumbing]

    def _check_fit(self) -> None:
        takes = TAKES[self.mechanism]
        for option in dict.fromkeys(chain.from_iterable(TAKES.values())):
            if self.given(option) is not None and option not in takes:
                raise ConfigError(
                    f"{option} does not go with --mechanism {self.mechanism}: it takes {', '.join(takes)}"
                )
        for option in NEEDS.get(self.mechanism, ()):
            if self.given(option) is None:
                where = "give it" if option.startswith("--") else "state it in [release] of a description"
                raise ConfigError(f"--mechanism {self.mechanism} needs {option}: {where}")
        if self.m is not None and not (np.isfinite(self.m) and self.m > 0):
            raise ConfigError(f"m = {self.m:g}: give a variance, a finite number above 0")
        if self.mechanism in ("gaussian", "laplace"):
            sizes = [option for option in _SIZES if self.given(option) is not None]
            if len(sizes) != 1:
                raise ConfigError(
                    f"{' and '.join(sizes) or 'no size of the noise'} given: choose "
                    "exactly one of --lambda, --epsilon and, in [release] of a description, target_mse"
                )
        if self.epsilon is not None and self.diameter is None:
            raise ConfigError(
                "--epsilon without --diameter: give a public bound on the difference of two rows"
            )
        if self.epsilon is not None and self.pi_from_data:
            raise ConfigError(
                "--epsilon with --pi standardise: noise that follows the private deviations gives no "
                "epsilon, put public scales into a --pi FILE"
            )


def mechanism_for(options: ReleaseOptions, moments: TableMoments, names: Sequence[str]) -> Mechanism:
    """The noise of the i.i.d. mechanisms for a table with these ``moments`` and column ``names``.

    Raises:
        ConfigError: a value is out of range, or its length is not the table's width.
    """
    pi = _pi(options, moments, names)
    width = len(names)
    lam = _lambda(options, pi, width)
    if options.mechanism == "gaussian":
        return Gaussian(pi, lam)
    if options.mechanism == "laplace":
        return Laplace(pi, lam, "variance" if options.matched == "variance" else "cramer_rao")
    return Bounded(
        numbers("lower", options.lower or "", width), numbers("upper", options.upper or "", width), pi, lam
    )


def numbers(option: str, text: str, width: int) -> Array:
    """``text`` as ``width`` numbers: one for all columns, or one each with commas between them.

    Raises:
        ConfigError: it is neither.
    """
    try:
        values = np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise ConfigError(f"{option} {text!r}: give a number, or numbers with commas between them") from None
    if len(values) not in (1, width):
        raise ConfigError(
            f"{option} has {counted(len(values), 'number')}, the table {counted(width, 'column')}: give one "
            "each, or one for all"
        )
    return np.broadcast_to(values, (width,)).copy()


def _lambda(options: ReleaseOptions, pi: Array, width: int) -> float:
    halved = options.mechanism == "laplace" and options.matched == "variance"
    if options.target_mse is not None:  # variance-matched Laplace noise has half of the Gaussian's bound
        return lambda_for_error(pi, options.target_mse * (2 if halved else 1))
    span = options.span(width)
    if options.epsilon is not None and span is not None:
        return lambda_for_privacy(
            pi,
            epsilon=options.epsilon,
            delta=options.delta,
            diameter=span,
            mechanism="laplace" if options.mechanism == "laplace" else "gaussian",
            matched="variance" if halved else "cramer_rao",
        )
    return float(options.lambda_ or 0.0)


def _pi(options: ReleaseOptions, moments: TableMoments, names: Sequence[str]) -> Array:
    if options.pi in (None, "identity"):
        return identity_pi(len(names))
    if options.pi == "standardise":
        constant = [n for n, s in zip(names, moments.deviation, strict=True) if s == 0]
        if constant:
            raise ConfigError(
                f"--pi standardise: column {constant[0]!r} is constant, noise in proportion to it would be "
                "none: remove the column, or choose --pi identity"
            )
        return standardising_pi(moments.deviation)
    return _pi_file(Path(str(options.pi)), len(names))


def _pi_file(path: Path, width: int) -> Array:
    try:
        text = path.read_text(encoding="utf-8").replace(",", " ")
        values = np.array(
            [[float(cell) for cell in line.split()] for line in text.splitlines() if line.strip()]
        )
    except OSError as error:
        raise ConfigError(
            f"--pi {str(path)!r} cannot be read ({error.strerror}): give identity, standardise or a file"
        ) from error
    except ValueError:
        raise ConfigError(
            f"--pi {str(path)!r}: put numbers with commas or spaces between them on every line, as many on "
            "each"
        ) from None
    if values.size == width:
        return values.ravel()
    if values.shape != (width, width):
        raise ConfigError(
            f"--pi {str(path)!r} holds {counted(values.shape[0], 'line')} of "
            f"{counted(values.size // max(1, len(values)), 'number')}: "
            f"{counted(width, 'column needs', many='columns need')} {counted(width, 'number')}, or "
            f"{counted(width, 'line')} of {width}"
        )
    return values
