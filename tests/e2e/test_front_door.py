"""``import vflens as vl``: what is public, what the import loads, and that each function works."""

from __future__ import annotations

import ast
import asyncio
import html
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vflens as vl
from vflens.api.frames import as_arrow, like

ROOT = Path(__file__).parents[2]
TINY: dict[str, Any] = {"models": 1, "known": 20, "rows": 40}
#: An experiment of a second.
SMALL: dict[str, Any] = {
    "name": "small",
    "data": {"name": "wine"},
    "split": {"kind": "fraction", "fraction": 0.3},
    "training": {"epochs": 5},
    "attacks": [{"name": "half_star"}, {"name": "gradient_sign", "at": "passive"}],
    "disclose": [{"what": "parameters", "to": "active"}],
    "scenarios": [
        {"name": "undefended"},
        {"name": "one digit", "defenses": [{"at": "coordinator", "name": "round_scores", "digits": 1}]},
    ],
}


@pytest.fixture
def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    columns = {"age": rng.integers(20, 80, 150), "income": rng.normal(50.0, 9.0, 150)}
    return pd.DataFrame(columns, index=np.arange(150) + 1000)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> vl.Run:
    return vl.run(vl.Experiment(**SMALL), out=tmp_path_factory.mktemp("runs"))


CLIENTS: dict[str, Any] = {
    "name": "clients",
    "data": {"name": "wine"},
    "parties": {"clients": 2},
    "horizontal": {"rounds": 2},
}


@pytest.mark.parametrize("given", [CLIENTS, vl.HorizontalExperiment(**CLIENTS)], ids=["dict", "class"])
def test_a_horizontal_experiment_gives_the_accuracy_of_each_client(tmp_path: Path, given: Any) -> None:
    run = vl.run(given, out=tmp_path)
    rows = run.clients.to_pylist()
    assert [(r["scenario"], r["client"]) for r in rows] == [("run", "client-1"), ("run", "client-2")]
    for row in rows:
        own = pq.read_table(run.folder / "run" / row["client"] / "metrics.parquet").to_pylist()
        figures = {r["metric"]: r["value"] for r in own}
        assert (row["accuracy"], row["alone"]) == (figures["accuracy"], figures["accuracy_alone"])


def test_a_horizontal_experiment_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(vl.errors.ConfigError, match=r"^experiment: horizontal\.rounds: give 1 or more"):
        vl.HorizontalExperiment(**{**CLIENTS, "horizontal": {"rounds": 0}})
    with pytest.raises(vl.errors.ConfigError, match=r"a sweep without \[\[attacks\]\] measures nothing: add"):
        vl.sweep({**CLIENTS, "sweep": {}}, out=tmp_path)


def test_a_vertical_run_has_no_clients(done: vl.Run) -> None:
    assert done.clients.num_rows == 0


# -- what is public --------------------------------------------------------------------------------------


def test_every_public_name_is_typed_found_and_described() -> None:
    tree = ast.parse((ROOT / "vflens/__init__.py").read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in guarded.body if isinstance(node, ast.ImportFrom)]
    typed = {str(alias.asname): node.module for node in imports for alias in node.names}
    assert vl.__all__ == dir(vl) == sorted(typed)
    for name, module in typed.items():
        assert getattr(vl, name) is getattr(sys.modules[str(module)], name)
        assert getattr(vl, name).__doc__, name
    assert (ROOT / "vflens/py.typed").exists()


def test_no_module_takes_the_place_of_a_public_name() -> None:
    """Python would put a submodule of that name there as soon as something imports it."""
    modules = {path.stem for path in (ROOT / "vflens").iterdir()}
    assert modules & set(vl.__all__) == {"errors"}


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        AttributeError, match=r"^module 'vflens' has no attribute 'atack': it has AdversaryView, "
    ):
        vl.atack  # type: ignore[attr-defined]  # noqa: B018 - a type checker reports it too


def test_the_import_loads_nothing_else_and_changes_nothing() -> None:
    code = (
        "import os, signal, sys\n"
        "before = dict(os.environ), signal.getsignal(signal.SIGINT), set(sys.modules)\n"
        "import vflens\n"
        "print((dict(os.environ), signal.getsignal(signal.SIGINT)) == before[:2])\n"
        "new = set(sys.modules) - before[2]\n"
        "print(sorted(n for n in new if n.partition('.')[0] not in sys.stdlib_module_names))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n['vflens']\n"


def test_a_run_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    small = {**SMALL, "out": str(tmp_path), "scenarios": SMALL["scenarios"][:1]}
    code = f"""
import logging, os, signal, sys, threading
import numpy as np
def state():
    os.umask(mask := os.umask(0))
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    loggers = logging.getLogger().handlers, logging.getLogger().level
    return mask, handlers, loggers, sys.excepthook, os.getcwd(), np.geterr(), threading.enumerate()
before = state()
import vflens as vl
for name in vl.__all__:
    getattr(vl, name)
vl.run(vl.Experiment(**{small!r}))
print(state() == before)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("True\n", "")


def test_a_run_inside_an_event_loop_is_the_same(done: vl.Run, tmp_path: Path) -> None:
    """A notebook runs its cells in one."""

    async def cell() -> vl.Run:
        return vl.run(vl.Experiment(**{**SMALL, "scenarios": SMALL["scenarios"][:1]}), out=tmp_path)

    assert asyncio.run(cell()).compare(done.scenarios["undefended"])["equal"]


# -- runs ------------------------------------------------------------------------------------------------


def test_a_run_without_a_file_has_results_and_shows_itself(done: vl.Run) -> None:
    rows = [row for row in done.results.to_pylist() if row["attack"] == "half_star"]
    assert {row["scenario"] for row in rows} == {"undefended", "one-digit"} == set(done.scenarios)
    for row in rows:
        assert row["relative"] == pytest.approx(row["mse"] / row["blind"])
    assert done.report.exists()
    shown = html.unescape(done._repr_html_())
    assert done.verdict in shown
    assert f"<th>attack</th>{''.join(f'<th>{name}</th>' for name in done.scenarios)}" in shown
    assert "background: rgba(" in shown


def test_estimates_are_those_that_were_scored(done: vl.Run) -> None:
    alone = done.scenarios["undefended"]
    columns = alone.estimates["passive", "half_star"]
    (row,) = (r for r in alone.results.to_pylist() if r["attack"] == "half_star")
    assert columns.values.shape == (row["rows"], 4)
    assert columns.rows.shape == columns.status.shape == (row["rows"],)
    assert (columns.attack, columns.target) == ("half_star", "passive")
    labels = alone.estimates["active", "gradient_sign", "passive", "train"]
    assert labels.values.shape[1] == 3
    assert "half_star" in columns._repr_html_()


def test_scenarios_are_compared_one_with_another(done: vl.Run) -> None:
    one, other = done.scenarios["undefended"], done.scenarios["one-digit"]
    assert one.compare(one)["equal"]
    assert {e["attack"] for e in one.compare(other)["errors"]} == {"half_star"}
    with pytest.raises(
        vl.errors.ConfigError, match=r"^compare is of one scenario, .* 'undefended', 'one-digit'"
    ):
        done.compare(other)


def test_processes_and_one_process_give_the_same(done: vl.Run, one_start: None, tmp_path: Path) -> None:
    small = {**SMALL, "out": tmp_path, "scenarios": SMALL["scenarios"][:1]}
    apart = vl.run(vl.Experiment(**small), in_process=False)
    assert apart.compare(done.scenarios["undefended"])["equal"]


def test_a_wrong_setting_is_one_sentence_of_ours() -> None:
    with pytest.raises(vl.errors.ConfigError) as refusal:
        vl.Experiment(**{**SMALL, "seeed": 1, "training": {"epochs": 0}})
    sentence = str(refusal.value)
    assert sentence.startswith("experiment: training.epochs: ")
    assert "seeed: " in sentence
    assert "\n" not in sentence
    assert "pydantic" not in sentence
    functions: tuple[Any, ...] = (vl.run, vl.sweep)
    for function in functions:
        with pytest.raises(vl.errors.ConfigError, match=r"^experiment: .*name: "):
            function({})
        with pytest.raises(vl.errors.ConfigError, match=r"^an experiment of type int: give a TOML file"):
            function(3)


def test_a_sweep_from_a_dict(tmp_path: Path) -> None:
    small = {key: value for key, value in SMALL.items() if key != "scenarios"}
    facts = vl.sweep({**small, "sweep": {"seeds": 1}}, out=tmp_path)
    assert facts["cells"] == 1
    assert Path(facts["page"]).exists()
    with pytest.raises(vl.errors.ConfigError, match=r"^experiment: .*scenarios"):
        vl.sweep({**SMALL, "sweep": {"seeds": 1}}, out=tmp_path)


# -- estimates -------------------------------------------------------------------------------------------


def test_an_estimate_knows_its_attack_and_shows_itself() -> None:
    found = vl.estimate("rcc2", [[1.0, 1.0]], [[0.5], [1.5]])
    np.testing.assert_allclose(found.values, [[0.25, 0.25], [0.75, 0.75]])
    assert found.attack == "rcc2"
    assert "rcc2: 2 rows × 2 columns; 2 ok" in found._repr_html_()


# -- tables ----------------------------------------------------------------------------------------------


class Streamed:
    """A frame that offers its table through the Arrow PyCapsule interface alone, text as polars has it."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def test_frames_of_every_kind_are_one_table(people: pd.DataFrame) -> None:
    people["job"] = pd.Categorical(["cook", "clerk", "nurse"] * 50)
    text = people["job"].astype(str).to_list()
    expected = pa.table({"age": people["age"].to_numpy(), "income": people["income"].to_numpy(), "job": text})
    views = expected.set_column(2, "job", expected["job"].cast(pa.string_view()))
    arrays = {"age": people["age"].to_numpy(), "income": people["income"].to_numpy(), "job": np.array(text)}
    for frame in (people, expected, expected.combine_chunks().to_batches()[0], Streamed(views), arrays):
        assert as_arrow(frame).equals(expected), type(frame)
    assert like(expected, people).index.equals(pd.RangeIndex(len(people)))  # who the rows are stays here
    np.testing.assert_array_equal(like(expected, arrays)["age"], arrays["age"])
    assert isinstance(like(expected, Streamed(views)), pa.Table)


def test_a_frame_is_audited(people: pd.DataFrame) -> None:
    found = vl.audit(people, classes=2, **TINY)
    assert found.facts["columns"] == ["age", "income"]
    assert found.facts["attacked_rows"] == 20
    shown = html.unescape(found._repr_html_())
    assert found.recommendation in shown
    assert "<table>" in shown
    assert repr(found) == f"<Audit of the frame: {found.decision}>"
    assert str(found).startswith(found.decision)


def test_a_frame_s_column_id_identifies_rows_as_for_the_command(people: pd.DataFrame, tmp_path: Path) -> None:
    people["id"] = [f"P{i:04d}" for i in range(150)]
    found = vl.audit(people, classes=2, tolerance={"age": 2}, **TINY)
    assert found.facts["columns"] == ["age", "income"]
    assert found.facts["tolerance"]["age"] == pytest.approx(2)
    assert found.flaws == []
    exposed = [row for of in found.exposed.values() for rows in of.values() for row in rows]
    assert exposed
    assert set(exposed) <= set(people["id"])
    found.write(tmp_path / "audit.html")
    assert json.loads((tmp_path / "audit.exposed.json").read_text()) == found.exposed


def test_a_frame_is_released_in_its_own_kind(people: pd.DataFrame, tmp_path: Path) -> None:
    noisy, certificate = vl.release(people, lambda_=1.0, seed="a secret of 2 owners")
    assert isinstance(noisy, pd.DataFrame)
    assert list(noisy) == ["age", "income"]
    assert noisy.index.equals(pd.RangeIndex(len(people)))
    assert not np.isclose(noisy["income"], people["income"]).all()
    shown = html.unescape(certificate._repr_html_())
    assert certificate.headline in shown
    assert certificate.facts["warnings"][0] in shown
    page = certificate.write(tmp_path / "page.html").read_text(encoding="utf-8")
    assert certificate.headline in html.unescape(page)
    arrow, _ = vl.release(
        pa.Table.from_pandas(people, preserve_index=False), lambda_=1.0, seed="a secret of 2 owners"
    )
    np.testing.assert_array_equal(arrow["age"].to_numpy(), noisy["age"])


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([f"P-{i}" for i in range(40)], name="patient"),
        pd.Index(np.arange(40) * 7 + 4000),
        pd.MultiIndex.from_product([["north", "south"], range(20)], names=["ward", None]),
        pd.date_range("2001-01-01", periods=40),
    ],
)
@pytest.mark.parametrize("arrow", [False, True])
def test_a_release_leaves_the_index_of_a_frame_out(index: pd.Index, arrow: bool) -> None:
    frame = pd.DataFrame({"age": np.arange(40) % 23 * 1.0, "bmi": np.arange(40) ** 2.0}, index=index)
    released, _ = vl.release(pa.Table.from_pandas(frame) if arrow else frame, lambda_=1.0)
    kept = (released.to_pandas() if arrow else released).reset_index()
    assert (list(kept), kept["index"].tolist()) == (["index", "age", "bmi"], list(range(40)))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"lamda": 1.0}, "release has no option 'lamda': it has delta, "),
        ({"lambda_": "much"}, "release: lambda_: "),
        (
            {"lambda_": 1.0, "epsilon": 1.0},
            "lambda_ and epsilon given: choose exactly one of lambda_, epsilon and target_mse",
        ),
        ({"epsilon": 1.0, "diameter": ["wide", 1.0]}, "diameter 'wide,1.0': give a number"),
        ({"lambda_": 1.0, "ids": "a--b"}, "the frame has no column 'a--b': "),
        ({"lambda_": 1.0, "label": "sex"}, "the frame has no column 'sex': "),
        (
            {"epsilon": 1.0, "diameter": [100, 1.0]},
            "the frame: two rows differ in column 'income' by more than diameter",
        ),
    ],
)
def test_a_wrong_release_is_one_sentence_about_the_arguments(
    people: pd.DataFrame, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(vl.errors.VflensError) as refusal:
        vl.release(people, **options)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"classes": 1}, "audit: classes: "),
        ({"classes": 2, "models": 0}, "audit: models: "),
        ({"classes": 2, "tolerance": {"age": 0}}, "audit: tolerance.age: "),
        ({"classes": 2, "tolerance": {"agee": 1}}, "tolerance names 'agee': it is no column of the frame"),
        ({"classes": 2, "known": 200}, "the frame has 150 rows here: an audit needs at least 10, and 2 more"),
        ({"classes": 2, "bound": {}}, "the frame: bound: "),
    ],
)
def test_a_wrong_audit_is_one_sentence_about_the_arguments(
    people: pd.DataFrame, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises((vl.errors.ConfigError, vl.errors.DataError)) as refusal:
        vl.audit(people, **arguments)
    assert str(refusal.value).startswith(sentence)


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(vl.errors.DataError, match=r"^a frame of type int cannot be read as a table"):
        vl.audit(3, classes=2)
    with pytest.raises(vl.errors.DataError, match=r"^a frame of type dict cannot be read as a table"):
        vl.audit({"a": [1.0], "b": [1.0, 2.0]}, classes=2)


WRONG_VERIFICATION: list[tuple[dict[str, Any], str]] = [
    ({"estimate": 3}, "verify takes an estimate of vl.estimate"),
    ({"rows": 1.5}, "rows = 1.5: give a whole number from 1"),
    ({"seed": -1}, "seed = -1: give a whole number from 0"),
]


@pytest.mark.parametrize(("wrong", "words"), WRONG_VERIFICATION)
def test_wrong_arguments_of_a_verification(wrong: dict[str, Any], words: str) -> None:
    A, b = np.ones((1, 3)), np.ones((2, 1))
    with pytest.raises(vl.errors.ConfigError, match=words):
        vl.verify(**{"estimate": vl.estimate("half_star", A, b), "A": A, "b": b, **wrong})


@pytest.mark.parametrize("moments", [3, vl.Moments([0.5, 0.5, 0.5])])  # type: ignore[arg-type]
def test_moments_of_another_kind(moments: Any) -> None:
    with pytest.raises(vl.errors.ProtocolError, match=r"give Moments\(mean, covariance\) of float64 arrays"):
        vl.estimate("lmmse", np.ones((1, 3)), np.ones((2, 1)), moments=moments)


def test_a_kept_estimate_that_lacks_a_name(tmp_path: Path) -> None:
    run = vl.run(vl.Experiment(**{**SMALL, "scenarios": [{"name": "undefended"}]}), out=tmp_path)
    (file,) = run.folder.glob("*/active/estimates/*.npz")
    with np.load(file) as kept:
        rest = {name: kept[name] for name in kept if name != "status"}
    np.savez(file, **rest)
    with pytest.raises(vl.errors.StorageError, match="lacks status: run the experiment again"):
        _ = run.estimates


def test_a_certificate_prints_its_headline(people: pd.DataFrame) -> None:
    _, certificate = vl.release(people, lambda_=1.0, seed="x" * 32)
    assert str(certificate) == certificate.headline
    assert len(repr(certificate)) < 100
