"""An adversary who knows two candidates to the bit counts the releases that rule one out (Mironov 2012): none
may.

Against noise that is merely added in floating point it rules the wrong one out in two of three releases or
more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from vflens.defenses import gaussian_scores
from vflens.defenses.dp_gaussian import DPGaussian
from vflens.defenses.dp_laplace import DPLaplace
from vflens.defenses.gaussian_scores import GaussianScores
from vflens.defenses.release_table import ReleaseTable
from vflens.member.accountant import Accountant
from vflens.numerics.discrete_noise import GAUSSIAN_STEP, LAPLACE_STEP
from vflens.plugins.defense import Context, Defense
from vflens.table_noise.mechanisms import Gaussian, Laplace, Mechanism
from vflens.types import Array, Exchange, Owner, Phase

RELEASES = 100_000
#: The same row but for one feature of the person behind it.
CANDIDATES = np.array([[0.31415926535897931, -0.2], [0.31415926535897931 + 0.125, -0.2]])
DENSE = np.array([[2.0, 0.6], [0.6, 1.0]])
KEY = b"a test's key"
#: The largest noise that the Gaussian sampler draws lies below, in steps.
GAUSSIAN_REACH = 39_936
DELTA = 1e-5


def _numpys_laplace(u: float, scale: float) -> float:
    """What Generator.laplace makes of its uniform number u, a multiple of 2⁻⁵³."""
    return 0.0 - scale * math.log(2.0 - u - u) if u >= 0.5 else 0.0 + scale * math.log(u + u)


def _reached_by_addition(value: float, scale: float, candidate: float) -> bool:
    """Whether candidate + Generator.laplace(0, scale) can be ``value``: the uniform numbers near its quantile
    are tried.
    """
    tail = math.exp(-abs(value - candidate) / scale) / 2
    nearest = round((1 - tail if value > candidate else tail) * 2**53)
    tried = range(max(1, nearest - 8), min(2**53, nearest + 9))
    return any(candidate + _numpys_laplace(k / 2**53, scale) == value for k in tried)


def test_adding_noise_in_floating_point_rules_the_other_candidate_out() -> None:
    """The adversary of this page works where there is something to find."""
    truth, other = CANDIDATES[:, 0].tolist()
    released = (truth + np.random.default_rng(0).laplace(0, 0.5, 3000)).tolist()
    assert all(_reached_by_addition(value, 0.5, truth) for value in released)
    excluded = [not _reached_by_addition(value, 0.5, other) for value in released]
    assert np.mean(excluded) > 0.6


def _context(hook: str) -> Context:
    exchange = Exchange("run", Phase.TRAIN, 0, 0)
    return Context(
        Owner("party"),
        exchange,
        np.arange(RELEASES, dtype=np.int32),
        {},
        hook=hook,
        position=0,
        secret=b"secret",
    )


def _defended(defense: Defense, hook: str) -> Callable[[Array], Array]:
    def release(row: Array) -> Array:
        return np.asarray(getattr(defense, hook)(np.tile(row, (RELEASES, 1)), _context(hook)))

    return release


def _released(mechanism: Mechanism) -> Callable[[Array], Array]:
    return lambda row: mechanism.release(np.tile(row, (RELEASES, 1)), 0, KEY)


def _toward_zero(row: Array, step: Any) -> Array:
    steps: Array = np.trunc(row / step)  # neither candidate is clipped
    return steps


def _nearest(row: Array, step: Any) -> Array:
    steps: Array = np.rint(row / step)
    return steps


#: How it is released, the step of the grid, and how a row gets onto it.
MECHANISMS: dict[str, tuple[Callable[[Array], Array], Any, Callable[[Array, Any], Array]]] = {
    "dp_laplace": (_defended(DPLaplace(level=0.5), "on_embedding"), LAPLACE_STEP * 0.5, _toward_zero),
    "dp_gaussian": (_defended(DPGaussian(level=0.5), "on_embedding"), GAUSSIAN_STEP * 0.5, _toward_zero),
    "gaussian_scores": (_defended(GaussianScores(sigma=0.3), "on_scores"), GAUSSIAN_STEP * 0.3, _nearest),
    "release_table": (_defended(ReleaseTable(lam=625.0), "on_dataset"), 0.2 * GAUSSIAN_STEP, _nearest),
    "release, gaussian": (_released(Gaussian(np.ones(2), 16.0)), 0.5 * GAUSSIAN_STEP, _nearest),
    "release, laplace": (_released(Laplace(np.ones(2), 16.0)), LAPLACE_STEP * 0.5, _nearest),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_release_rules_a_candidate_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From either candidate a whole number of steps leads to every released value, to the last bit."""
    monkeypatch.setattr(gaussian_scores, "log_softmax", lambda z, axis: z)  # softmax is computed from this
    release, step, on_grid = MECHANISMS[name]
    reach = math.inf if "laplace" in name else GAUSSIAN_REACH  # in steps
    for truth in CANDIDATES:
        released = release(truth)
        assert 0.1 < (released - truth).std() < 1  # there is noise
        for candidate in CANDIDATES:
            place = on_grid(candidate, step)
            noise = np.rint(released / step - place - 0.5) + 0.5
            explained = step * (place + noise) == released
            assert np.count_nonzero(~explained) == 0
            assert abs(noise).max() < reach


@pytest.mark.parametrize("level", [0.1, 0.25, 0.5, 0.9, 5.0])
def test_where_an_epsilon_is_stated_releases_rule_the_farthest_neighbour_out_no_oftener_than_delta(
    level: float,
) -> None:
    """Rows C and −C: noise that the sampler never draws is needed for the other one; as often as the tail
    says.
    """
    defense = DPGaussian(level=level)
    step = GAUSSIAN_STEP * level
    released = _defended(defense, "on_embedding")(np.array([1.0]))[:, 0]
    excluded = float(
        (abs(released + 1) / step > GAUSSIAN_REACH + 2).mean()
    )  # two steps: cut, and half of one
    tail = float(norm.sf(9.75 - 2 / level))
    assert excluded == pytest.approx(tail, abs=5 * math.sqrt(tail / RELEASES) + 1e-12)
    stated = Accountant.of([defense.claim({})], DELTA, 1).total(1)
    assert stated is None or tail <= DELTA
    assert (stated is None) == (level < 0.65)  # ε is 17 there: as far as the sampler keeps to 1 % of δ


def test_no_release_under_correlated_columns_rules_a_candidate_out() -> None:
    """The same in whitened coordinates: a row of half-integers alone makes what is released, whoever's it
    was.
    """
    mechanism = Gaussian(DENSE, 16.0)
    step = mechanism.pi_power(-0.25) * (16.0**-0.25 * GAUSSIAN_STEP)
    for truth in CANDIDATES:
        released = mechanism.release(np.tile(truth, (RELEASES, 1)), 0, KEY)
        places = np.rint(released @ np.linalg.inv(step) - 0.5) + 0.5
        assert (places[:, :1] * step[0] + places[:, 1:] * step[1] == released).all()


@pytest.mark.parametrize("pi", [np.array([1.0, 16.0, 1e-4]), np.diag([4.0, 4.0, 4.0]) + 1.0])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9])
def test_rounding_moves_two_rows_apart_by_no_more_than_is_counted(pi: Array, offset: float) -> None:
    """At most two steps a whitened coordinate, at numbers as large as a release admits too."""
    rng = np.random.default_rng(0)
    x = offset * rng.uniform(-1, 1, (20_000, 3))
    neighbour = x + rng.uniform(-1, 1, x.shape)
    mechanisms: list[Gaussian | Laplace] = [Gaussian(pi, 0.3), *([Laplace(pi, 0.3)] if pi.ndim == 1 else [])]
    for mechanism in mechanisms:
        if (mechanism.finest() < 2**16 * np.spacing(offset)).any():
            continue  # refused: see refuse_invisible
        both = [mechanism.release(rows, 0, KEY) for rows in (x, neighbour)]
        if isinstance(mechanism, Laplace):
            whiten: Array = np.diag(1 / (LAPLACE_STEP * mechanism.scale))
        else:
            whiten = np.linalg.inv(mechanism.pi_power(-0.25) * 0.3**-0.25 * GAUSSIAN_STEP)
        moved, wanted = (both[1] - both[0]) @ whiten, (neighbour - x) @ whiten
        assert (abs(np.rint(moved)) <= abs(wanted) + 2).all()
