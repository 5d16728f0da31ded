"""What every attack promises, checked for each plug-in; a new file in ``attacks/`` is held to it at once."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

from vflens import attacks
from vflens.config import Plugin, build_plugins
from vflens.errors import ConfigError, KnowledgeError, PluginError, ProtocolError
from vflens.models.settings import Training
from vflens.plugins.attack import Attack, LinearAttack
from vflens.plugins.views.vertical import AdversaryView
from vflens.registry import ATTACKS
from vflens.storage.journal import Messages
from vflens.types import (
    Array,
    ColumnInfo,
    Exchange,
    Knowledge,
    Moments,
    PartyInfo,
    Phase,
    Point,
    Released,
    Role,
    RowStatus,
    Setting,
)

ALL = ATTACKS.names()
CLASSES: Mapping[str, type[Attack]] = {name: ATTACKS.get(name) for name in ALL}
#: Those of softmax regression's columns; ``test_split_attacks.py`` has the others.
NAMES = [
    n
    for n in ALL
    if CLASSES[n].estimates == "features"
    and Knowledge.ARCHITECTURE not in CLASSES[n].needs
    and Setting.VERTICAL in CLASSES[n].settings
]
LINEAR = [n for n in NAMES if issubclass(CLASSES[n], LinearAttack)]
SOLVERS = [n for n in LINEAR if Knowledge.SCORES in CLASSES[n].needs]  # those that use the equations

#: Those that tell training rows do without a row's own scores.
WITHOUT_OWN_SCORES = [n for n in NAMES if Phase.TRAIN in CLASSES[n].estimated_rows]

#: How near an attack must come to a unique solution: rounding times the condition of these systems (< 1e3).
EXACT = 1e-9
EXACT_SOLVERS = [n for n in SOLVERS if issubclass(c := CLASSES[n], LinearAttack) and c.exact]


def test_registry_equals_the_files_on_disk() -> None:
    folder = Path(attacks.__file__).parent
    assert sorted(p.stem for p in folder.iterdir() if p.suffix == ".py" and p.stem[0] != "_") == ALL
    assert len(NAMES) >= 8
    assert len(SOLVERS) >= 5


@pytest.mark.parametrize("name", ALL)
def test_has_a_one_line_summary(name: str) -> None:
    assert 10 < len(ATTACKS.summary(name)) <= 110


@pytest.mark.parametrize(
    ("name", "field"),
    [(n, f) for n in ALL for f in CLASSES[n].model_fields if f.endswith(("steps", "sweeps"))],
)
def test_iterations_have_a_bound(name: str, field: str) -> None:
    plugin = Plugin.model_validate({"name": name, field: 10**21})
    sentence = rf"^attacks plug-in '{name}': {field}: give 1000000 or less \(got 10{{21}}\)"
    with pytest.raises(ConfigError, match=sentence):
        build_plugins(ATTACKS, [plugin])


# -- a federation as the active party sees it ---------------------------------------------------------


@dataclass(frozen=True)
class World:
    """Two passive parties of three columns, or one of as many as an attack is made for; exact scores but for
    some rows, everything disclosed to the active party."""

    truth: Array
    transcript: Sequence[Released]
    own: Mapping[str, Array]
    saturated: Array
    blocks: Mapping[str, slice]

    @property
    def width(self) -> int:
        block = self.blocks["second"]
        return int(block.stop - block.start)

    def view(
        self,
        rows: Array | None = None,
        needs: frozenset[Knowledge] = frozenset(Knowledge),
        view: type[AdversaryView] = AdversaryView,
    ) -> AdversaryView:
        columns = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(self.width))
        return view(
            party="active",
            target="second",
            rows=np.arange(len(self.truth), dtype=np.int32) if rows is None else rows,
            n_classes=4,
            transcript=Messages(self.transcript),
            own=self.own,
            parties=[
                PartyInfo("active", Role.ACTIVE, n_classes=4),
                *(PartyInfo(p, Role.PASSIVE, columns=columns) for p in self.blocks),
            ],
            needs=needs,
            phases=frozenset(Phase),
            training=np.arange(len(self.truth), dtype=np.int32),
            schedule=Training(epochs=3),
        )


def _released(sender: str, phase: Phase, point: Point, rows: Array, **tensors: Array) -> Released:
    return Released(sender, Exchange("run", phase, 0, 0), point, rows, tensors=tensors)


@pytest.fixture
def world(request: pytest.FixtureRequest) -> World:
    only = CLASSES[request.node.callspec.params["name"]].unknown_columns
    if Phase.TRAIN in CLASSES[request.node.callspec.params["name"]].phases:
        only = 3  # sums of several parties' logits are not told apart
    blocks = {"second": slice(0, only)} if only else {"first": slice(0, 3), "second": slice(3, 6)}
    rng, d = np.random.default_rng(5), only or 6
    n, nothing = 10, np.zeros(0, np.int32)
    truth, features = rng.random((n, d)), rng.random((n, 4))
    weight, own_weight, bias = rng.normal(size=(4, d)), rng.normal(size=(4, 4)), rng.normal(size=4)
    if only:
        bias = weight.sum(axis=1)  # the signs that a black-box attack takes for known
    log_c = log_softmax(truth @ weight.T + features @ own_weight.T + bias, axis=1)
    log_c[2] = [-np.inf, 0.0, -np.inf, -np.inf]
    log_c[5, 1] = -np.inf
    K = np.atleast_2d(np.cov(truth.T)) + 0.01 * np.eye(d)
    rows = np.arange(n, dtype=np.int32)
    transcript = [_released("coordinator", Phase.PREDICT, Point.SCORES, rows, scores=log_c)]
    for party, block in blocks.items():
        offset = {"bias": bias} if party == min(blocks) else {}
        disclosed = {
            Point.PARAMETERS: {"weight": weight[:, block], **offset},
            Point.MOMENTS: {"mean": truth[:, block].mean(0), "covariance": K[block, block]},
            Point.AUXILIARY: {"features": rng.random((n, block.stop - block.start))},
        }
        of_rows = {Point.AUXILIARY: rows}
        transcript += [
            _released(party, Phase.DISCLOSE, p, of_rows.get(p, nothing), **t) for p, t in disclosed.items()
        ]
        noisy = truth[:, block] + rng.normal(size=(n, block.stop - block.start))
        transcript.append(_released(party, Phase.DISCLOSE, Point.DATASET, rows, dataset=noisy))
    for weights in rng.normal(size=(3, 4, d)):  # logits of three steps of training
        transcript.append(
            _released("coordinator", Phase.TRAIN, Point.EMBEDDING, rows, embedding=truth @ weights.T)
        )
    masked = rng.integers(-(2**63), 2**63, (n, d + 1))  # of protected training, with the bias
    transcript.append(_released("first", Phase.DISCLOSE, Point.SHARES, rows, features=masked))
    opened = rng.integers(-(2**63), 2**63, (n, 4))
    transcript.append(_released("first", Phase.TRAIN, Point.OPENING, rows, logits=opened, rho=opened))
    own = {"features": features, "labels": rng.integers(0, 4, n), "parameters": own_weight}
    return World(truth, transcript, own, np.isin(rows, [2, 5]), blocks=blocks)


def _digest(world: World) -> str:
    arrays = [t for r in world.transcript for t in (r.rows, *(r.tensors or {}).values())]
    return hashlib.sha256(b"".join(a.tobytes() for a in [*arrays, *world.own.values()])).hexdigest()


def _run(name: str, view: AdversaryView) -> Any:
    return CLASSES[name]().reconstruct(view, rng=np.random.default_rng(3))


# -- every attack ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_shapes_dtypes_and_finite_values(name: str, world: World) -> None:
    estimate = _run(name, world.view())
    assert estimate.target == "second"
    assert estimate.values.shape == (10, world.width)
    assert estimate.values.dtype == np.float64
    assert np.isfinite(estimate.values).all()
    np.testing.assert_array_equal(estimate.rows, np.arange(10))
    assert set(estimate.status) <= {str(s) for s in RowStatus}
    assert all(len(extra) == 10 for extra in estimate.extras.values())


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_give_no_estimates(name: str, world: World) -> None:
    assert _run(name, world.view(np.zeros(0, np.int32))).values.shape == (0, world.width)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_answer(name: str, world: World) -> None:
    first, second = _run(name, world.view()), _run(name, world.view())
    assert first.values.tobytes() == second.values.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_the_view_is_left_unchanged(name: str, world: World) -> None:
    before = _digest(world)
    _run(name, world.view())
    assert _digest(world) == before


class SpyingView(AdversaryView):
    """Grants everything and remembers what was asked for."""

    def _check(self, knowledge: Knowledge) -> None:
        vars(self).setdefault("read", set()).add(knowledge)


@pytest.mark.parametrize("name", NAMES)
def test_reads_nothing_that_it_does_not_declare(name: str, world: World) -> None:
    spy = world.view(needs=frozenset(), view=SpyingView)
    _run(name, spy)
    read = vars(spy).get("read", set())
    assert read <= CLASSES[name].needs
    for knowledge in read:
        with pytest.raises(KnowledgeError, match=f"read '{knowledge}' without declaring it"):
            _run(name, world.view(needs=CLASSES[name].needs - {knowledge}))


@pytest.mark.parametrize(
    "name", [n for n in NAMES if Knowledge.SCORES in CLASSES[n].needs and n not in WITHOUT_OWN_SCORES]
)
def test_saturated_rows_get_a_status(name: str, world: World) -> None:
    np.testing.assert_array_equal(_run(name, world.view()).status != RowStatus.OK, world.saturated)


@pytest.mark.parametrize("name", [n for n in NAMES if CLASSES[n].rowwise])
def test_rows_are_estimated_one_by_one(name: str, world: World) -> None:
    whole = _run(name, world.view())
    order = np.random.default_rng(0).permutation(10).astype(np.int32)
    np.testing.assert_allclose(_run(name, world.view(order)).values, whole.values[order], rtol=0, atol=1e-9)
    single = [_run(name, world.view(np.array([i], np.int32))) for i in range(10)]
    np.testing.assert_allclose(np.concatenate([s.values for s in single]), whole.values, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(np.concatenate([s.status for s in single]), whole.status)


def test_not_every_attack_is_rowwise() -> None:
    assert not CLASSES["random_guess"].rowwise


# -- every attack on A x = b' ------------------------------------------------------------------------


def _solve(name: str, A: Array, b: Array) -> Any:
    d = A.shape[1]
    moments = Moments(np.linspace(0.3, 0.6, d), np.diag(np.linspace(0.02, 0.1, d)))
    return attacks.estimate(name, A, b, rng=np.random.default_rng(3), moments=moments)


@pytest.mark.parametrize("name", EXACT_SOLVERS)
@pytest.mark.parametrize(("m", "d"), [(1, 1), (3, 1), (4, 4), (7, 4)])
def test_recovers_exactly_what_the_equations_determine(name: str, m: int, d: int) -> None:
    rng = np.random.default_rng(m)
    A, truth = rng.normal(size=(m, d)), rng.random((20, d))
    estimate = _solve(name, A, truth @ A.T)
    np.testing.assert_allclose(estimate.values, truth, rtol=0, atol=EXACT)
    assert (estimate.status == RowStatus.OK).all()


@pytest.mark.parametrize("name", EXACT_SOLVERS)
def test_the_basis_of_a_consistent_system_does_not_matter(name: str) -> None:
    rng = np.random.default_rng(1)
    A, T = rng.normal(size=(3, 7)), rng.normal(size=(3, 3))
    b = rng.random((20, 7)) @ A.T
    same, reference = _solve(name, T @ A, b @ T.T), _solve(name, A, b)
    np.testing.assert_allclose(same.values, reference.values, rtol=0, atol=EXACT)


@pytest.mark.parametrize("name", LINEAR)
def test_rows_without_any_solution_get_a_status(name: str) -> None:
    A = np.array([[1.0, 2.0], [2.0, 4.0]])
    estimate = _solve(name, A, np.array([[0.5, 1.0], [0.5, 2.0]]))
    assert list(estimate.status) == [RowStatus.OK, RowStatus.INCONSISTENT]


DEGENERATE: Mapping[str, tuple[Array, Array]] = {
    "no equations": (np.zeros((0, 3)), np.zeros((2, 0))),
    "no rows": (np.eye(3), np.zeros((0, 3))),
    "a zero row": (np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[0.0, 1.0]])),
    "A = 0": (np.zeros((2, 3)), np.zeros((2, 2))),
    "an equation twice": (np.ones((2, 3)), np.ones((4, 2))),
    "one feature": (np.ones((1, 1)), np.array([[0.25]])),
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("name", LINEAR)
def test_degenerate_systems_are_defined(name: str, case: str) -> None:
    A, b = DEGENERATE[case]
    estimate = _solve(name, A, b)
    assert estimate.values.shape == (len(b), A.shape[1])
    assert np.isfinite(estimate.values).all()
    assert (estimate.status == RowStatus.OK).all()


# -- estimate(), the plain-array entry ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: attacks.estimate("ls", [1.0], [[1.0]]), r"A has shape \(1,\): give a two-dimensional array"),
        (lambda: attacks.estimate("ls", [[1.0]], [1.0]), r"b has shape \(1,\): give a two-dimensional array"),
        (lambda: attacks.estimate("ls", [[1.0]], [[np.nan]]), "b holds NaN or infinity: leave"),
        (lambda: attacks.estimate("ls", [[np.inf]], [[1.0]]), "A holds NaN or infinity: leave"),
        (lambda: attacks.estimate("ls", [["1"]], [[1.0]]), "A is not an array of real numbers: give float64"),
        (lambda: attacks.estimate("ls", [[1.0]], [[1j]]), "b is not an array of real numbers: give float64"),
        (lambda: attacks.estimate("ls", [[1.0], [1.0, 2.0]], [[1.0]]), "A is not an array of real numbers"),
        (
            lambda: attacks.estimate("rcc2", [[1.0]], [[1e300]]),
            r"b holds entries beyond 1e\+50: divide A and b",
        ),
        (
            lambda: attacks.estimate("ls", [[1e-200]], [[0.0]]),
            "A holds no entry above 1e-50: multiply A and b",
        ),
        (lambda: attacks.estimate("ls", [[1.0]], [[1.0, 2.0]]), "b has 2 columns and A 1 row: give one"),
        (
            lambda: attacks.estimate("mean_star", [[1.0]], [[1.0]], moments=Moments(np.zeros(2))),
            r"moments.mean has shape \(2,\): give one mean per column of A, \(1,\)",
        ),
        (
            lambda: attacks.estimate("lmmse", [[1.0]], [[1.0]], moments=Moments(np.zeros(1), np.eye(2))),
            r"moments.covariance has shape \(2, 2\): give \(1, 1\)",
        ),
        (
            lambda: attacks.estimate(
                "lmmse", [[1.0]], [[1.0]], moments=Moments(np.array([np.nan]), np.eye(1))
            ),
            "moments hold NaN or infinity: leave them out",
        ),
    ],
)
def test_estimate_refuses_arrays_that_do_not_fit(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        call()


def test_estimate_lists_the_known_names() -> None:
    with pytest.raises(PluginError, match=f"unknown attacks plug-in 'nothing': known are {', '.join(ALL)}"):
        attacks.estimate("nothing", [[1.0]], [[1.0]])


def test_estimate_refuses_an_attack_that_is_not_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attacks, "ATTACKS", SimpleNamespace(get=lambda name: Attack, given={}))
    with pytest.raises(PluginError, match="attack 'other' does not solve A x = b: run it on a federation"):
        attacks.estimate("other", [[1.0]], [[1.0]])


def test_estimate_pays_for_no_slow_import() -> None:
    code = "import sys, attacks; attacks.estimate('ls', [[1.0]], [[1.0]]); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert "vflens.attacks.ls" in loaded
    assert not {"torch", "grpc", "cvxpy", "sklearn", "vflens.attacks.half"} & set(loaded)


@pytest.mark.parametrize(
    ("name", "moments", "message"),
    [
        ("mean_star", None, "mean_star needs the columns' means: disclose moments"),
        ("lmmse", None, "lmmse needs the columns' mean and covariance: disclose both"),
        ("lmmse", Moments(np.zeros(1)), "lmmse needs the columns' mean and covariance: disclose both"),
    ],
)
def test_moments_that_were_not_given_are_asked_for(name: str, moments: Moments | None, message: str) -> None:
    with pytest.raises(KnowledgeError, match=message):
        attacks.estimate(name, [[1.0]], [[1.0]], moments=moments)
