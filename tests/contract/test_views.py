"""An adversary has what its party received and owns; it cannot reach truth, wire or model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import horizontal
import numpy as np
import pyarrow.parquet as pq
import pytest
from laboratory import close, experiment, federation, trained
from oneprocess import LocalFederation
from pydantic import Field
from thinned import thinned

from vflens.config.compatibility import acts_among
from vflens.errors import ConfigError, DefenseError, KnowledgeError
from vflens.experiments.run.run import run
from vflens.plugins.attack import Attack
from vflens.plugins.chain import DefenseChain
from vflens.plugins.defense import Context, Defense
from vflens.plugins.views.vertical import AdversaryView
from vflens.protocol.roles import ROLES
from vflens.registry import DEFENSES
from vflens.types import Array, Estimate, Knowledge, Owner, Phase, Point, Released, Role, statuses

# --- spies in a real federation


def _received(point: Point, view: AdversaryView) -> list[Released]:
    return list(view.received(point))


READS: dict[str, Callable[[AdversaryView], object]] = {
    **{f"received {p.value}": partial(_received, p) for p in Point},
    "own features": lambda view: view.own("features"),
    "own labels": lambda view: view.own("labels"),
    "own parameters": lambda view: view.own("parameters"),
    "metadata": lambda view: view.metadata(),
    "scores": lambda view: view.scores(),
    "unknown parameters": lambda view: view.unknown_parameters(),
    "moments": lambda view: view.moments(),
}


class _Spy(Attack):
    """Tries every read and guesses one half."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset()
    seen: dict[str, str] = Field(default_factory=dict)

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        for name, read in READS.items():
            try:
                read(view)
            except KnowledgeError as error:
                self.seen[name] = str(error)
            else:
                self.seen[name] = "granted"
        return _half(view)


class _InformedSpy(_Spy):
    needs: ClassVar[frozenset[Knowledge]] = frozenset(Knowledge)
    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)


def _half(view: AdversaryView) -> Estimate:
    n = len(view.rows)
    return Estimate(view.target, view.rows, np.full((n, view.widths()[view.target]), 0.5), statuses(n))


def _with(local: LocalFederation, **attacks: Attack) -> LocalFederation:
    local.active.adversary.attacks.update(attacks)
    return local


def test_what_is_not_declared_is_refused_read_by_read(tmp_path: Path) -> None:
    spy = _Spy()
    _with(federation(tmp_path), spy=spy).run()
    assert set(spy.seen) == set(READS)
    for name, outcome in spy.seen.items():
        assert outcome.startswith("the attack read '"), name
        assert outcome.endswith("' without declaring it in `needs`"), name


def test_what_was_never_disclosed_is_refused_even_to_who_declares_everything(tmp_path: Path) -> None:
    spy = _InformedSpy()
    _with(federation(tmp_path, disclose=[]), spy=spy).run()
    assert spy.seen["unknown parameters"] == "party 'passive' never disclosed its parameters to 'active'"
    assert spy.seen["moments"] == "party 'passive' disclosed neither moments nor auxiliary rows to 'active'"
    granted = {name for name, outcome in spy.seen.items() if outcome == "granted"}
    assert granted == set(READS) - {"unknown parameters", "moments"}


class _Listener(Attack):
    """Notes what it hears."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.EMBEDDINGS, Knowledge.SCORES})
    heard: dict[str, set[Phase]] = Field(default_factory=dict)

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        for point in (Point.EMBEDDING, Point.SCORES):
            self.heard[point] = {r.exchange.phase for r in view.received(point)}
        return _half(view)


class _Everywhere(_Listener):
    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)


def test_training_traffic_is_heard_only_where_declared(tmp_path: Path) -> None:
    secure, clear = _Listener(), _Everywhere()
    _with(federation(tmp_path), secure=secure, clear=clear).run()
    assert secure.heard == {Point.EMBEDDING: set(), Point.SCORES: {Phase.PREDICT}}
    assert clear.heard == {Point.EMBEDDING: {Phase.TRAIN}, Point.SCORES: {Phase.PREDICT}}


class _Vandal(Attack):
    """Writes into everything that it is given."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(Knowledge)
    done: list[bool] = Field(default_factory=list)

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        arrays = [view.rows, view.own("features"), view.own("labels"), view.own("parameters"), view.scores()]
        arrays += [*view.unknown_parameters(), *(r.rows for r in view.received(Point.SCORES))]
        for array in arrays:
            if array.flags.writeable:
                array[...] = 0
        self.done.append(True)
        return _half(view)


def test_an_attack_that_writes_into_its_view_changes_no_run(tmp_path: Path) -> None:
    vandal = _Vandal()
    found = []
    for name, attacks in (("clean", {}), ("vandal", {"a": vandal})):
        local = _with(federation(tmp_path / name), **attacks)
        local.run()
        run_ = local.active.run
        scores = local.active.predictions.received(run_.federation.predict)
        own = [
            run_.inputs[:].tobytes(),
            local.active.run.labels.tobytes(),
            run_.model.parameters()["weight"].tobytes(),
        ]
        order = local.active.gate.released_rows(Point.EMBEDDING, 1).tolist()
        found.append((trained(local), scores.tobytes(), own, order, _mse(tmp_path / name, "half_star")))
    assert vandal.done
    assert found[0] == found[1]


# --- attacks that fail


def _rows(home: Path, party: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(home / party / "metrics.parquet").to_pylist()
    return rows


def _mse(home: Path, attack: str) -> list[float]:
    return [r["value"] for r in _rows(home, "passive") if r["metric"] == "mse" and r["attack"] == attack]


def _skipped(home: Path, metric: str = "skipped") -> dict[str, str]:
    rows = [r for r in _rows(home, "active") if r["metric"] == metric]
    assert len({r["attack"] for r in rows}) == len(rows), "each attack is reported once"
    return {r["attack"]: r["detail"] for r in rows}


class _Failing(Attack):
    """Fails in a way of its own."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset()
    how: str

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        good = _half(view)
        bad: dict[str, Callable[[], Any]] = {
            "None": lambda: None,
            "an array": lambda: good.values,
            "another target": lambda: Estimate("b", good.rows, good.values, good.status),
            "a column too few": lambda: Estimate(good.target, good.rows, good.values[:, 1:], good.status),
            "other rows": lambda: Estimate(good.target, good.rows[::-1], good.values, good.status),
            "too few states": lambda: Estimate(good.target, good.rows, good.values, good.status[1:]),
            "NaN": lambda: Estimate(good.target, good.rows, good.values * np.nan, good.status),
            "huge": lambda: Estimate(good.target, good.rows, good.values * 1e200, good.status),
            "division": lambda: 1 // 0,
        }
        answer: Estimate = bad[self.how]()
        return answer


FAILURES = {
    "None": "it must return an Estimate of 'passive'",
    "an array": "it must return an Estimate of 'passive'",
    "another target": "it must return an Estimate of 'passive'",
    "a column too few": "values have the shape (18, 3), not (18, 4)",
    "other rows": "rows and status must be those of the 18 rows of its view",
    "too few states": "rows and status must be those of the 18 rows of its view",
    "NaN": "its values are not all finite and moderate: set its rate, or weights, lower",
    "huge": "its values are not all finite and moderate: set its rate, or weights, lower",
    "division": "ZeroDivisionError: integer division or modulo by zero",
}


@pytest.mark.parametrize("how", FAILURES)
def test_an_attack_that_fails_is_reported_and_costs_the_others_nothing(tmp_path: Path, how: str) -> None:
    local = _with(federation(tmp_path), bad=_Failing(how=how))
    local.run()
    assert _skipped(tmp_path, "failed") == {"bad": FAILURES[how]}
    assert _skipped(tmp_path) == {}
    assert _mse(tmp_path, "bad") == []
    assert len(_mse(tmp_path, "half_star")) == 1
    assert not (tmp_path / "active" / "estimates" / "passive.bad.npz").exists()


def test_withheld_parameters_skip_the_attacks_that_need_them(tmp_path: Path) -> None:
    federation(tmp_path, defenses=[{"name": "withhold_parameters", "at": "passive"}]).run()
    assert _skipped(tmp_path) == {"half_star": "parameters of party 'passive' were withheld by a defence"}
    assert len(_mse(tmp_path, "half")) == 1


def test_without_moments_the_attacks_that_need_them_are_skipped(tmp_path: Path) -> None:
    federation(tmp_path, attacks=[{"name": n} for n in ("lmmse", "mean_star", "ls")]).run()
    reason = "party 'passive' disclosed neither moments nor auxiliary rows to 'active'"
    assert _skipped(tmp_path) == {"lmmse": reason, "mean_star": reason}


# --- defences that cannot act, or did not

NEVER: list[tuple[dict[str, Any], list[dict[str, Any]], str]] = [
    (
        {"name": "label_only", "at": "passive"},
        [],
        "^defence 'label_only' at passive 'passive' would never act: it changes scores, "
        "this party handles batch, dataset, embedding, inputs, penalty, received, wrap_model: move it to "
        "another party, or disclose what it changes$",
    ),
    (
        {"name": "withhold_parameters", "at": "passive"},
        [],
        "^defence 'withhold_parameters' at passive 'passive' would never act: it changes parameters, this "
        "party handles",
    ),
    (
        {"name": "gaussian_scores", "at": "active"},
        [],
        "^defence 'gaussian_scores' at active 'active' would never act: it changes scores",
    ),
    (
        {"name": "withhold_parameters", "at": "coordinator"},
        [{"what": "parameters", "to": "active"}],
        "^defence 'withhold_parameters' at coordinator 'coordinator' would never act: it changes parameters, "
        "this party handles embedding, scores",
    ),
]


@pytest.mark.parametrize(("defence", "grants", "sentence"), NEVER, ids=range(len(NEVER)))
def test_a_defence_that_can_never_act_is_refused_before_the_start(
    tmp_path: Path, defence: dict[str, Any], grants: list[dict[str, Any]], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        run(experiment(tmp_path, defenses=[defence], disclose=grants), in_process=True)
    assert not list(tmp_path.glob("*/*/*/transcript/index.jsonl")) or not any(
        f.stat().st_size for f in tmp_path.glob("*/*/*/transcript/index.jsonl")
    )


class _Idle(Defense):
    """Defends a value that never occurs."""

    def on_dataset(self, x: Array, ctx: Context) -> Array:
        return x + 1


def test_a_defence_whose_hooks_never_fired_fails_the_run(tmp_path: Path) -> None:
    local = federation(tmp_path)
    owner = Owner("coordinator")
    local.coordinator.gate._chain = DefenseChain(lambda: owner, [("idle", _Idle())], b"secret")
    sentence = (
        "defence 'idle' of 'coordinator' never acted in this run: remove it, or configure what it acts on"
    )
    with pytest.raises(DefenseError, match=f"^{sentence}$"):
        local.run()
    for party in ("active", "passive", "coordinator"):
        status = (tmp_path / party / "status.json").read_text(encoding="utf-8")
        assert '"state": "failed"' in status
        assert sentence in status


class _Bug(Defense):
    """Not a mistake that it could explain."""

    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        raise RuntimeError("a bug")


def test_a_bug_in_the_middle_of_a_run_is_no_interruption(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.coordinator.gate._chain = DefenseChain(lambda: Owner("coordinator"), [("bug", _Bug())], b"secret")
    with pytest.raises(RuntimeError, match="a bug"):
        local.run()
    status = (tmp_path / "active" / "status.json").read_text(encoding="utf-8")
    assert '"state": "failed", "reason": "RuntimeError: a bug"' in status


# --- statuses, so that the tests above mean something


def test_a_finished_run_says_so(tmp_path: Path) -> None:
    federation(tmp_path).run()
    for party in ("active", "passive", "coordinator"):
        assert '"state": "finished"' in (tmp_path / party / "status.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", thinned([(name,) for name in DEFENSES.names()], 3))
def test_every_defence_at_home_acts(tmp_path: Path, name: str) -> None:
    """The other side of the refusals: each installed defence where it belongs lets a run finish."""
    kind: type[Defense] = DEFENSES.get(name)
    homes = [role for role, facts in ROLES.items() if acts_among(facts.hooks, kind)]
    labels = kind().needs_labels  # a passive party that is dealt has none
    role = next(role for role in homes if role is not Role.PASSIVE or not labels)
    if role is Role.CLIENT:
        _acts_at_a_client(tmp_path, kind, name)
        return
    settings: dict[str, Any] = {"training": {"epochs": 1, "batch_size": 40, "learning_rate": 0.1}}
    if kind.hooks() <= {"wrap_model", "penalty"}:  # softmax regression has no layers
        settings["model"] = {"architecture": "mlp", "width": 3, "hidden": [4]}
    elif role is not Role.PASSIVE or "on_parameters" in kind.hooks():
        settings["disclose"] = [{"what": "parameters", "to": to} for to in ("active", "coordinator")]
    roles = (Role.PASSIVE, Role.ACTIVE) if kind.together else (role,)
    local = federation(tmp_path, defenses=[{"name": name, "at": at.value} for at in roles], **settings)
    local.run()
    (party,) = (m for m in local.members() if m.name == role.value)
    assert [type(d) for d in party.chain.defenses] == [kind]
    assert party.chain.unfired() == []


def _acts_at_a_client(folder: Path, kind: type[Defense], name: str) -> None:
    split: dict[str, Any] = {}
    if "on_received" in kind.hooks():
        split = {"model": {"architecture": "mlp"}, "horizontal": {"method": "splitfed"}}
    files = horizontal.deal(folder, {"a": horizontal.table(30, 1)}, defenses=[{"name": name}], **split)
    local = horizontal.federation(files)
    local.run()
    close(local)
    chain = horizontal.clients_of(local)["a"].chain
    assert [type(d) for d in chain.defenses] == [kind]
    assert chain.unfired() == []
