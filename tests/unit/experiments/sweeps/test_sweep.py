"""Sweeps: what becomes a cell, what is refused, and the same rows on processes, after an interruption, on the
page.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from laboratory import SYNTHETIC

from vflens.config.writing import toml_text
from vflens.errors import ConfigError
from vflens.experiments.run.check import check
from vflens.experiments.run.run import run
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.experiments.sweeps import sweep as module
from vflens.experiments.sweeps.pool import Pool, Rows
from vflens.experiments.sweeps.sweep import run_sweep
from vflens.experiments.sweeps.sweep_file import SweepFile, cells, load_sweep
from vflens.plugins.attack import linear_estimate

NOISE = {"at": "coordinator", "name": "gaussian_scores", "vary": "sigma", "values": [0.5, 2.0]}


def sweep(**changes: Any) -> SweepFile:
    settings: dict[str, Any] = {
        "name": "tiny",
        "data": SYNTHETIC,
        "split": {"kind": "fraction", "fraction": 0.5},
        "training": {"epochs": 3, "batch_size": 20},
        "attacks": [{"name": "half"}, {"name": "half_star"}],
        "disclose": [{"what": "parameters", "to": "active"}],
        "sweep": {"seeds": 2, "defenses": [NOISE]},
    }
    return SweepFile.model_validate(settings | changes)


def test_cells_are_seeds_by_strengths_and_the_undefended() -> None:
    places = [c.key["place"] for c in cells(sweep())]
    assert [(p["defense"], p["strength"], p["seed"]) for p in places] == [
        (d, s, seed)
        for d, s in (("undefended", 0.0), ("gaussian_scores", 0.5), ("gaussian_scores", 2.0))
        for seed in (0, 1)
    ]
    assert len({c.file() for c in cells(sweep())}) == 6
    assert cells(sweep())[0].file() != cells(sweep(training={"epochs": 4}))[0].file()


def test_a_sweep_gives_what_its_runs_give_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what, count = sweep(), 0
    whole = module.run_cell

    def interrupted(*arguments: Any, scratch: str) -> Rows:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return whole(*arguments, scratch=scratch)

    pool = Pool(tmp_path / "cells")
    monkeypatch.setattr(module, "run_cell", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(what, pool, tmp_path, "again")
    assert not (tmp_path / "sweep.html").exists()
    facts = run_sweep(what, pool, tmp_path, "again")
    assert count == 7  # three before, the one that was interrupted, and what was missing
    assert (facts["cells"], facts["refused"]) == (6, [])
    rows = pq.read_table(facts["data"]).to_pylist()
    plain = next(
        r for r in rows if r["defense"] == "undefended" and r["seed"] == 1 and r["attack"] == "half_star"
    )
    experiment = cells(what)[1].arguments[1]
    alone = run(Experiment.model_validate({**experiment, "out": tmp_path / "alone"}), in_process=True)
    from vflens.experiments.results.record import read_runs
    from vflens.experiments.results.results import final

    (done,) = read_runs(alone.scenarios)
    assert plain["mse"] == next(r.mse for r in final(done) if r.attack == "half_star")
    noisy = [r["mse"] for r in rows if r["strength"] == 2.0 and r["attack"] == "half_star"]
    assert min(noisy) > plain["mse"]
    page = Path(facts["page"]).read_text(encoding="utf-8")
    assert "gaussian_scores 0.5" in page
    assert "sigma = 0.5, 2" in page  # the grid of CAP
    assert not (tmp_path / "cells").exists()


def test_an_interrupted_sweep_leaves_no_tables_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[Path] = []

    def killed(*arguments: Any, scratch: str) -> Rows:
        left.append(Path(scratch) / "tables")
        left[0].mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_cell", killed)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep(), Pool(tmp_path / "cells"), tmp_path, "again")
    assert not left[0].parent.exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.timeout(300)  # a cluster starts and ends: 10 s of CPU, a minute on a loaded machine
@pytest.mark.facts
def test_a_sweep_on_a_local_cluster_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    what = sweep(sweep={"seeds": 1, "defenses": [{**NOISE, "values": [2.0]}]})
    here = run_sweep(what, Pool(tmp_path / "cells"), tmp_path / "here", "again")

    def not_here(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a cell ran in the calling process")

    monkeypatch.setattr("vflens.experiments.run.run.run", not_here)
    pool = Pool(tmp_path / "cells", jobs=2, backend="dask")
    there = run_sweep(what, pool, tmp_path / "there", "again")
    assert pq.read_table(there["data"]) == pq.read_table(here["data"])


def test_a_refused_strength_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    wrong = {**NOISE, "values": [-1.0], "label": "wrong"}
    facts = run_sweep(
        sweep(sweep={"seeds": 1, "defenses": [wrong]}), Pool(tmp_path / "cells"), tmp_path, "again"
    )
    assert len(facts["refused"]) == 1
    assert facts["refused"][0].startswith("wrong at -1 was refused: ")
    assert facts["rows"] == 2


def test_a_defence_without_a_strength_is_swept_as_it_stands(tmp_path: Path) -> None:
    turned = {"at": "passive", "name": "transform_inputs", "kind": "signs"}
    what = sweep(sweep={"seeds": 1, "defenses": [NOISE, turned]})
    facts = run_sweep(what, Pool(tmp_path / "cells"), tmp_path, "again")
    assert (facts["cells"], facts["refused"], facts["theory_disagreements"]) == (4, [], [])
    rows = pq.read_table(facts["data"]).to_pylist()
    places = list(dict.fromkeys((r["defense"], r["strength"]) for r in rows))
    assert places[-1] == ("transform_inputs", None)
    assert '"transform_inputs"' in Path(facts["page"]).read_text(
        encoding="utf-8"
    )  # its column in the heat map


def test_an_attack_that_is_skipped_is_named_with_its_reason(tmp_path: Path) -> None:
    only = {"attacks": [{"name": "black_box"}], "sweep": {"seeds": 1}}
    with pytest.raises(ConfigError, match=r"^undefended: black_box was skipped: .*column"):
        run_sweep(sweep(**only), Pool(tmp_path / "cells"), tmp_path, "again")
    both = sweep(attacks=[{"name": "black_box"}, {"name": "half"}], sweep={"seeds": 2})
    facts = [run_sweep(both, Pool(tmp_path / "kept"), tmp_path, "again")]
    run_cells = Pool(tmp_path / "kept")
    run_cells.run(
        partial(module.run_cell, scratch=str(tmp_path)), cells(both)
    )  # as if interrupted before the page: rows are read back
    facts.append(run_sweep(both, run_cells, tmp_path / "resumed", "again"))
    for found in facts:
        assert [s.split(": ")[:2] for s in found["refused"]] == [["undefended", "black_box was skipped"]]
        assert found["rows"] == 2
    read = [pq.read_table(found["data"]) for found in facts]
    assert read[0] == read[1]
    assert set(read[0]["attack"].to_pylist()) == {"half"}


def test_attacks_on_labels_are_swept_beside_those_on_columns(tmp_path: Path) -> None:
    """Two thieves with the same attack are told apart; ε-label DP costs the thief what it says."""
    what = sweep(
        parties={"passive": ["a", "b"]},
        attacks=[{"name": "half"}, *({"name": "gradient_sign", "at": party} for party in "ab")],
        sweep={
            "seeds": 1,
            "defenses": [{"at": "active", "name": "label_dp", "vary": "epsilon", "values": [0.1]}],
        },
    )
    facts = run_sweep(what, Pool(tmp_path / "cells"), tmp_path, "again")
    rows = pq.read_table(facts["data"]).to_pylist()
    named = {(r["defense"], r["adversary"]): r for r in rows if r["attack"] == "gradient_sign"}
    assert set(named) == {(d, p) for d in ("undefended", "label_dp") for p in "ab"}
    for (defense, _), r in named.items():
        assert (r["target"], r["scored_set"], r["rows"], r["mse"]) == ("active", "train", 72, None)
        assert r["relative"] == pytest.approx((1 - r["label_accuracy"]) / (1 - r["blind"]))
        assert (r["label_accuracy"] == 1) == (defense == "undefended")
    assert {r["attack"] for r in rows if r["adversary"] is None} == {"half"}
    page = Path(facts["page"]).read_text(encoding="utf-8")
    assert "labels of active, named by b, train rows: error relative to the best blind guess" in page


@pytest.mark.facts
def test_attacks_on_labels_of_a_split_network_are_swept_and_resumed(tmp_path: Path) -> None:
    """The columns of FedAdOb's Table IV and Figure 6: pmc in both forms, norm and direction scoring."""
    names = ("pmc", "pmc:printed", "norm_scoring", "direction_scoring", "gradient_clustering")
    settings = {"pmc": {"steps": 20}, "pmc:printed": {"fine_tune": True, "fine_tune_steps": 20}}
    what = sweep(
        data={**SYNTHETIC, "rows": 150, "classes": 2},
        model={"architecture": "mlp", "width": 4},
        attacks=[{"name": n, "at": "passive", **settings.get(n, {})} for n in names],
        disclose=[{"what": "labels", "to": "passive", "rows": 20}],
        sweep={
            "seeds": 1,
            "defenses": [
                {"at": "passive", "name": "passport", "vary": "sigma", "values": [2.0]},
                {"at": "active", "name": "max_norm"},
            ],
        },
    )
    pool = Pool(tmp_path / "cells")
    pool.run(
        partial(module.run_cell, scratch=str(tmp_path)), cells(what)
    )  # as if interrupted before the page
    facts = run_sweep(what, pool, tmp_path, "again")
    assert (facts["cells"], facts["refused"]) == (3, [])
    rows = pq.read_table(facts["data"]).to_pylist()
    scored = [(n, s) for n in names for s in ("train", "predict")[: 2 if n.startswith("pmc") else 1]]
    places = (("undefended", 0.0), ("passport", 2.0), ("max_norm", None))
    assert {(r["defense"], r["strength"], r["attack"], r["scored_set"]) for r in rows} == {
        (*place, *found) for place in places for found in scored
    }
    for r in rows:
        assert all(0 <= r[figure] <= 1 for figure in ("label_accuracy", "label_auc", "accuracy", "auc"))
        assert (r["target"], r["adversary"]) == ("active", "passive")
    by_seed = {(r["defense"], r["accuracy"], r["auc"]) for r in rows}
    assert len(by_seed) == 3  # the utility of a federation is that of all its attacks
    page = Path(facts["page"]).read_text(encoding="utf-8")
    assert "gradient_clustering finds classes without names" in page
    assert "pmc:printed: the defences beside each other" in page


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attacks": [{"name": "clear_features"}]}, "'clear_features' finds columns up to an affine map"),
        ({"lab": False}, "a sweep is a simulation: lab must be true"),
        ({"attacks": []}, r"a sweep without \[\[attacks\]\] measures nothing"),
        ({"scenarios": [{"name": "x"}]}, r"a sweep makes its own scenarios: remove \[\[scenarios\]\]"),
        ({"sweep": {"defenses": [{**NOISE, "at": "nobody"}]}}, "party 'nobody' of defence 'gaussian_scores'"),
        ({"sweep": {"defenses": [NOISE, NOISE]}}, "give each its own `label`"),
        ({"sweep": {"seeds": 0}}, "seeds"),
        ({"sweep": {"defenses": [{**NOISE, "values": [1, 1.0]}]}}, "give every strength once"),
        ({"sweep": {"defenses": [{**NOISE, "values": []}]}}, "vary and values belong together: give both"),
    ],
)
def test_what_makes_no_sweep_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sweep(**changes)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("-3", r"1 or more \(got -3\)"),
        ("0", r"1 or more \(got 0\)"),
        ("1000000000000", r"10000 or less \(got 1000000000000\)"),
        ("1e400", r"a whole number \(got inf\)"),
        ("nan", r"a whole number \(got nan\)"),
        ("2.5", r"a whole number \(got 2.5\)"),
        ("true", r"a whole number \(got true\)"),
        ('"-3"', r"a whole number \(got '-3'\)"),
    ],
)
@pytest.mark.parametrize("file", ["sweep", "sweep_clients"])
def test_a_number_of_seeds_that_is_none_is_refused_with_its_value(
    tmp_path: Path, file: str, given: str, words: str
) -> None:
    example = (Path(__file__).parents[4] / "examples" / f"{file}.toml").read_text(encoding="utf-8")
    changed, count = re.subn("(?m)^seeds = .*$", f"seeds = {given}", example)
    assert count == 1
    (tmp_path / "s.toml").write_text(changed, encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"s\.toml: sweep\.seeds: give {words}$"):
        load_sweep(tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("file", "count"), [("sweep", 21), ("sweep_bank", 16), ("sweep_images", 16), ("sweep_clients", 12)]
)
def test_parties_accept_the_cells_of_the_examples(file: str, count: int, tmp_path: Path) -> None:
    """Every attack, defence and setting is known and fits; nothing is trained."""
    loaded = load_sweep(Path(__file__).parents[4] / "examples" / f"{file}.toml")
    found = cells(loaded)
    assert len(found) == count
    places = [cell.arguments[1] for cell in found[:: loaded.sweep.seeds]]
    scenarios = [{**p["scenarios"][0], "name": f"cell {i}"} for i, p in enumerate(places)]
    text = toml_text({**places[0], "scenarios": scenarios, "network": {"transport": "tcp"}})
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    assert check(tmp_path / "experiment.toml")["experiment"] == loaded.name


def test_an_edited_table_makes_other_cells(tmp_path: Path) -> None:
    parties = {"passive": {"file": tmp_path / "p.csv"}, "active": {"file": tmp_path / "a.csv"}}
    own = sweep(data=None, split=None, files=parties)
    names = [{cell.file() for cell in cells(own)}]
    for text in ("id,x\n1,2\n", "id,x\n1,3\n"):
        (tmp_path / "p.csv").write_text(text)
        names.append({cell.file() for cell in cells(own)})
    assert len(set().union(*names)) == 3 * len(cells(own))
    assert names[-1] == {cell.file() for cell in cells(own)}


def test_an_experiment_without_sweep_is_refused() -> None:
    with pytest.raises(ConfigError, match="sweep"):
        load_sweep(Path(__file__).parents[4] / "examples" / "demo.toml")


def test_closed_forms_stand_beside_the_errors_and_disagreements_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = sweep(sweep={"seeds": 1, "defenses": [{**NOISE, "values": [1.0]}]})
    honest = run_sweep(what, Pool(tmp_path / "cells"), tmp_path / "honest", "again")
    assert honest["theory_disagreements"] == []
    rows = [r for r in pq.read_table(honest["data"]).to_pylist() if r["attack"] == "half_star"]
    assert [r["statement"] for r in rows] == ["RVG Theorem 2", "RVG Theorem 4"]
    for r in rows:
        assert r["closed"] == pytest.approx(r["measured"], rel=1e-9)
        assert r["mse"] < r["measured"]  # an answer is moved into the box before it is scored

    def moved(self: Any, A: Any, b: Any, **given: Any) -> Any:
        return linear_estimate(np.full((len(b), A.shape[1]), 0.4), A, b)

    monkeypatch.setattr("vflens.attacks.half_star.HalfStar.solve", moved)
    wrong = run_sweep(what, Pool(tmp_path / "cells"), tmp_path / "wrong", "again")
    assert [s.split(" measured")[0] for s in wrong["theory_disagreements"]] == [
        "undefended, seed 0: half_star on passive (18 predict rows)",
        "gaussian_scores at 1, seed 0: half_star on passive (18 predict rows)",
    ]
    page = Path(wrong["page"]).read_text(encoding="utf-8")
    assert page.count("THEORY AND MEASUREMENT DISAGREE") == 2
    assert "gaussian_scores: measured and closed form" in page
