"""Sweeps: what becomes a cell, what is refused, and the same rows on processes, after an interruption, on the
page.
"""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from laboratory import SYNTHETIC
from scipy import stats

from vflens.config.writing import toml_text
from vflens.errors import ConfigError
from vflens.experiments.run.check import check
from vflens.experiments.run.experiment import Experiment
from vflens.experiments.run.run import run
from vflens.experiments.sweeps import cap
from vflens.experiments.sweeps import sweep as module
from vflens.experiments.sweeps.pool import Pool, Rows
from vflens.experiments.sweeps.sweep import run_sweep
from vflens.experiments.sweeps.sweep_file import SweepFile, cells, load_sweep
from vflens.experiments.sweeps.sweep_page import drawing, interval
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

    def interrupted(place: dict[str, Any], settings: dict[str, Any], *, scratch: str) -> Rows:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return whole(place, settings, scratch=scratch)

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
    from vflens.experiments.results.folders import read_runs
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

    def killed(place: dict[str, Any], settings: dict[str, Any], *, scratch: str) -> Rows:
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
@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_sweep_on_a_local_cluster_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: Any, package: str
) -> None:
    pytest.importorskip(package)
    for address in ("DASK_SCHEDULER_ADDRESS", "RAY_ADDRESS"):
        monkeypatch.delenv(address, raising=False)
    what = sweep(sweep={"seeds": 1, "defenses": [{**NOISE, "values": [2.0]}]})
    here = run_sweep(what, Pool(tmp_path / "cells"), tmp_path / "here", "again")

    def not_here(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a cell ran in the calling process")

    monkeypatch.setattr("vflens.experiments.run.run.run", not_here)
    pool = Pool(tmp_path / "cells", jobs=2, backend=backend)
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
        ("-3", r"greater than or equal to 1 \(got -3\)"),
        ("0", r"greater than or equal to 1 \(got 0\)"),
        ("1000000000000", r"less than or equal to 10000 \(got 1000000000000\)"),
        ("1e400", r"a valid integer \(got inf\)"),
        ("nan", r"a valid integer \(got nan\)"),
        ("2.5", r"a valid integer \(got 2.5\)"),
        ("true", r"a valid integer \(got True\)"),
        ('"-3"', r"a valid integer \(got '-3'\)"),
    ],
)
@pytest.mark.parametrize("file", ["sweep", "sweep_clients"])
def test_a_number_of_seeds_that_is_none_is_refused_with_its_value(
    tmp_path: Path, file: str, given: str, words: str
) -> None:
    example = (Path(__file__).parents[2] / "examples" / f"{file}.toml").read_text(encoding="utf-8")
    changed, count = re.subn("(?m)^seeds = .*$", f"seeds = {given}", example)
    assert count == 1
    (tmp_path / "s.toml").write_text(changed, encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"s\.toml: sweep\.seeds: Input should be {words}$"):
        load_sweep(tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("file", "count"), [("sweep", 21), ("sweep_bank", 16), ("sweep_images", 16), ("sweep_clients", 12)]
)
def test_parties_accept_the_cells_of_the_examples(file: str, count: int, tmp_path: Path) -> None:
    """Every attack, defence and setting is known and fits; nothing is trained."""
    loaded = load_sweep(Path(__file__).parents[2] / "examples" / f"{file}.toml")
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
        load_sweep(Path(__file__).parents[2] / "examples" / "demo.toml")


def test_intervals_are_students() -> None:
    values = [0.2, 0.5, 0.4, 0.9]
    mean, half = interval(values)
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (mean - half, mean + half) == pytest.approx((low, high))
    assert interval([0.3]) == (0.3, 0.0)


def measured(strength: float, seed: int, mean_kl: float) -> dict[str, Any]:
    place = {"target": "p", "scored_set": "predict", "attack": "ls", "seed": seed, "strength": strength}
    return {**place, "defense": "x" if strength else "undefended", "relative": 0.5 + seed, "mean_kl": mean_kl}


def test_a_strength_that_costs_infinitely_much_for_one_seed_has_no_finite_cost() -> None:
    rows = [measured(s, seed, 0.1 * s) for s in (0.0, 1.0, 2.0) for seed in (0, 1)]
    rows[3]["mean_kl"] = math.inf  # strength 1, second seed
    page = drawing(rows, [])
    (curve,) = page.plots[1]["spec"]["data"]
    assert page.plots[1]["title"] == "p, predict rows, x: what it buys and costs"
    assert (curve["x"], curve["text"]) == ([0.0, 0.2], ["undefended", "x 2"])
    assert page.notes[-1].endswith("makes the mean KL infinite, so these have no place on that axis: x 1")


def test_cap_stands_on_the_page_with_its_grid() -> None:
    """Accuracy times error, averaged over strengths by hand; one without a result somewhere has none."""

    def row(defense: str, strength: float | None, attack: str, accuracy: float, mse: float) -> dict[str, Any]:
        place = {"target": "p", "scored_set": "predict", "attack": attack, "seed": 0, "defense": defense}
        return {**place, "strength": strength, "accuracy": accuracy, "mse": mse, "blind": 0.3}

    rows = [
        *(row("undefended", 0.0, a, 0.9, e) for a, e in (("ls", 0.1), ("rcc2", 0.2))),
        *(row("noise", 1.0, a, 0.8, e) for a, e in (("ls", 0.2), ("rcc2", 0.1))),
        *(row("noise", 2.0, a, 0.5, e) for a, e in (("ls", 0.4), ("rcc2", 0.6))),
        row("withheld", None, "rcc2", 1.0, 0.3),
    ]
    (table,) = cap.tables(rows, {"noise": "sigma"})
    assert table.title == "p, predict rows: CAP, error = MSE per column"
    shown = {r[0]: dict(zip(table.heads[1:], r[1:], strict=True)) for r in table.rows}
    assert shown["noise"] == {
        "grid": "sigma = 1, 2",
        "accuracy": "0.650",
        "ls": "0.180",  # (.8 · .2 + .5 · .4) / 2
        "rcc2": "0.190",  # (.8 · .1 + .5 · .6) / 2
        "best attack": "0.140",  # (.8 · .1 + .5 · .4) / 2
        "min(best, blind)": "0.115",  # (.8 · .1 + .5 · .3) / 2
        "blind alone": "0.195",  # (.8 + .5) · .3 / 2
    }
    assert [shown["undefended"][k] for k in ("grid", "ls", "best attack")] == ["–", "0.090", "0.090"]
    assert [shown["withheld"][k] for k in ("grid", "ls", "best attack")] == ["–", "–", "0.300"]
    labels = [{**r, "label_accuracy": 1 - r["mse"], "blind": 0.7, "adversary": "q"} for r in rows]
    (named,) = cap.tables(labels, {"noise": "sigma"})
    assert named.title == "labels of p, named by q, predict rows: CAP, error = share of wrong labels"
    assert named.rows == table.rows
    assert cap.tables([{**r, "accuracy": None} for r in rows], {}) == []


def _labelled(defense: str, strength: float, auc: float, attack: str = "pmc") -> dict[str, Any]:
    place = {"target": "active", "adversary": "p", "scored_set": "train", "attack": attack, "seed": 0}
    figures = {"relative": 0.8 * strength, "label_auc": 1 - strength / 4, "accuracy": 0.9, "auc": auc}
    return {**place, "defense": defense, "strength": strength, **figures}


def test_defences_stand_in_one_plot_per_attack_with_the_level_of_a_blind_guess() -> None:
    rows = [
        _labelled(defense, strength, auc, attack)
        for attack in ("pmc", "norm_scoring")
        for defense, strength, auc in (
            ("undefended", 0.0, 0.97), ("x", 1.0, 0.95), ("x", 2.0, 0.9), ("y", 1.0, 0.8)
        )
    ]  # fmt: skip
    shown = {
        (p["title"], p["spec"]["layout"]["yaxis"]["title"]["text"]): p["spec"]
        for p in drawing(rows, []).plots[1:]
    }
    where = "labels of active, named by p, train rows"
    beside = f"{where}, pmc: the defences beside each other"
    ranked = shown[beside, "AUC of the attack on labels"]
    assert ranked["layout"]["xaxis"]["title"]["text"] == "AUC of the federation"
    assert [(c["name"], c["x"], c["y"]) for c in ranked["data"]] == [
        ("x", [0.97, 0.95, 0.9], [1.0, 0.75, 0.5]),
        ("y", [0.97, 0.8], [1.0, 0.75]),
    ]
    assert ranked["data"][0]["text"] == ["undefended", "x 1", "x 2"]
    wrong = shown[beside, "error / blind error"]
    assert [c["y"] for c in wrong["data"]] == [[0.0, 0.8, 1.6], [0.0, 0.8]]
    alone = shown[f"{where}, x: what it buys and costs", "error / blind error"]
    assert [c["name"] for c in alone["data"]] == ["pmc", "norm_scoring"]
    for spec, level in ((ranked, 0.5), (wrong, 1.0), (alone, 1.0)):
        (line,) = spec["layout"]["shapes"]
        assert (line["y0"], line["y1"]) == (level, level)
    one = drawing([r for r in rows if r["defense"] != "y"], []).plots  # one defence has its own plot already
    assert not [p for p in one if "beside" in p["title"] and "blind error" in str(p["spec"]["layout"])]


def test_one_seed_is_given_no_interval() -> None:
    page = drawing([measured(0.0, 0, 0.0), measured(1.0, 0, 0.1)], [])
    assert "One seed gives no interval." in page.lead
    assert page.plots[0]["spec"]["data"][0]["customdata"][0][0] == ".500 of blind, 1 seed"


def test_a_cell_that_was_not_scored_is_empty_on_the_heat_map() -> None:
    row = {"target": "p", "scored_set": "predict", "seed": 0, "mse": 1.0, "blind": 2.0}
    rows = [
        {**row, "defense": "undefended", "strength": 0.0, "attack": "ls", "relative": 0.5},
        {**row, "defense": "x", "strength": 1.0, "attack": "ls", "relative": math.inf},
    ]
    heat = drawing(rows, []).plots[0]["spec"]["data"][0]
    assert heat["z"] == [[0.5, None]]
    assert heat["text"] == [["50 %", ""]]


def test_closed_forms_stand_beside_the_errors_and_disagreements_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = sweep(sweep={"seeds": 1, "defenses": [{**NOISE, "values": [1.0]}]})
    honest = run_sweep(what, Pool(tmp_path / "cells"), tmp_path / "honest", "again")
    assert honest["theory_disagreements"] == []
    rows = [r for r in pq.read_table(honest["data"]).to_pylist() if r["attack"] == "half_star"]
    assert [r["statement"] for r in rows] == ["RVG Theorem 2", "RVG Theorem 4"]
    for r in rows:
        assert r["closed"] == pytest.approx(r["mse"], rel=1e-9)

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
