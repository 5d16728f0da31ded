"""Bounds and ε of a release against independent routes: regression, dense posteriors, quadrature, scans."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

from vflens.datasets._resolve import dataset
from vflens.errors import ConfigError, DataError
from vflens.numerics.discrete_noise import LAPLACE_STEP
from vflens.table_noise.accounting import (
    ROUNDING,
    local_privacy,
    sensitivity,
)
from vflens.table_noise.bounded import Bounded
from vflens.table_noise.bounds import bounds, posterior_variance
from vflens.table_noise.certificate import certify
from vflens.table_noise.correlated import Correlated
from vflens.table_noise.mechanisms import Gaussian, Laplace, Mechanism
from vflens.table_noise.moments import TableMoments
from vflens.table_noise.parameters import identity_pi, lambda_for_error, lambda_for_privacy, standardising_pi
from vflens.table_noise.preserving import preserving_noise, release_preserving
from vflens.types import Array

KEY = b"a test's key"
PI = np.array([1.0, 4.0, 0.25])
DENSE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])


def table(q: int = 400, p: int = 3) -> Array:
    rng = np.random.default_rng(5)
    return rng.normal(size=(q, p)) @ rng.normal(size=(p, p)) + 3


def breast_cancer() -> tuple[Array, Array]:
    found = dataset("breast_cancer", {}).load()
    assert found.labels is not None
    return found.features, np.where(found.labels == found.class_names.index("benign"), 1.0, -1.0)


# -- moments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 399])
def test_moments_do_not_depend_on_the_blocks(size: int) -> None:
    x = table() * [1e-6, 1.0, 1e6] + [0.0, 1e7, 0.0]
    moments = TableMoments.of(x[:size])
    for start in range(size, len(x), size):
        moments = moments.add(x[start : start + size])
    assert moments.count == len(x)
    np.testing.assert_allclose(moments.mean, x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.covariance, np.cov(x.T, bias=True), rtol=1e-6, atol=1e-9)


def test_a_constant_column_has_deviation_0_exactly() -> None:
    x = np.column_stack([np.full(300, 0.1), np.arange(300.0)])
    assert TableMoments.of(x).deviation[0] == 0
    with pytest.raises(DataError, match="holds NaN or infinity"):
        TableMoments.of(np.array([[np.inf]]))


# -- what an adversary reaches ---------------------------------------------------------------------------


def test_linear_error_is_what_regression_of_the_original_on_the_released_leaves() -> None:
    """Least squares on 300,000 rows, no formula; x̄'s own error beside it."""
    x = table(300_000)
    for noise in (Gaussian(DENSE, 0.5), Laplace(PI, 0.1), Bounded(-np.ones(3), np.full(3, 2.0), PI, 1.0)):
        released = x + noise.sample(0, len(x), KEY)
        found = bounds(noise, TableMoments.of(x))
        design = np.column_stack([np.ones(len(x)), released])
        left = x - design @ np.linalg.lstsq(design, x, rcond=None)[0]
        np.testing.assert_allclose(found.linear, (left**2).mean(axis=0), rtol=0.01)
        np.testing.assert_allclose(found.linear_r2, 1 - left.var(axis=0) / x.var(axis=0), atol=0.01)
        np.testing.assert_allclose(found.released, ((released - x) ** 2).mean(axis=0), rtol=0.01)


def test_correlated_bounds_are_the_dense_posterior_of_all_rows() -> None:
    """K_prior = I ⊗ K, noise m (I − vvᵀ) ⊗ (I − ââᵀ): conditional covariance of every row, in one matrix."""
    rng = np.random.default_rng(6)
    q, p, m = 12, 3, 2.0
    x = rng.normal(size=(q, p)) * [1, 3, 0.5]
    noise = Correlated(rng.normal(size=q), rng.normal(size=p), m)
    found = bounds(noise, TableMoments.of(x))
    prior = np.kron(np.eye(q), np.cov(x.T, bias=True))
    added = np.kron(np.eye(q) - np.outer(noise.v, noise.v), noise.covariance())
    posterior = np.diag(prior - prior @ np.linalg.solve(prior + added, prior)).reshape(q, p)
    np.testing.assert_allclose(found.linear, posterior.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(
        posterior,
        np.outer(noise.row_factors(0, q), posterior_variance(np.cov(x.T, bias=True), noise.covariance())),
        rtol=1e-9,
    )
    cells = np.diag(added).reshape(q, p)
    assert found.total == pytest.approx(cells.sum())
    assert found.total == pytest.approx(m * (q - 1) * (p - 1))
    assert found.min_row == pytest.approx(cells.sum(axis=1).min())


@pytest.mark.parametrize("law", ["laplace", "bounded"])
@pytest.mark.parametrize("spread", [0.2, 1.0, 5.0])
def test_the_best_estimate_of_all_lies_between_van_trees_and_linear(law: str, spread: float) -> None:
    """The conditional mean under the stated prior N(0, spread²), by quadrature on a grid."""
    noise: Mechanism = Laplace(np.ones(1), 1.0)
    density: Callable[[Array], Array] = lambda n: np.exp(-abs(n)) / 2  # noqa: E731
    if law == "bounded":
        box = Bounded(np.array([-1.0]), np.array([1.5]), np.ones(1), 1.0)
        at = np.linspace(-1, 1.5, 2001)
        values = box.states[0].density(at)
        noise, density = box, lambda n: np.interp(n, at, values, left=0, right=0)
    x = np.linspace(-8, 8, 1001) * spread
    reach = 30 if law == "laplace" else 1.5
    released = np.linspace(x[0] - reach, x[-1] + reach, 3001)
    joint = norm.pdf(x, scale=spread) * density(released[:, None] - x)
    weight = joint.sum(axis=1)
    mean = np.divide(joint @ x, weight, out=np.zeros_like(weight), where=weight > 0)
    cell = (x[1] - x[0]) * (released[1] - released[0])
    bayes = spread**2 - float(weight @ mean**2) * cell
    found = bounds(noise, TableMoments(1, np.zeros(1), np.array([[spread**2]])))
    assert found.van_trees[0] <= bayes * (1 + 1e-3)
    assert bayes <= found.linear[0] * (1 + 1e-3)
    assert found.van_trees[0] < found.cramer_rao[0]


def test_breast_cancer_as_in_the_errata() -> None:
    """Linear errors 355, 51, 6.9 against 3000, 300, 30; correlated m = 100: .63 % of the variance, worst
    area.
    """
    x, y = breast_cancer()
    moments = TableMoments.of(x)
    for lam, bound, linear in ((1e-4, 3000, 355), (1e-2, 300, 51), (1.0, 30, 6.9)):
        found = bounds(Gaussian(np.ones(30), lam), moments)
        assert found.min_row == pytest.approx(bound)
        assert found.linear.sum() == pytest.approx(linear, rel=0.01)
        np.testing.assert_allclose(found.van_trees, found.linear, rtol=1e-9)  # Gaussian noise and prior
    _, check = release_preserving(x, y, theta=1.0, rho=1e-2, m=100.0, key=KEY)
    found = bounds(check.mechanism, moments)
    assert found.min_row / found.variance.sum() == pytest.approx(0.0063, abs=1e-4)
    assert found.linear_r2[23] == pytest.approx(0.9997, abs=1e-4)
    assert found.cramer_rao.sum() > 8 * found.linear.sum()
    # what it really leaves, over several draws, for someone who knows mean and covariance
    K, V = moments.covariance, check.mechanism.covariance()
    errors = []
    for k in range(40):
        n = check.mechanism.sample(0, len(x), KEY + bytes([k]))
        errors.append(
            (((x + n - moments.mean) @ np.linalg.solve(K + V, K) + moments.mean - x) ** 2).sum(axis=1).mean()
        )
    assert np.mean(errors) == pytest.approx(found.linear.sum(), rel=0.05)


@pytest.mark.parametrize("scales", [[1e-12, 1.0, 1e12], [1e-100, 1e100, 1.0]])
def test_scales_far_apart_lose_nothing(scales: list[float]) -> None:
    """The noise scaled with the columns: every share and R² stays what it was."""
    x = table()
    noise, scaled = (
        Gaussian(PI, 0.1),
        Gaussian(PI / np.array(scales) ** 4, 0.1) if max(scales) < 1e50 else None,
    )
    if scaled is None:
        with pytest.raises(ConfigError, match="pi holds"), np.errstate(all="ignore"):
            Gaussian(PI / np.array(scales) ** 4, 0.1)
        return
    a, b = bounds(noise, TableMoments.of(x)), bounds(scaled, TableMoments.of(x * scales))
    np.testing.assert_allclose(a.variance_share, b.variance_share, rtol=1e-9)
    np.testing.assert_allclose(a.linear_r2, b.linear_r2, rtol=1e-6)


def test_constant_columns_have_no_share() -> None:
    x = np.column_stack([table(), np.full(400, 7.0)])
    found = bounds(Gaussian(np.ones(4), 1.0), TableMoments.of(x))
    assert np.isnan(found.variance_share[3])
    assert np.isnan(found.linear_r2[3])
    assert found.linear[3] == 0


@pytest.mark.parametrize("pi", [PI, DENSE])
def test_sensitivity_covers_every_pair_within_the_diameter(pi: Array) -> None:
    """The largest ‖V^{-1/2}d‖ over the corners of |d_j| ≤ Δ_j; for a diagonal Π it is attained."""
    span = np.array([1.0, 0.2, 3.0])
    information = Gaussian(pi, 0.3).fisher()
    corners = [np.array(signs) * span for signs in itertools.product((-1, 1), repeat=3)]
    worst = max(np.sqrt(d @ information @ d) for d in corners)
    a = sensitivity(pi, 0.3, span)
    assert worst <= a * (1 + 1e-12)
    if pi.ndim == 1:
        assert worst == pytest.approx(a)


def test_laplace_epsilon_is_the_worst_log_ratio() -> None:
    noise, span = Laplace(PI, 0.3), np.array([1.0, 0.2, 3.0])
    found = local_privacy(noise, delta=1e-5, diameter=span)
    n = noise.sample(0, 50_000, KEY)
    ratios = ((abs(n + span) - abs(n)) / noise.scale).sum(axis=1)
    assert found.epsilon_exact is not None
    assert ratios.max() <= found.epsilon_exact * (1 + 1e-12)
    assert ratios.max() == pytest.approx(found.epsilon_exact - 3 * ROUNDING * LAPLACE_STEP, rel=1e-9)


def test_bounded_and_correlated_noise_have_none_and_say_why() -> None:
    for noise, why in (
        (Bounded(-np.ones(3), np.ones(3), PI, 1.0), "bounded support"),
        (Correlated(np.ones(5), np.ones(3), 1.0), "released exactly"),
    ):
        found = local_privacy(noise, delta=1e-5, diameter=1.0)
        assert found.epsilon_theorem is None
        assert found.epsilon_exact is None
        assert found.reason is not None
        assert why in found.reason


@pytest.mark.parametrize(
    ("delta", "diameter", "message"),
    [
        (0.0, 1.0, "delta is 0.0"),
        (1.0, 1.0, "delta is 1.0"),
        (0.1, 0.0, "diameter holds 0.0"),
        (0.1, [1.0, 2.0], "diameter has 2 numbers, the table 3 columns"),
    ],
)
def test_what_has_no_epsilon_is_refused(delta: float, diameter: float | list[float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        local_privacy(Gaussian(PI, 1.0), delta=delta, diameter=np.array(diameter))


# -- choosing λ ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pi", [PI, DENSE])
def test_lambda_gives_the_error_that_was_asked_for(pi: Array) -> None:
    noise = Gaussian(pi, lambda_for_error(pi, 7.0))
    full = pi if pi.ndim == 2 else np.diag(pi)
    assert np.trace(full @ noise.cramer_rao()) == pytest.approx(7.0)


@pytest.mark.parametrize("mechanism", ["gaussian", "cramer_rao", "variance"])
def test_lambda_gives_the_epsilon_that_was_asked_for(mechanism: str) -> None:
    span = np.array([1.0, 0.2, 3.0])
    if mechanism == "gaussian":
        noise: Mechanism = Gaussian(PI, lambda_for_privacy(PI, epsilon=1.5, delta=1e-5, diameter=span))
    else:
        lam = lambda_for_privacy(
            PI,
            epsilon=1.5,
            delta=1e-5,
            diameter=span,
            mechanism="laplace",
            matched=mechanism,  # type: ignore[arg-type]
        )
        noise = Laplace(PI, lam, mechanism)  # type: ignore[arg-type]
    assert local_privacy(noise, delta=1e-5, diameter=span).epsilon_exact == pytest.approx(1.5)


def test_standardising_pi_puts_noise_in_proportion() -> None:
    s = np.array([1e-6, 1.0, 1e6])
    noise = np.sqrt(np.diag(Gaussian(standardising_pi(s), 0.01).covariance()))
    assert np.ptp(noise / s) < 1e-9 * noise[1]
    assert noise[1] == pytest.approx(0.01**-0.25)
    np.testing.assert_array_equal(identity_pi(2), [1, 1])
    with pytest.raises(ConfigError, match="column 1 has standard deviation 0"):
        standardising_pi(np.array([1.0, 0.0]))


# -- the certificate -------------------------------------------------------------------------------------


def mechanisms() -> dict[str, Mechanism]:
    x, y = breast_cancer()
    return {
        "gaussian": Gaussian(np.ones(30), 1e-2),
        "laplace": Laplace(np.ones(30), 1e-2),
        "bounded": Bounded(np.full(30, -1.0), np.full(30, 2.0), np.ones(30), 1.0),
        "correlated": preserving_noise(x, y, theta=1.0, rho=1e-2, m=100.0)[0],
    }


@pytest.mark.parametrize("name", ["gaussian", "laplace", "bounded", "correlated"])
def test_certificate_is_json_without_nan_and_says_what_is_private(name: str) -> None:
    x = np.column_stack([breast_cancer()[0][:, :29], np.full(569, 2.0)])
    noise = mechanisms()[name]
    certificate = certify(noise, TableMoments.of(x), [f"c{j}" for j in range(30)], delta=1e-5, diameter=1.0)
    facts = json.loads(certificate.model_dump_json(), parse_constant=pytest.fail)
    assert {"mechanism", "parameters", "cramer_rao", "ldp", "not_protected", "private"} <= set(facts)
    assert {"total", "min_row", "per_feature"} <= set(facts["cramer_rao"])
    assert {"delta", "epsilon_theorem", "epsilon_exact"} <= set(facts["ldp"])
    assert facts["cramer_rao"]["estimators"] == "locally unbiased estimators"
    assert facts["cramer_rao"]["per_feature"][29]["share_of_variance"] is None
    assert ("released exactly" in " ".join(facts["not_protected"])) == (name == "correlated")
    assert any("labels" in words for words in facts["not_protected"])


def test_entries_that_are_not_private_do_not_depend_on_the_table() -> None:
    """Two tables of one shape: whatever differs between their certificates is named as private."""
    rng = np.random.default_rng(7)
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    tables = [rng.normal(size=(60, 3)) * scale + 0.5 * y[:, None] for scale in (1.0, 2.0)]

    def both(name: str) -> list[Mechanism]:
        match name:
            case "gaussian":
                return [Gaussian(PI, 0.1)] * 2
            case "standardised":
                return [Laplace(standardising_pi(TableMoments.of(x).deviation), 0.1) for x in tables]
            case _:
                return [preserving_noise(x, y, theta=1.0, rho=0.1, m=4.0)[0] for x in tables]

    for name in ("gaussian", "standardised", "correlated"):
        made = [
            certify(n, TableMoments.of(x), "abc", delta=1e-5, pi_from_data=name == "standardised")
            for n, x in zip(both(name), tables, strict=True)
        ]
        private = set(made[0].private)
        leaves = [dict(_leaves(json.loads(c.model_dump_json()))) for c in made]
        differ = {path for path in leaves[0] if not _alike(leaves[0][path], leaves[1][path])}
        assert differ, name
        for path in differ:
            assert any(path == p or path.startswith(p + ".") for p in private), (name, path)


def _alike(one: list[object], other: list[object]) -> bool:
    """Equal; numbers to rounding."""
    numbers = all(isinstance(v, float) for v in one + other)
    return bool(np.allclose(one, other, rtol=1e-9, atol=0) if numbers else one == other)  # type: ignore[arg-type]


def _leaves(node: object, path: str = "") -> list[tuple[str, list[object]]]:
    """Every path of a JSON tree with its values; list entries share "[]"."""
    found: dict[str, list[object]] = {}
    match node:
        case dict():
            parts = [(f"{path}.{k}" if path else k, v) for k, v in node.items()]
        case list() if node and isinstance(node[0], dict):
            parts = [(f"{path}[]", v) for v in node]
        case _:
            return [(path, node if isinstance(node, list) else [node])]
    for name, value in parts:
        for leaf, values in _leaves(value, name):
            found.setdefault(leaf, []).extend(values)
    return list(found.items())
