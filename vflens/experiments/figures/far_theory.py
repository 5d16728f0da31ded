"""FAR's figures 1 to 4: the range of Theorem 2.5, and two clouds of points under noise."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vflens.experiments.figures.figure import Figure, line, silent
from vflens.experiments.pages.drawing import Printed
from vflens.experiments.pages.plots import axis, scales
from vflens.numerics.gaussian_privacy import gaussian_epsilon, gaussian_sensitivity
from vflens.randomness import secret_from_seed
from vflens.table_noise.accounting import THEOREM_LIMIT
from vflens.table_noise.bounds import bounds
from vflens.table_noise.mechanisms import Gaussian
from vflens.table_noise.moments import TableMoments
from vflens.table_noise.preserving import preserving_noise, release_preserving
from vflens.table_noise.svm import solve_svm
from vflens.types import Array

#: Of the SVM (2) in every figure (§3.1).
THETA, RHO = 1.0, 1e-2
#: Draws of the clouds in figure 4 per simulation: the median of 100 varies by 3.
_DRAWS = 10


def figure1(*, simulations: int = 100, seed: int = 0, on_step: Callable[[int, int], None] = silent) -> Figure:
    """The (ε, δ) of Thm 2.5 at λ^{1/4}‖Π^{1/4}‖_{∞,2} = 0.1, Δ = 1, and the exact boundary."""
    a, delta = 0.1, np.logspace(-10, -0.01, 100)
    theorem = a * (1 + np.sqrt(2 * np.log(1 / delta)))
    exact = np.array([gaussian_epsilon(a, d) for d in delta])
    plot = {
        "data": [line("Theorem 2.5", theorem, delta), line("exact", exact, delta)],
        "layout": scales("ε", "δ", y_log=True),
    }
    data = {"delta": delta.tolist(), "epsilon_theorem": theorem.tolist(), "epsilon_exact": exact.tolist()}
    return Figure(
        "(ε, δ) with λ^¼‖Π^¼‖ = 0.1",
        data,
        plot,
        notes=(
            "The caption prints √λ‖Π^½‖ = 0.1; the text's norm is the right one.",
            "Allowed: right of a curve.",
        ),
    )


def figure2(*, simulations: int = 100, seed: int = 0, on_step: Callable[[int, int], None] = silent) -> Figure:
    """The lower bound on E‖Π^{1/2}(x − x̂)‖² over (ε, δ), for Tr(Π^{1/2})‖Π^{1/4}‖²_{∞,2} = 1 and Δ = 1.

    The bound is 1/a²: with the theorem's a = ε/(1 + √(2 ln 1/δ)), a ≤ 2, and with the exact one.
    """
    epsilons, deltas = np.logspace(-1, 1, 21), np.logspace(-10, -1, 19)
    epsilon, delta = (grid.ravel() for grid in np.meshgrid(epsilons, deltas))
    a = epsilon / (1 + np.sqrt(2 * np.log(1 / delta)))
    theorem = np.where(a <= THEOREM_LIMIT, a**-2, np.nan)
    exact = np.array([gaussian_sensitivity(e, d) ** -2 for e, d in zip(epsilon, delta, strict=True)])
    surface = {
        "type": "contour",
        "x": epsilons.tolist(),
        "y": deltas.tolist(),
        "z": [
            [None if np.isnan(z) else z for z in row] for row in np.log10(theorem.reshape(19, 21)).tolist()
        ],
        "colorbar": axis("log₁₀ bound"),
    }
    data = {
        "epsilon": epsilon.tolist(),
        "delta": delta.tolist(),
        "bound_theorem": [None if np.isnan(b) else b for b in theorem.tolist()],
        "bound_exact": exact.tolist(),
    }
    return Figure(
        "Lower bound on an unbiased estimate's error",
        data,
        {"data": [surface], "layout": scales("ε", "δ", x_log=True, y_log=True)},
        notes=("The exact bound lies below the theorem's: for a given (ε, δ) less noise is enough.",),
    )


def two_clouds(seed: int) -> tuple[Array, Array]:
    """50 points of N(0, I) with y = +1 and 50 of N([0, 5], I) with y = −1 (§3.1)."""
    rng = np.random.default_rng([seed, 31])
    y = np.repeat([1.0, -1.0], 50)
    return rng.normal(size=(100, 2)) + np.outer(y < 0, [0, 5]), y


def figure3(*, simulations: int = 100, seed: int = 0, on_step: Callable[[int, int], None] = silent) -> Figure:
    """Two clouds under optimal noise at λ = 1e-4, 1e-2, 1, and the separating lines."""
    x, y = two_clouds(seed)
    clouds, printed = {"original": x}, []
    for step, (lam, paper) in enumerate([(1e-4, 200.0), (1e-2, 20.0), (1.0, 2.0)]):
        noise = Gaussian(np.ones(2), lam)
        clouds[f"λ = {lam:g}"] = x + noise.sample(0, 100, _key(seed, "fig3", 0))
        square = [
            (noise.sample(0, 100, _key(seed, "fig3", k)) ** 2).sum(axis=1).mean() for k in range(simulations)
        ]
        ours = bounds(noise, TableMoments.of(x)).min_row
        measured, error = float(np.mean(square)), float(np.std(square) / np.sqrt(simulations))
        printed += [
            Printed(f"bound, λ = {lam:g}", paper, ours),
            Printed(f"error of x̄ measured, λ = {lam:g}", paper, measured, error),
        ]
        on_step(step + 1, 3)
    return _clouds("Separating lines under optimal noise", clouds, y, tuple(printed), ())


def figure4(*, simulations: int = 100, seed: int = 0, on_step: Callable[[int, int], None] = silent) -> Figure:
    """The same clouds under correlated noise, m = 100: the line stays; the bound over many draws of the
    clouds.
    """
    x, y = two_clouds(seed)
    released, check = release_preserving(x, y, theta=THETA, rho=RHO, m=100.0, key=_key(seed, "fig4", 0))
    draws = _DRAWS * simulations
    least = []
    for k in range(draws):
        noise, _ = preserving_noise(*two_clouds(seed + k), theta=THETA, rho=RHO, m=100.0)
        least.append(100.0 * noise.row_factors(0, 100).min())
        on_step(k + 1, draws)
    ranks = 0.5 + np.array([-0.98, 0.0, 0.98]) / np.sqrt(draws)  # of the median and its 95 % interval
    low, median, high = np.quantile(least, ranks.clip(0, 1))
    rare, usual = np.quantile(least, [0.05, 0.95])
    notes = (
        f"The paper's 80.5 belongs to its own draw: over {draws:,} draws the bound has median {median:.1f} "
        f"(95 % interval {low:.1f} to {high:.1f}), 5 and 95 % quantiles {rare:.1f} and {usual:.1f}.",
        f"Solving the released points again moves the classifier by {check.change:.1e} (relative).",
    )
    printed = (Printed("min_i bound, m = 100", 80.5, float(least[0])),)
    clouds = {"original": x, "correlated, m = 100": released}
    return _clouds("The classifier stays under correlated noise", clouds, y, printed, notes)


def _clouds(
    title: str, clouds: Mapping[str, Array], y: Array, printed: tuple[Printed, ...], notes: tuple[str, ...]
) -> Figure:
    """Points and their separating lines, one trace each."""
    data: dict[str, list[Any]] = {name: [] for name in ("cloud", "label", "x1", "x2")}
    traces = []
    for name, points in clouds.items():
        data["cloud"] += [name] * len(y)
        data["label"] += y.tolist()
        data["x1"] += points[:, 0].tolist()
        data["x2"] += points[:, 1].tolist()
        markers = {"symbol": ["circle" if label > 0 else "x" for label in y]}
        traces.append(line(name, points[:, 0], points[:, 1], mode="markers", marker=markers))
        s = solve_svm(points, y, theta=THETA, rho=RHO)
        ends = np.array([points[:, 0].min(), points[:, 0].max()])
        if s.alpha[1]:
            traces.append(line(f"{name}: line", ends, -(s.beta + s.alpha[0] * ends) / s.alpha[1]))
    return Figure(title, data, {"data": traces, "layout": scales("x₁", "x₂")}, printed, notes=notes)


def _key(seed: int, figure: str, simulation: int) -> bytes:
    """The key of one simulation's noise."""
    return secret_from_seed(seed, "far", figure, str(simulation))
