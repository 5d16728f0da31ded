"""Plug-ins of another package: known by the name they registered, and kept from their host's secret."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pytest
from commandline import Run, strict
from foreign import installed
from laboratory import experiment, federation, figures
from pydantic import BaseModel

from vflens.errors import ConfigError, DefenseError
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.audit.words import failed
from vflens.experiments.run.run import run
from vflens.models.part import Site
from vflens.plugins.defense import Context
from vflens.protocol.link import Party
from vflens.registry import Registry
from vflens.storage.journal import Journal, Reader
from vflens.storage.transcript import Transcript
from vflens.types import ColumnInfo, Exchange, Owner, Phase

MODULES = {
    "plugins": '''
from typing import ClassVar, Literal

import numpy as np

from vflens.models.families.softmax_regression import SoftmaxRegression
from vflens.numerics.linear_system import nearest_solution
from vflens.plugins.attack import Attack, LinearAttack, linear_estimate
from vflens.plugins.declared import Audited, Stated
from vflens.plugins.defense import Defense
from vflens.types import Estimate, Knowledge, statuses

GIVEN = []  # what VFLens gave to these plug-ins


class Curious(Defense):
    """Keeps all that it is given, and draws in every way."""

    def fit(self, owner, rng):
        GIVEN.append((owner, rng))
        return {"fitted": np.zeros(1)}

    def on_scores(self, log_c, ctx):
        ctx.stream("a"), ctx.key("b"), ctx.draw(lambda rng, n: rng.random(n))
        GIVEN.append(ctx)
        return log_c.copy()

    on_inputs = on_scores


class Informed(Curious):
    needs_parameters: ClassVar[bool] = True

    on_inputs = Defense.on_inputs


class Idle(Defense):
    """Acts on its owner's own predictions, of which there are none."""

    def on_dataset(self, x, ctx):
        return x

    def on_embedding(self, h, ctx):
        return h


class Family(SoftmaxRegression):
    """Keeps where its parts are built, and wraps what is no module."""

    unused_hooks: ClassVar[frozenset[str]] = frozenset()

    family: Literal["their_family"] = "their_family"

    def passive_part(self, site):
        GIVEN.append(site)
        GIVEN.append(site.wrap("a module"))
        return super().passive_part(site)


class Layer(Defense):
    def wrap_model(self, m, ctx):
        ctx.key("b")
        return f"a wrapped {m.removeprefix('a ')}"


class Looking(Attack):
    """Keeps its view."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(Knowledge)

    def reconstruct(self, view, *, rng):
        GIVEN.append(view)
        return Estimate(view.target, view.rows, np.full((len(view.rows), 4), 0.5), statuses(len(view.rows)))


class Center(LinearAttack):
    """The solution nearest to one quarter."""

    stated: ClassVar[Stated | None] = Stated(center=0.25)

    def solve(self, A, b, *, rng, moments=None):
        return linear_estimate(nearest_solution(A, b, np.full(A.shape[1], 0.25)), A, b)


class Few(Center):
    audited: ClassVar[Audited | None] = Audited(rows=5)


class Skipping(Center):
    audited: ClassVar[Audited | None] = None


class Failing(Center):
    def solve(self, A, b, *, rng, moments=None):
        raise ZeroDivisionError("a bug of theirs")


class Drawn(Defense):
    strengths: ClassVar[tuple] = ({"towards": 0.4}, {"towards": 0.6})
    towards: float = 0.5

    def on_inputs(self, x, ctx):
        return x + self.towards * (0.5 - x)
''',
}
ENTRY_POINTS = """[vflens.attacks]
their_looking = other_package.plugins:Looking
their_center = other_package.plugins:Center
their_few = other_package.plugins:Few
their_skipping = other_package.plugins:Skipping
their_failing = other_package.plugins:Failing
[vflens.defenses]
their_curious = other_package.plugins:Curious
their_informed = other_package.plugins:Informed
their_drawn = other_package.plugins:Drawn
their_idle = other_package.plugins:Idle
their_layer = other_package.plugins:Layer
[vflens.models]
their_family = other_package.plugins:Family
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path) -> Iterator[None]:
    with installed("other_package", MODULES, ENTRY_POINTS, tmp_path / "site"):
        yield


# -- the secret


#: Of each kind of object, what can be read off it.
_READ: Sequence[tuple[Any, Callable[[Any], Iterable[Any]]]] = (
    ((type, ModuleType, str, bytes, int, float, np.ndarray), lambda thing: ()),
    (Mapping, lambda thing: [*thing.keys(), *thing.values()]),
    ((list, tuple, set, frozenset), list),
    (partial, lambda thing: [thing.func, *thing.args, *thing.keywords.values()]),
    (MethodType, lambda thing: [thing.__self__, thing.__func__]),
    (FunctionType, lambda thing: [*(thing.__closure__ or ()), *(thing.__defaults__ or ())]),
    (CellType, lambda thing: [thing.cell_contents]),
    (BaseModel, lambda thing: [*vars(thing).values(), *(thing.__pydantic_private__ or {}).values()]),
    (object, lambda thing: [getattr(thing, n, None) for n in dir(thing) if not n.startswith("__")]),
)


def _parts(thing: Any) -> Iterable[Any]:
    """Items, attributes, and what a function closes over or is bound to."""
    return next(read for kind, read in _READ if isinstance(thing, kind))(thing)


def _reachable(start: Any) -> list[Any]:
    """Everything that attributes lead to from ``start``."""
    found, waiting = {id(start): start}, [start]
    while waiting:
        for part in _parts(waiting.pop()):
            if id(part) not in found and len(found) < 50_000:
                found[id(part)] = part  # kept alive, so that its id stays its own
                waiting.append(part)
    assert len(found) < 50_000
    return list(found.values())


def _given() -> list[Any]:
    given: list[Any] = sys.modules["other_package.plugins"].GIVEN
    return given


@pytest.mark.parametrize(
    ("party", "defence"), [("coordinator", "their_informed"), ("passive", "their_curious")]
)
def test_a_defence_cannot_reach_its_owners_secret(tmp_path: Path, party: str, defence: str) -> None:
    disclose = [{"what": "parameters", "to": to} for to in ("coordinator", "active")]
    local = federation(tmp_path, defenses=[{"name": defence, "at": party}], disclose=disclose)
    local.run()
    secret = {m.name: m.secret for m in local.members()}[party]
    contexts = [g for g in _given() if isinstance(g, Context)]
    assert {c.exchange.phase for c in contexts} == {Phase.PREDICT if party == "coordinator" else Phase.TRAIN}
    reached = _reachable(_given())
    assert secret not in [r for r in reached if isinstance(r, bytes)]
    assert not [r for r in reached if type(r).__module__.startswith(("vflens.clients", "vflens.coordinator"))]


@pytest.mark.parametrize("party", ["passive", "active"])
def test_a_part_of_a_model_cannot_reach_its_partys_secret(tmp_path: Path, party: str) -> None:
    """The defence draws from its context, and the family may look at all that the wrap closes over."""
    local = federation(
        tmp_path, model={"family": "their_family"}, defenses=[{"name": "their_layer", "at": party}]
    )
    local.run()
    secret = {m.name: m.secret for m in local.members()}[party]
    sites = [g for g in _given() if isinstance(g, Site) and g.party == party]
    assert "a wrapped module" in _given()
    reached = _reachable(sites)
    assert [r for r in reached if isinstance(r, Context)]  # the walk goes through the wrap
    assert secret not in [r for r in reached if isinstance(r, bytes)]
    assert not [r for r in reached if type(r).__module__.startswith(("vflens.clients", "vflens.coordinator"))]


def test_a_view_leads_to_no_log_that_can_be_written_and_to_no_party(tmp_path: Path) -> None:
    federation(tmp_path, attacks=[{"name": "their_looking"}]).run()
    (view,) = {id(g): g for g in _given()}.values()
    reached = _reachable(view)
    assert [r for r in reached if isinstance(r, Reader)]
    assert not [r for r in reached if isinstance(r, Transcript | Journal | Party)]


def test_the_walk_finds_what_is_hidden_in_attributes_closures_and_methods() -> None:
    class Holder:
        def __init__(self, held: bytes) -> None:
            self._held = held

        def method(self) -> None: ...

    hidden = b"the secret of a party"
    for place in (Holder(hidden), Holder(hidden).method, lambda: hidden, partial(print, {"a": [hidden]})):
        assert hidden in _reachable([place])


def test_keys_belong_to_a_defence_and_its_names() -> None:
    nothing, exchange = np.zeros(0, np.int32), Exchange("run", Phase.TRAIN, 0, 0)

    def key(*names: str, position: int = 0, secret: bytes = b"secret", run: str = "run") -> bytes:
        context = Context(
            Owner("party"),
            exchange._replace(run=run),
            nothing,
            {},
            hook="on_inputs",
            position=position,
            secret=secret,
        )
        return context.key(*names)

    keys = [
        key("a"),
        key("b"),
        key("a", "b"),
        key("a", position=1),
        key("a", secret=b"other"),
        key("a", run="b"),
    ]
    assert len({*keys}) == len(keys)
    assert all(len(k) == 32 for k in keys)
    later = Context(
        Owner("party"),
        exchange._replace(step=3),
        nothing,
        {},
        hook="on_dataset",
        position=0,
        secret=b"secret",
    )
    assert later.key("a") == key("a")


# -- names


def test_a_defence_of_another_package_is_reported_by_its_registered_name(tmp_path: Path) -> None:
    local = federation(tmp_path, defenses=[{"name": "their_idle", "at": "passive"}])
    local.data_parties["passive"].chain._by_hook.clear()  # so that it never acts
    with pytest.raises(DefenseError, match=r"^defence 'their_idle' of 'passive' never acted"):
        local.run()


def test_a_refused_defence_of_another_package_is_named_so_too(tmp_path: Path) -> None:
    refused = experiment(tmp_path, defenses=[{"name": "their_layer", "at": "passive"}])
    with pytest.raises(ConfigError, match=r"^defence 'their_layer' at 'passive' has nothing to act on"):
        run(refused, in_process=True)


# -- failures


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """An experiment with an attack that fails beside one that does not."""
    file = tmp_path / "broken.toml"
    file.write_text(
        f"""name = "broken"
out = "{tmp_path / "runs"}"
data = {{ name = "synthetic", rows = 60, features = 8, classes = 3 }}
split = {{ kind = "fraction", fraction = 0.5 }}
training = {{ epochs = 1, batch_size = 20, learning_rate = 0.1 }}
attacks = [{{ name = "their_failing" }}, {{ name = "half" }}]
disclose = [{{ what = "parameters", to = "active" }}]
""",
        encoding="utf-8",
    )
    return file


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 9)], ids=["lenient", "strict"])
def test_a_strict_run_ends_with_code_9_where_an_attack_failed(
    vflens: Run, broken: Path, options: Sequence[str], code: int
) -> None:
    ended = vflens("run", broken, "--in-process", "--json", *options)
    assert ended.code == code
    (found,) = strict(ended.out)["runs"]
    assert [f["attack"] for f in found["failed"]] == ["their_failing"]
    assert found["failed"][0]["reason"] == "ZeroDivisionError: a bug of theirs"
    assert {r["attack"] for r in found["results"]} == {"half"}
    sentence = (
        "--strict: their_failing in active on passive failed: ZeroDivisionError: a bug of theirs: "
        "mend the plug-in, or leave it out"
    )
    assert (sentence in ended.err) == bool(options)


def test_an_attack_from_a_record_that_fails_is_told_so(vflens: Run, broken: Path, tmp_path: Path) -> None:
    assert vflens("run", broken, "--in-process").code == 0
    (folder,) = (tmp_path / "runs" / "broken").glob("*/active")
    ended = vflens("attack", folder, "--attack", "their_failing", "--out", tmp_path / "estimate.npz")
    assert ended.code == 9
    assert "attack 'their_failing' on 'passive' failed: ZeroDivisionError: a bug of theirs" in ended.err


# -- audit and theory


def _audited(monkeypatch: pytest.MonkeyPatch) -> AuditRecord:
    """An audit with the plug-ins of the other package alone."""
    monkeypatch.setattr(Registry, "_files", lambda registry: {})
    x = np.random.default_rng(0).random((40, 3))
    subject = AuditSubject("mine.csv", tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(3)), x, 3)
    return audit(subject, Plan(models=1, known=5, rows=40), lambda stage, done, total: None)


def test_an_attack_of_another_package_enters_the_audit_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    record = _audited(monkeypatch)
    reached = {(a.attack, a.kind): a for a in record.attacks}
    assert set(reached) == {(n, k) for n in ("their_center", "their_few") for k in ("random", "trained")}
    assert {n: reached[n, "trained"].rows for n in ("their_center", "their_few")} == {
        "their_center": 35,
        "their_few": 5,
    }
    assert record.failed == {"their_failing": "ZeroDivisionError: a bug of theirs"}
    assert failed(record) == ["Attack their_failing failed: ZeroDivisionError: a bug of theirs."]


def test_theory_stands_beside_an_attack_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its closed form is that of its own centre, and what was measured: the bounds are known too."""
    record = _audited(monkeypatch)
    (center,) = [a for a in record.attacks if (a.attack, a.kind) == ("their_center", "random")]
    assert center.closed == pytest.approx(center.unclipped, rel=1e-7)
    assert record.bounds["their_center"].lower <= center.mse


def test_a_defence_of_another_package_is_tried_in_its_own_strengths(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = [d for d in _audited(monkeypatch).defenses if d.defense == "their_drawn"]
    assert [d.settings for d in tried] == [{"towards": 0.4}, {"towards": 0.6}]
    assert all(d.mse is not None for d in tried)


def test_the_target_computes_theory_of_an_attack_of_another_package(tmp_path: Path) -> None:
    federation(tmp_path, attacks=[{"name": "their_center"}]).run()
    figure = figures(tmp_path / "passive")
    measured = figure["theory_measured", "their_center", "RVG Theorem 2"]
    assert figure["theory_closed", "their_center", ""] == pytest.approx(measured, rel=1e-7)
