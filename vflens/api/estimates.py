"""``vl.estimate``: an estimator on plain arrays; and what attacks estimated in a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vflens import attacks, types
from vflens.api.html import paragraphs, table
from vflens.errors import ConfigError, DataError, StorageError
from vflens.experiments.outcome.words import number
from vflens.experiments.results.folders import PartyRun
from vflens.plugins.attack import LinearAttack
from vflens.registry import ATTACKS
from vflens.storage.files import load_arrays
from vflens.types import Array, Moments, Role
from vflens.words import counted

if TYPE_CHECKING:
    from vflens.verification.rows import Verification

_SHOWN = 8  # rows, columns


@dataclass(frozen=True, eq=False)
class Estimate(types.Estimate):
    """``values`` float64 (N, d), columns scaled to [0, 1], as attack ``attack`` estimates them for ``rows``.

    ``status`` (N,) is the :class:`vflens.types.RowStatus` of each row. ``extras`` are arrays per row, such as
    the "residual" ‖A x̂ − b‖, the "gap" and the "radius" that certify an estimate (``docs/estimators.md``).
    ``params`` and ``moments`` are those given to :func:`estimate`; None in an estimate of a run. ``read_as``
    says what given scores were, where they were no probabilities in the order of the weights.
    """

    attack: str = ""
    params: Mapping[str, Any] | None = None
    moments: Moments | None = None
    read_as: str = ""

    def _repr_html_(self) -> str:
        from vflens.experiments.offline.command import impossible, states_of

        states = ", ".join(f"{n:,} {s}" for s, n in states_of(self.status).items())
        n, d = self.values.shape
        size = f"{self.attack or 'an attack'}: {counted(n, 'row', ',')} × {counted(d, 'column', ',')}"
        part = self.values[:_SHOWN, :_SHOWN]
        header = ["row", *(f"x{j + 1}" for j in range(part.shape[1])), "status"]
        rows = [
            [str(row), *map(number, values), status]
            for row, values, status in zip(self.rows.tolist(), part.tolist(), self.status, strict=False)
        ]
        shades = [[0.0, *(1 - v for v in values.clip(0, 1)), 0.0] for values in part]
        doubt = impossible({"status": states_of(self.status), "read_as": self.read_as})
        return paragraphs(*doubt.splitlines(), f"{size}; {states}") + table(header, rows, shades)


def estimate(
    name: str | type[LinearAttack],
    A: npt.ArrayLike | Mapping[str, npt.ArrayLike],
    b: npt.ArrayLike | None = None,
    *,
    rng: np.random.Generator | int | None = None,
    moments: Moments | None = None,
    **params: Any,
) -> Estimate:
    """The estimate of x in A x = b, 0 ≤ x ≤ 1, by the linear attack ``name``; no federation is needed.

    A dict of arrays alone stands for the file of ``vflens attack --arrays`` (``docs/others.md``): the same
    numbers come back as by that command.

    Args:
        name: a linear attack, such as "half_star" or "rcc2", or the class of your own; with a dict also
            "instance_spaces" or "histograms".
        A: (m, d), shared by all rows; m may be 0. Or the dict.
        b: (N, m), one right-hand side for each row; not with a dict.
        rng: a generator, or the seed of one, for attacks that draw; None: fresh entropy.
        moments: mean (d,) and covariance (d, d) of x, for attacks that need them.
        params: the attack's parameters.

    Raises:
        PluginError: an unknown name, or an attack that is not linear.
        ConfigError: an unknown parameter, a value out of its range, or a wrong ``rng``; arguments that do not
            go together.
        DataError: an array of the dict lacks, is unknown, or wrong.
        ProtocolError: arrays that are not finite, too large, or do not fit each other.
        KnowledgeError: the attack needs moments, and none are given.
    """
    with nullcontext(name) if isinstance(name, str) else ATTACKS.entered(name) as attack:
        if isinstance(A, Mapping):
            _check_alone(b, rng, moments)
            return Estimate(**_of_arrays(attack, A, params), attack=attack)
        if b is None:
            raise ConfigError("b is missing: give A and b, or a dict of the arrays that were seen")
        found = attacks.estimate(attack, A, b, rng=rng, moments=moments, **params)
    return Estimate(**vars(found), attack=attack, params=params, moments=moments)


def _check_alone(b: object, rng: object, moments: object) -> None:
    for name, value in (("b", b), ("rng", rng), ("moments", moments)):
        if value is not None:
            raise ConfigError(f"{name} does not go with a dict of arrays: leave it out, or give an array A")


def _of_arrays(
    attack: str, given: Mapping[str, npt.ArrayLike], params: Mapping[str, Any]
) -> Mapping[str, Any]:
    from vflens.experiments.offline.given_arrays import estimate_arrays

    arrays = {key: _array(key, a) for key, a in given.items()}
    found, kept = estimate_arrays("the dict", arrays, attack, params)
    return {**vars(found), "read_as": str(kept.get("read_as", ""))}


def _array(key: str, value: npt.ArrayLike) -> Array:
    try:
        found: Array = np.asarray(value)
    except ValueError:  # rows of different lengths
        raise DataError(f"{key!r} of the dict is no array: give rows of one length") from None
    return found


def verify(
    estimate: Estimate, A: npt.ArrayLike, b: npt.ArrayLike, *, rows: int = 20, seed: int = 0
) -> Verification:
    """Rows of ``estimate``, solved again from the attack's definition by CVXPY (the extra ``verify``).

    Args:
        estimate: of :func:`estimate`.
        A: (m, d), as given to it.
        b: (N, m), as given to it.
        rows: at most so many are drawn.
        seed: of the draw.

    Returns:
        how far the two answers are apart, row by row; as text the largest difference beside the certificate.

    Raises:
        ConfigError: CVXPY is not installed; no convex program defines the attack; an estimate of a run, of
            other arrays, or of random starts.
        ProtocolError: arrays as :func:`estimate` refuses them.
    """
    from vflens.verification import rows as verification

    if not isinstance(estimate, Estimate) or estimate.params is None:
        raise ConfigError(
            "verify takes an estimate of vl.estimate(name, A, b): for one of a run use "
            "`vflens attack … --verify`"
        )
    for name, value, least in (("rows", rows, 1), ("seed", seed, 0)):
        if not isinstance(value, int) or value < least:
            raise ConfigError(f"{name} = {value!r}: give a whole number from {least}")
    A, b = attacks.checked_system(A, b)
    if estimate.values.shape != (len(b), A.shape[1]):
        raise ConfigError(
            f"the estimate has shape {estimate.values.shape}, A and b ({len(b)}, {A.shape[1]}): give "
            "those that it was made of"
        )
    solve = verification.definition(estimate.attack, estimate.params, estimate.moments)
    places = verification.sample(estimate, rows, np.random.default_rng(seed))
    again = verification.solved(solve, A, b[places])
    return verification.compared(estimate.attack, estimate, places, again)


def estimates_of(party: PartyRun) -> Iterator[tuple[tuple[str, ...], Estimate]]:
    """What the adversary in ``party`` kept, by the key of :attr:`vflens.api.runs.Run.estimates`."""
    for file in sorted((party.folder / "estimates").glob("*.npz")):
        found, place = _kept(file)
        columns = party.role is Role.ACTIVE
        yield (found.target, found.attack, *(() if columns else place)), found


def _kept(file: Path) -> tuple[Estimate, tuple[str, str]]:
    """The estimate in ``file``, and its adversary and scored set."""
    saved = load_arrays(file, remedy="run the experiment again")
    missing = {"target", "rows", "values", "status", "attack", "adversary", "scored_set"} - saved.keys()
    if missing:
        raise StorageError(f"{file} lacks {', '.join(sorted(missing))}: run the experiment again")
    extras: dict[str, Array] = {
        name.removeprefix("extra_"): array for name, array in saved.items() if name.startswith("extra_")
    }
    found = Estimate(
        str(saved["target"]),
        saved["rows"],
        saved["values"],
        saved["status"],
        extras=extras,
        attack=str(saved["attack"]),
    )
    return found, (str(saved["adversary"]), str(saved["scored_set"]))
