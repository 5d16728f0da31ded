"""Every mechanism against its claim: law, mean, variance, Fisher information; the bounded one by an ODE."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq
from scipy.sparse.linalg import eigsh
from scipy.stats import chi2, kstest, laplace, norm
from thinned import thinned

from vflens.errors import ConfigError
from vflens.numerics.discrete_noise import GAUSSIAN_STEP
from vflens.table_noise.bounded import Bounded
from vflens.table_noise.correlated import Correlated
from vflens.table_noise.mechanisms import Gaussian, Laplace, Mechanism, uniforms
from vflens.types import Array

KEY = b"a test's key"
KNOWN = [0.6605463120881446, 0.1802227375864135, 0.33573900557346115]
ROWS = 200_000
PI = np.array([1.0, 4.0, 0.25])
DENSE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])
TWICE = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])  # eigenvalues 1, 1 and 3
FACTORS = np.linspace(0.3, 1, ROWS)


def bounded(low: float | list[float], high: float | list[float], pi: Array, lam: float) -> Bounded:
    return Bounded(np.array(low, float), np.array(high, float), pi, lam)


IID: dict[str, Mechanism] = {
    "gaussian": Gaussian(PI, 0.01),
    "gaussian, full pi": Gaussian(DENSE, 0.5),
    "laplace, cramer_rao": Laplace(PI, 0.01),
    "laplace, variance": Laplace(PI, 0.01, "variance"),
    "bounded, symmetric": bounded(-1, 1, PI, 1.0),
    "bounded, shifted": bounded([-1, 0, -2], [3, 10, 0.5], PI, 1.0),
    "bounded, full pi": bounded([-1, 0, -2], [3, 10, 0.5], DENSE, 1.0),
}
CORRELATED = Correlated(np.sin(np.arange(500)), np.array([1.0, -2.0, 0.5]), 4.0)
EVERY = {**IID, "correlated": CORRELATED}


# -- the law ---------------------------------------------------------------------------------------------


def scale_rejected(noise: Array, mechanism: Mechanism, factor: float) -> bool:
    """Whether the covariances claimed, times ``factor``², are rejected at 1e-6, by bounds on a variance's
    error.

    A sample variance errs by √((κ − 1)/n) of itself, κ the kurtosis: ≤ 6 for these laws.
    """
    wanted = np.diag(mechanism.covariance()) * factor**2
    z = (noise.var(axis=0) / wanted - 1) / np.sqrt(5 / len(noise))
    return bool((abs(z) > norm.isf(5e-7)).any())


@pytest.mark.parametrize("name", IID)
def test_noise_has_the_claimed_mean_and_covariance_and_no_other(name: str) -> None:
    mechanism = IID[name]
    noise = mechanism.sample(0, ROWS, KEY)
    V = mechanism.covariance()
    deviation = np.sqrt(np.diag(V))
    np.testing.assert_allclose((noise.mean(axis=0) - mechanism.mean()) / deviation, 0, atol=5 / np.sqrt(ROWS))
    np.testing.assert_allclose(
        np.cov(noise.T) / np.outer(deviation, deviation),
        V / np.outer(deviation, deviation),
        atol=12 / np.sqrt(ROWS),
    )
    assert not scale_rejected(noise, mechanism, 1.0)
    assert scale_rejected(noise, mechanism, 2 / 3)
    assert scale_rejected(noise, mechanism, 3 / 2)
    assert scale_rejected(noise, mechanism, 0.97)


def test_gaussian_and_laplace_have_their_laws() -> None:
    z = Gaussian(PI, 0.01).sample(0, ROWS, KEY) * (PI * 0.01) ** 0.25
    e = Laplace(PI, 0.01).sample(0, ROWS, KEY) * (PI * 0.01) ** 0.25
    for j in range(3):
        assert kstest(z[:, j], norm.cdf).pvalue > 1e-4
        assert kstest(e[:, j], laplace.cdf).pvalue > 1e-4
        assert kstest(e[:, j], norm.cdf).pvalue < 1e-6


SCORES: dict[str, Callable[[Array], Array]] = {
    "gaussian": lambda n: n @ np.linalg.inv(np.diag(1 / np.sqrt(0.01 * PI))),
    "gaussian, full pi": lambda n: n @ np.linalg.inv(np.cov(n.T)),
    "laplace, cramer_rao": lambda n: np.sign(n) / (0.01 * PI) ** -0.25,
    "laplace, variance": lambda n: np.sign(n) / ((0.01 * PI) ** -0.25 / np.sqrt(2)),
}


@pytest.mark.parametrize("name", SCORES)
def test_fisher_information_is_the_mean_square_of_the_score(name: str) -> None:
    """The score −∇ log γ written out per law."""
    score = SCORES[name](IID[name].sample(0, ROWS, KEY))
    np.testing.assert_allclose(score.T @ score / ROWS, IID[name].fisher(), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("name", thinned([(n,) for n in IID if "full pi" not in n]))
def test_fisher_information_by_shifted_histograms(name: str) -> None:
    """No formula of the law: the likelihood ratio of x̄ and x̄ + h alone, I = lim 8(1 − ∫√(γ(x) γ(x+h)))/h².

    h a tenth of a deviation and histograms of 2·10⁶ draws; Laplace's kink leaves O(h), so 5 %.
    """
    mechanism = IID[name]
    noise = np.concatenate([mechanism.sample(k * ROWS, ROWS, KEY)[:, 0] for k in range(10)])
    h = 0.1 * noise.std()
    counts, _ = np.histogram(noise, np.arange(noise.min() - 2 * h, noise.max() + 2 * h, h / 4))
    density = counts / counts.sum()
    overlap = np.sum(np.sqrt(density[4:] * density[:-4]))
    found = 8 * (1 - overlap) / h**2
    assert found == pytest.approx(mechanism.fisher()[0, 0], rel=0.06)


def test_gaussian_is_optimal() -> None:
    """Tr(Π⁻¹I) + λ Tr V is 2√λ Tr Π^{-1/2} at the optimum (Thm 2.4) and larger at the other laws."""

    def cost(m: Mechanism, pi: Array, lam: float) -> float:
        return float(np.trace(np.linalg.inv(pi) @ m.fisher()) + lam * np.trace(m.covariance()))

    values = np.linalg.eigvalsh(DENSE)
    assert cost(Gaussian(DENSE, 0.5), DENSE, 0.5) == pytest.approx(2 * np.sqrt(0.5) * np.sum(values**-0.5))
    best = cost(Gaussian(PI, 0.01), np.diag(PI), 0.01)
    for other in (
        Gaussian(1.1 * PI, 0.01),
        Gaussian(PI, 0.012),
        Laplace(PI, 0.01),
        Laplace(PI, 0.01, "variance"),
    ):
        assert cost(other, np.diag(PI), 0.01) > best


def test_the_papers_values() -> None:
    """200, 20, 2 for Π = I, p = 2 and λ = 1e-4, 1e-2, 1."""
    traces = [np.trace(Gaussian(np.ones(2), lam).cramer_rao()) for lam in (1e-4, 1e-2, 1.0)]
    np.testing.assert_allclose(traces, [200, 20, 2])


def test_laplace_baselines_match_what_they_say() -> None:
    V = np.diag(Gaussian(PI, 0.01).covariance())
    np.testing.assert_allclose(np.diag(Laplace(PI, 0.01).cramer_rao()), V)
    np.testing.assert_allclose(np.diag(Laplace(PI, 0.01).covariance()), 2 * V)
    np.testing.assert_allclose(np.diag(Laplace(PI, 0.01, "variance").covariance()), V)


# -- correlated noise ------------------------------------------------------------------------------------


def test_correlated_noise_keeps_its_combinations() -> None:
    noise = CORRELATED.sample(0, 500, KEY)
    assert abs(noise @ CORRELATED.alpha).max() < 1e-13
    assert abs(CORRELATED.v @ noise).max() < 1e-12


def test_correlated_noise_has_the_claimed_variances() -> None:
    """Σ over cells of n²/variance is χ² with (q−1)(p−1) degrees once scaled; wrong m is rejected."""
    q, p, draws = 500, 3, 400
    v, a, m = CORRELATED.v, CORRELATED.alpha, CORRELATED.m
    squares = np.zeros((q, p))
    for k in range(draws):
        squares += CORRELATED.sample(0, q, KEY + bytes([k % 256, k // 256])) ** 2
    total = squares.sum() / m
    freedom = draws * (q - 1) * (p - 1)
    assert 1e-4 < chi2.cdf(total, freedom) < 1 - 1e-4
    for wrong in (2 / 3, 0.97, 1.03, 3 / 2):
        assert not 1e-6 < chi2.cdf(total / wrong**2, freedom) < 1 - 1e-6
    by_column, by_row = squares.sum(axis=0) / (draws * m), squares.sum(axis=1) / (draws * m)
    np.testing.assert_allclose(by_column, (q - 1) * (1 - a**2), rtol=0.02)
    np.testing.assert_allclose(by_row, (1 - v**2) * (p - 1), rtol=0.3)
    i = int(np.argmax(abs(v)))
    assert np.trace(CORRELATED.covariance()) * CORRELATED.row_factors(i, 1)[0] == pytest.approx(
        m * (1 - v[i] ** 2) * (p - 1)
    )


@pytest.mark.parametrize(
    ("v", "alpha"),
    [([1.0, 2.0, 3.0], [5.0]), ([-2.0], [1.0, 2.0]), ([7.0], [3.0])],
    ids=["one column", "one row", "one cell"],
)
def test_no_freedom_no_noise(v: list[float], alpha: list[float]) -> None:
    assert not Correlated(np.array(v), np.array(alpha), 9.0).sample(0, len(v), KEY).any()


def test_a_row_alone_in_v_gets_no_noise_and_alpha_0_drops_its_constraint() -> None:
    noise = Correlated(np.array([0.0, 1, 0]), np.zeros(2), 9.0).sample(0, 3, KEY)
    assert not noise[1].any()
    assert np.linalg.matrix_rank(noise) == 2


# -- bounded noise ---------------------------------------------------------------------------------------

#: box, λ, ϑ → μ, mean, variance, Fisher information (docs/release.md)
REFERENCE = [
    ((-1, 1), 1.0, 1.0, (2.5, 0.0, 0.130101, 9.869899)),
    ((-1, 3), 1.0, 2.0, (1.1582693, 0.6100251, 0.4028596, 3.0830970)),
    ((0, 10), 1.0, 1.0, (1.5, 1.595769, 0.453521, 3.0)),
    ((-1, 1), 1e-12, 1.0, (np.pi**2 / 4, 0.0, 1 / 3 - 2 / np.pi**2, np.pi**2)),
]


@pytest.mark.parametrize(("box", "lam", "theta", "wanted"), REFERENCE)
def test_bounded_noise_is_the_reference(
    box: tuple[float, float], lam: float, theta: float, wanted: tuple[float, ...]
) -> None:
    """The table's digits; and the identity optimum = 4μ/ϑ of I/ϑ + λ E n²."""
    noise = bounded(box[0], box[1], np.array([theta]), lam)
    state = noise.states[0]
    found = state.energy, noise.mean()[0], noise.covariance()[0, 0], noise.fisher()[0, 0]
    np.testing.assert_allclose(found, wanted, atol=5e-7)
    second_moment = found[2] + found[1] ** 2
    assert found[3] / theta + lam * second_moment == pytest.approx(4 * found[0] / theta, rel=1e-9)


@pytest.mark.parametrize(
    ("box", "lam", "theta"), thinned([((-1, 3), 1.0, 2.0), ((0.5, 4), 3.0, 1.0), ((-2, 0.1), 0.2, 5.0)], 3)
)
def test_bounded_noise_by_shooting(box: tuple[float, float], lam: float, theta: float) -> None:
    """An independent route: u'' = (λϑn²/4 − μ)u as an initial-value problem, the least μ with u(n̄) = 0."""
    low, high = box

    def shot(mu: float) -> tuple[float, Callable[[Array], Array]]:
        path = solve_ivp(
            lambda n, u: [u[1], (lam * theta * n * n / 4 - mu) * u[0]],
            box,
            [0, 1],
            rtol=1e-11,
            atol=1e-13,
            dense_output=True,
        )
        return path.y[0, -1], path.sol

    floor = lam * theta / 4 * min(max(low, 0), high, key=abs) ** 2
    tried = floor + (np.pi / (high - low)) ** 2 * np.linspace(0, 8, 60)
    ends = [shot(mu)[0] for mu in tried]
    first = next(i for i in range(59) if ends[i] > 0 >= ends[i + 1])
    energy = brentq(lambda mu: shot(mu)[0], tried[first], tried[first + 1], xtol=1e-11)
    u = shot(energy)[1]
    whole = quad(lambda n: u(n)[0] ** 2, low, high, epsabs=1e-12)[0]
    mean = quad(lambda n: n * u(n)[0] ** 2, low, high, epsabs=1e-12)[0] / whole
    spread = quad(lambda n: (n - mean) ** 2 * u(n)[0] ** 2, low, high, epsabs=1e-12)[0] / whole
    fisher = 4 * quad(lambda n: u(n)[1] ** 2, low, high, epsabs=1e-12)[0] / whole

    state = bounded(low, high, np.array([theta]), lam).states[0]
    np.testing.assert_allclose(
        (state.energy, state.mean, state.variance, state.fisher), (energy, mean, spread, fisher), rtol=1e-7
    )
    points = np.linspace(low, high, 23)
    np.testing.assert_allclose(state.density(points), u(points)[0] ** 2 / whole, atol=1e-7)

    draws = bounded(low, high, np.array([theta]), lam).sample(0, 20_000, KEY)[:, 0]
    grid = np.linspace(low, high, 4001)
    masses = np.concatenate([[0], np.cumsum((u(grid)[0][1:] ** 2 + u(grid)[0][:-1] ** 2) / 2)])
    assert kstest(draws, lambda n: np.interp(n, grid, masses / masses[-1])).pvalue > 1e-4


def least_on_a_turned_box(
    pi: Array, lam: float, corner: Array, edges: Array
) -> tuple[float, Array, Array, Array]:
    """For 4∫∇uᵀΠ⁻¹∇u + λ∫‖n‖²u² over u of norm 1 on {corner + edges t : t in [0, 1]²}, u = 0 on its border:
    the least value and, at it, ∫ n u², the covariance and 4∫∇u∇uᵀ, by bilinear elements on 150 × 150 cells.
    """
    k = 149
    h = 1 / (k + 1)
    mass = sparse.diags_array([1.0, 4.0, 1.0], offsets=[-1, 0, 1], shape=(k, k)) * (h / 6)
    stiff = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(k, k)) / h
    slope = sparse.diags_array([-0.5, 0.5], offsets=[-1, 1], shape=(k, k))
    products = [[sparse.kron(stiff, mass), sparse.kron(slope, slope.T)], [sparse.kron(slope.T, slope)] * 2]
    products[1][1] = sparse.kron(mass, stiff)
    inverse = np.linalg.inv(edges)
    metric = inverse @ np.linalg.inv(pi) @ inverse.T
    t = np.stack(np.meshgrid(*[h * np.arange(1, k + 1)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    n = corner + t @ edges.T
    energy = sum(4 * metric[i, j] * products[i][j] for i in (0, 1) for j in (0, 1))
    energy = energy + sparse.diags_array(lam * h * h * (n**2).sum(axis=1))
    values, vectors = eigsh(energy.tocsc(), 1, sparse.kron(mass, mass).tocsc(), sigma=0)
    u = vectors[:, 0]
    weights = u**2 / (u @ u)
    mean = weights @ n
    shown = [[u @ (products[i][j] @ u) for j in (0, 1)] for i in (0, 1)]
    fisher = 4 * inverse.T @ np.array(shown) @ inverse / (u @ (sparse.kron(mass, mass) @ u))
    return float(values[0]), mean, (weights * (n - mean).T) @ (n - mean), fisher


@pytest.mark.parametrize(
    ("low", "high", "lam"), [([-1.0, 0.0], [3.0, 2.0], 1.0), ([0.5, -2.0], [4.0, 0.1], 3.0)]
)
def test_theorem_2_6_for_a_full_pi_by_finite_elements(
    low: list[float], high: list[float], lam: float
) -> None:
    """Its own partial differential equation in two dimensions, on the turned box, nothing separated."""
    angle = 0.6
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    pi = turn @ np.diag([0.7, 2.0]) @ turn.T
    noise = Bounded(np.array(low), np.array(high), pi, lam)
    value, mean, covariance, fisher = least_on_a_turned_box(
        pi, lam, turn @ low, turn * np.subtract(high, low)
    )
    np.testing.assert_allclose(noise.mean(), mean, atol=1e-3)
    np.testing.assert_allclose(noise.covariance(), covariance, atol=1e-3)
    np.testing.assert_allclose(noise.fisher(), fisher, rtol=1e-3, atol=1e-3)
    squares = np.trace(noise.covariance()) + noise.mean() @ noise.mean()
    cost = np.trace(np.linalg.inv(pi) @ noise.fisher()) + lam * squares
    assert cost == pytest.approx(value, rel=1e-3)
    inside = noise.sample(0, 5000, KEY) @ turn
    assert ((inside >= np.array(low) - 1e-12) & (inside <= np.array(high) + 1e-12)).all()


@pytest.mark.parametrize("reach", [1e2, 1e5, 1e9])
def test_bounded_noise_becomes_the_optimal_gaussian(reach: float) -> None:
    noise = bounded(-reach, reach, PI, 0.01)
    unbounded = Gaussian(PI, 0.01)
    np.testing.assert_allclose(noise.covariance(), unbounded.covariance(), rtol=1e-9)
    np.testing.assert_allclose(noise.fisher(), unbounded.fisher(), rtol=1e-9)
    deviation = np.sqrt(np.diag(unbounded.covariance()))
    np.testing.assert_allclose(
        noise.sample(0, 1000, KEY) / deviation,
        unbounded.sample(0, 1000, KEY) / deviation,
        rtol=1e-6,
        atol=0.501 * GAUSSIAN_STEP,
    )


@pytest.mark.parametrize(("low", "high"), [(50.0, 60.0), (1e3, 2e3), (-1e6, -1e5), (-1e-9, 1e-9)])
def test_far_and_tiny_boxes_are_solved_inside_them(low: float, high: float) -> None:
    """Beside an edge far from 0 the state is Airy's: μ − floor → 2.338 (slope of the potential)^{2/3}."""
    noise = bounded(low, high, np.ones(1), 1.0)
    draws = noise.sample(0, 2000, KEY)
    assert ((draws >= low) & (draws <= high)).all()
    assert draws.std() == pytest.approx(np.sqrt(noise.covariance()[0, 0]), rel=0.1)
    nearest = min(abs(low), abs(high))
    if nearest >= 1e3:
        airy = nearest**2 / 4 + 2.338107410459767 * (nearest / 2) ** (2 / 3)
        assert noise.states[0].energy == pytest.approx(airy, rel=1e-6)


# -- the same noise however the table is cut ---------------------------------------------------------------


def test_the_stream_never_changes_silently() -> None:
    """Known answers: a change here changes every release that anyone can redraw from its key."""
    np.testing.assert_array_equal(uniforms(b"key", 0, 3), KNOWN)


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4, 5, 4093])
def test_any_stretch_of_the_stream_can_be_read_alone(start: int) -> None:
    np.testing.assert_array_equal(uniforms(KEY, start, 50), uniforms(KEY, 0, start + 50)[start:])


@pytest.mark.parametrize("name", EVERY)
def test_noise_is_the_same_bits_however_the_table_is_cut(name: str) -> None:
    mechanism = EVERY[name]
    whole = mechanism.sample(0, 500, KEY)
    for size in (1, 7, 64, 499):
        cut = np.concatenate([mechanism.sample(s, min(size, 500 - s), KEY) for s in range(0, 500, size)])
        np.testing.assert_array_equal(cut, whole)
    assert not np.isclose(mechanism.sample(0, 500, b"another key"), whole).mean() > 0.01
    assert mechanism.sample(3, 0, KEY).shape == (0, 3)


# -- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(PI, 0.0), "lambda holds 0.0: give finite numbers above 0"),
        (lambda: Gaussian(PI, np.nan), "lambda holds nan"),
        (lambda: Gaussian(np.array([1.0, -1.0]), 1.0), "pi holds -1.0"),
        (lambda: Gaussian(np.array([[1.0, 2.0], [2.0, 1.0]]), 1.0), "pi has eigenvalues from -1 to 3"),
        (lambda: Gaussian(np.array([[1.0, 2.0], [0.0, 5.0]]), 1.0), "pi is not a finite symmetric matrix"),
        (lambda: Gaussian(np.ones((2, 3)), 1.0), r"pi has shape \(2, 3\)"),
        (lambda: Laplace(DENSE, 1.0), "pi is a full matrix: Laplace"),
        (lambda: Laplace(PI, 1.0, "both"), "matched is 'both'"),  # type: ignore[arg-type]
        (
            lambda: bounded(1, -1, PI, 1.0),
            "lower and upper: give numbers below 1e\\+100 with lower below upper",
        ),
        (lambda: bounded(0, 1e-300, PI, 1.0), "lower and upper: give numbers below"),
        (lambda: bounded(-1, 1, 1e-200 * PI, 1e-200), "lambda · pi holds 0.0"),
        (lambda: bounded([1, 2], 3, PI, 1.0), "lower and upper have 2 and 1 number, the table 3 columns"),
        (lambda: bounded(-np.inf, 3, PI, 1.0), "lower and upper: give numbers below"),
        (lambda: bounded(-1, 1, TWICE, 1.0), "pi has eigenvalues 1, 1, 3: two that are equal"),
        (lambda: Correlated(PI, PI, -1.0), "m holds -1.0"),
        (lambda: Correlated(DENSE, PI, 1.0), r"v has shape \(3, 3\)"),
        (lambda: Correlated(PI, np.array([np.nan]), 1.0), r"alpha has shape \(1,\)"),
    ],
)
def test_what_cannot_work_is_refused(make: Callable[[], Mechanism], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
