"""The work of an audit is counted: a model is trained once, and read once, whatever asks for it."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import messytables
import numpy as np
import pytest
from thinned import first

from vflens.array import ScaledColumns
from vflens.attacks import clear_features
from vflens.defenses._row_noise import RowNoise
from vflens.defenses.dp_gaussian import DPGaussian
from vflens.defenses.dp_laplace import DPLaplace
from vflens.defenses.label_only import LabelOnly
from vflens.experiments.audit import defenses, models
from vflens.experiments.audit.bench import Plan, audited
from vflens.experiments.audit.defenses import ATTACKED_MODELS
from vflens.experiments.audit.models import alone, simulate, simulate_several
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import AuditSubject, load_subject
from vflens.experiments.audit.words import sentences
from vflens.experiments.run.own_tables import describe
from vflens.models.stacked import Course, fit, side_by_side
from vflens.numerics.factorization import factorize
from vflens.plugins.attack import LinearAttack
from vflens.plugins.chain import DefenseChain
from vflens.plugins.together import Together
from vflens.registry import ATTACKS, DEFENSES
from vflens.types import Array, ColumnInfo, Exchange, Owner, Phase

DEFENDED: Any = ("dp_gaussian", {"level": 0.5}, DPGaussian), ("label_only", {}, LabelOnly)
PLAN = Plan(models=3, known=15, rows=200, seed=3)
COST_MODELS = 5


def _silent(stage: str, done: int, total: int) -> None: ...


def _subject(**more: Any) -> AuditSubject:
    x = np.random.default_rng(4).random((150, 3))
    return AuditSubject("mine", tuple(ColumnInfo(n, 0.0, 1.0) for n in "abc"), x, **{"classes": 3, **more})


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many models were trained, in how many stacks, how many of them differ, and how many trainings were
    factorized.
    """
    counted, seen = Counter[str](), set[bytes]()

    def fitted(courses: Sequence[Course], *rest: Any) -> tuple[Array, Array]:
        found = fit(courses, *rest)
        counted["trained"] += len(courses)
        counted["stacks"] += 1
        seen.update(weight.tobytes() for weight in found[0])
        counted["different"] = len(seen)
        return found

    def factorized(*rest: Any, **more: Any) -> Any:
        counted["read"] += 1
        return factorize(*rest, **more)

    monkeypatch.setattr(models, "fit", fitted)
    monkeypatch.setattr(clear_features, "factorize", factorized)
    monkeypatch.setattr(defenses, "COST_MODELS", COST_MODELS)
    monkeypatch.setattr(defenses, "candidates", lambda: iter(DEFENDED))
    return counted


#: Undefended models, those of the other party alone, and those under the one defence that acts in training.
TRAINED = 3 * COST_MODELS


def test_a_model_is_trained_once_and_read_once(work: Counter[str]) -> None:
    audit(_subject(), PLAN, _silent)
    assert work["trained"] == work["different"] == TRAINED
    assert work["read"] == 2 * ATTACKED_MODELS  # without the defence, and with it
    assert work["stacks"] < TRAINED


@pytest.mark.parametrize(
    "made",
    first([messytables.hospital, messytables.bank, messytables.insurer], 0),
    ids=lambda made: made.__name__,
)
def test_messy_tables_end_with_a_verdict(tmp_path: Path, work: Counter[str], made: Any) -> None:
    """From the description that the check writes, without a flag."""
    describe(made(tmp_path, 1_000), tmp_path / "own.toml")
    subject = load_subject(str(tmp_path / "own.toml"), classes=None, columns=None, id_column="id")
    verdict = " ".join(sentences(audit(subject, PLAN, _silent)))
    assert "oin as planned" in verdict
    assert "No advice yet" not in verdict
    assert work["trained"] == TRAINED
    assert work["read"] <= 2 * ATTACKED_MODELS


@pytest.mark.parametrize("number", [False, True])
@pytest.mark.parametrize("defense", [[], [("dp_gaussian", DPGaussian())]], ids=["plain", "defended"])
def test_models_side_by_side_have_the_bits_that_each_has_alone(number: bool, defense: Any) -> None:
    subject = _subject(**({"classes": 1, "label": ColumnInfo("y", 0.0, 9.0)} if number else {}))

    def rngs() -> list[np.random.Generator]:
        return [PLAN.rng("trained", i) for i in range(7)]

    several = simulate_several(subject, "trained", rngs(), defense)
    single = [simulate(subject, "trained", rng, defense) for rng in rngs()]
    assert len({world.weight.tobytes() for world in several}) == 7
    for one, other in zip(several, single, strict=True):
        assert one.training == other.training
        for name in ("weight", "bias", "released", "own_weight", "labels", "trained"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
    together = alone(several, rngs())
    assert all(
        np.array_equal(z, alone([w], [rng])[0]) for z, w, rng in zip(together, single, rngs(), strict=True)
    )


@pytest.mark.parametrize("kind", [DPGaussian, DPLaplace])
def test_rows_of_several_have_the_noise_of_each(kind: type[RowNoise]) -> None:
    x = np.random.default_rng(2).normal(size=(3, 40, 2))
    owner, defense = Owner("passive", ScaledColumns(x[0]), None, 2, parameters={}), kind()
    chains = [DefenseChain(lambda: owner, [("noise", defense)], bytes([i]) * 32) for i in range(3)]
    exchange = Exchange("audit", Phase.TRAIN, 1, 7)
    rows = [np.roll(np.arange(40, dtype=np.int32), i) for i in range(3)]
    several: Any = Together(
        [c.context(0, "on_embedding", exchange, r) for c, r in zip(chains, rows, strict=True)]
    )
    together = defense.on_embedding(x.reshape(-1, 2), several).reshape(x.shape)
    for chain, own, seen, at in zip(chains, x, together, rows, strict=True):
        assert np.array_equal(seen, chain.fold("on_embedding", own, exchange, at))


def test_noise_is_drawn_once_for_all_models_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = list[int]()
    plain = RowNoise.on_embedding

    def counted(self: RowNoise, h: Array, ctx: Any) -> Array:
        sizes.append(len(h))
        return plain(self, h, ctx)

    monkeypatch.setattr(RowNoise, "on_embedding", counted)
    worlds = simulate_several(
        _subject(), "trained", [PLAN.rng("trained", i) for i in range(4)], [("dp", DPGaussian())]
    )
    in_training = sizes[: len(worlds[0].sent)]
    assert sum(in_training) == sum(len(sent.rows) for world in worlds for sent in world.sent)


def test_a_sweep_solves_stacks_however_many_steps_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sizes of batches, one of them with fewer rows than columns."""
    called = Counter[str]()
    for name in ("solve", "pinv", "lstsq", "qr", "svd"):
        real = getattr(np.linalg, name)

        def counting(*of: Any, name: str = name, real: Any = real, **more: Any) -> Any:
            called[name] += 1
            return real(*of, **more)

        monkeypatch.setattr(np.linalg, name, counting)
    rng = np.random.default_rng(0)
    counts = []
    for epochs in (6, 24):
        steps = []
        for _ in range(epochs):
            order = rng.permutation(86).astype(np.int32)
            steps += [
                (order[i : i + 20], rng.normal(size=(len(order[i : i + 20]), 2))) for i in range(0, 86, 20)
            ]
        called.clear()
        factorize(steps, 86, 7, 5)
        counts.append(called.copy())
    assert counts[0] == counts[1]
    assert sum(counts[0].values()) <= 6 * 6


def test_stacks_are_of_a_power_of_two() -> None:
    for count in range(1, 60):
        for most in (1, 3, 16, 99):
            cut = list(side_by_side(count, most))
            assert [i for several in cut for i in several] == list(range(count))
            assert {len(several) for several in cut} <= {1, 2, 4, 8, 16}
            assert max(map(len, cut)) <= most


def test_no_audit_runs_what_it_does_not_load() -> None:
    """What is left out because it needs torch would not run either."""
    left_out = set(ATTACKS.names()) - set(ATTACKS.without("torch"))
    assert {"wmi", "amc"} <= left_out
    assert not any(issubclass(ATTACKS.get(name), LinearAttack) for name in left_out)
    for phase in (Phase.PREDICT, Phase.TRAIN):
        assert {name for name, *_ in audited(phase)}.isdisjoint(left_out)
    acting = {"on_inputs", "on_embedding", "on_scores", "on_parameters"}
    for name in set(DEFENSES.names()) - set(DEFENSES.without("torch")):
        kind: Any = DEFENSES.get(name)
        assert kind.hooks().isdisjoint(acting)


def test_an_audit_loads_neither_torch_nor_pages_of_statistics() -> None:
    code = (
        "import sys, numpy as np\n"
        "from vflens.experiments.audit.bench import Plan, Bench\n"
        "from vflens.experiments.audit import run, defenses\n"
        "from vflens.experiments.audit.subject import AuditSubject\n"
        "from vflens.types import ColumnInfo\n"
        "from vflens.defenses.label_only import LabelOnly\n"
        "defenses.candidates = lambda: iter([('label_only', {}, LabelOnly)])\n"
        "x = np.random.default_rng(0).random((60, 2))\n"
        "subject = AuditSubject('m', tuple(ColumnInfo(n, 0.0, 1.0) for n in 'ab'), x, 2)\n"
        "run.audit(subject, Plan(models=1, known=5, rows=50), lambda *of: None)\n"
        "slow = {'torch', 'scipy.stats', 'scipy.optimize', 'plotly', 'cvxpy', 'pandas'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
