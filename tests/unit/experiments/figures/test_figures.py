"""The registry of figures: each is listed, each is written whole, in quick form without a data folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from commandline import Run

from vflens.errors import ConfigError, DataError
from vflens.experiments.figures import FigureOptions, Size, figures, render, reproduce, var_distortion
from vflens.experiments.figures._data import Dealt, dealt, sizes, windows
from vflens.experiments.figures._windows import theory_notes
from vflens.experiments.figures.central import Model
from vflens.experiments.figures.rvg_defenses import scheme_rows
from vflens.experiments.figures.var_agnostic import agnostic_rows
from vflens.experiments.figures.var_distortion import distorted_rows
from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.sweeps.pool import Pool
from vflens.numerics.theory.closed_forms import second_moment
from vflens.numerics.theory.distortion import largest_distortion
from vflens.types import Array
from vflens.words import counted


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VFLENS_DATA", raising=False)


def options(folder: Path) -> FigureOptions:
    return FigureOptions(Pool(folder / ".cells"), "quick")


def test_names_are_those_of_the_figures() -> None:
    assert {"rvg-fig6", "var-fig2", "var-fig6"} <= figures().keys()
    assert all(name == figure.name and figure.title for name, figure in figures().items())


def test_figures_are_listed_by_paper_and_number() -> None:
    names = [name for name in figures() if "-fig" in name]
    papers = [name.split("-fig")[0] for name in names]
    assert papers == sorted(papers)
    for paper in set(papers):
        numbers = [int(name.split("-fig")[1]) for name in names if name.startswith(paper)]
        assert numbers == sorted(numbers)
        assert len(numbers) >= 3


def test_what_a_figure_keeps_is_not_what_another_version_of_it_ends_with(
    vflens: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[Path] = []

    def interrupted(name: str, options: FigureOptions, out: Path) -> None:
        folders.append(options.pool.folder)
        raise KeyboardInterrupt

    monkeypatch.setattr("vflens.experiments.figures.reproduce", interrupted)
    for flags in ([], ["--quick"], ["--seed", "1"], []):
        assert vflens("reproduce", "rvg-fig4", "--out", tmp_path, *flags).code == 130
    assert folders[0] == folders[3]
    assert len(set(folders)) == 3


def test_the_terminal_shows_the_tables_of_a_figure(
    vflens: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {"title": "Errors", "heads": ["attack", "ours"], "rows": [["lmmse", ".017"], ["half", ".250"]]}
    facts = {"title": "A figure", "notes": [], "tables": [table], "data": "d", "page": "p", "rows": 2}
    monkeypatch.setattr("vflens.experiments.figures.reproduce", lambda *_: facts)
    shown = vflens("reproduce", "rvg-fig4", "--out", tmp_path).out.splitlines()
    cells = [line.split()[1::2] for line in shown if line.startswith("│")]
    assert cells == [["lmmse", ".017"], ["half", ".250"]]


def test_a_refused_figure_leaves_no_folder_and_says_what_to_run(vflens: Run, tmp_path: Path) -> None:
    out = tmp_path / "new" / "figures"
    assert "'vgg'" in vflens("reproduce", "fao-table4", "--quick", "--model", "vgg", "--out", out).err
    nothing = vflens("reproduce", "fao-table4", "--quick", "--finished", "--out", out)
    assert nothing.code == 3
    assert "has no finished cell of seed 0" in nothing.err
    assert "run it without --finished" in nothing.err
    assert not list(tmp_path.iterdir())


def test_a_coarse_page_says_so(tmp_path: Path) -> None:
    facts = reproduce("rvg-fig6", options(tmp_path), tmp_path)
    assert facts["title"].endswith(", coarse")
    assert f"<h1>{facts['title']}</h1>" in Path(facts["page"]).read_text(encoding="utf-8")


def test_a_coarse_figure_leaves_the_full_one_where_it_is(tmp_path: Path) -> None:
    sizes: tuple[Size, ...] = ("default", "quick")
    for size in sizes:
        reproduce("rvg-fig6", FigureOptions(Pool(tmp_path / ".cells"), size), tmp_path)
    found = {f.name for f in tmp_path.glob("rvg-fig6*")}
    assert found == {f"rvg-fig6{coarse}.{kind}" for coarse in ("", "-quick") for kind in ("parquet", "html")}
    assert "coarse" not in (tmp_path / "rvg-fig6.html").read_text(encoding="utf-8").split("</h1>")[0]


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^figure 'rvgfig6' .*: choose one of them, did you mean rvg-fig6"):
        reproduce("rvgfig6", options(tmp_path), tmp_path)
    with pytest.raises(ConfigError, match=r"^figure 'fig4' is none of .*rvg-fig6.*: choose one of them"):
        reproduce("fig4", options(tmp_path), tmp_path)


def test_absent_data_sets_are_named_and_left_out(tmp_path: Path) -> None:
    facts = reproduce("rvg-fig6", options(tmp_path), tmp_path)
    rows = pq.read_table(facts["data"]).to_pylist()
    assert {r["dataset"] for r in rows} == {"synthetic"}
    assert len(facts["notes"]) == 3
    assert all("VFLENS_DATA is not set" in note for note in facts["notes"])
    page = Path(facts["page"]).read_text(encoding="utf-8")
    assert "bank is left out" in page
    assert f"vflens reproduce rvg-fig6 --seed 0 --quick --out {tmp_path}</code>" in page
    x = dealt("synthetic", 0).x
    np.testing.assert_allclose([r["variance"] for r in rows], np.diag(second_moment(x, x.mean(axis=0))))


def test_a_figure_without_any_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^figure 'var-fig2' has no data: bank is left out: "):
        reproduce("var-fig2", options(tmp_path), tmp_path)


def test_the_page_escapes_what_it_is_given() -> None:
    drawing = Drawing([{"a": 1}], [], "<script>alert(1)</script>", ["<b>"])
    page = render("<i>", drawing, data="x.parquet", command="vflens <u>")
    for bad in ("<script>alert", "<b></p>", "<h1><i>", "vflens <u>"):
        assert bad not in page


def test_windows_are_cyclic_and_each_feature_is_in_as_many() -> None:
    found = windows(7, 3, quick=False)
    assert found.shape == (7, 3)
    assert found[5].tolist() == [5, 6, 0]
    assert np.bincount(found.ravel()).tolist() == [3] * 7
    assert sizes(7, quick=False) == [1, 2, 3, 4, 5, 6, 7]
    assert sizes(36, quick=True)[-1] == 36


def test_theorem_two_holds_in_its_figure(tmp_path: Path) -> None:
    """Measured errors lie between the bounds where the measured rows are nearly all rows, and Theorem 1
    orders them.
    """
    facts = reproduce("rvg-fig5", options(tmp_path), tmp_path)
    rows = pq.read_table(facts["data"]).to_pylist()
    found: dict[tuple[int, int], dict[str, float]] = {}
    for r in rows:
        found.setdefault((r["d"], r["window"]), {})[r["curve"]] = r["mse"]
    assert len(found) == 20
    for curves in found.values():
        for name in ("ls", "half_star"):
            assert curves[f"{name}, lower"] <= curves[f"{name}, closed form"] + 1e-12
            assert curves[f"{name}, closed form"] <= curves[f"{name}, upper"] + 1e-12
            assert curves[f"{name}, measured"] == pytest.approx(
                curves[f"{name}, closed form"], rel=0.35, abs=1e-9
            )
            assert curves["any centre, this model"] <= curves[f"{name}, closed form"] + 1e-12
        assert curves["any centre, any model"] <= curves["any centre, this model"] + 1e-12


def test_the_window_system_holds_for_what_the_party_trained_on() -> None:
    from vflens.experiments.figures._windows import window_system

    rng = np.random.default_rng(1)
    model, x = Model(rng.normal(size=(4, 6)), rng.normal(size=4)), rng.random((9, 6))
    window = np.array([4, 5, 0])
    plain = window_system(model, x, window)
    np.testing.assert_allclose(x[:, window] @ plain.A.T, plain.b, atol=1e-12)
    turned = window_system(model, x, window, reflected=True)
    np.testing.assert_allclose((1 - x[:, window]) @ turned.A.T, turned.b, atol=1e-12)


def test_turned_columns_cost_the_adversary(tmp_path: Path) -> None:
    facts = reproduce("rvg-fig11", options(tmp_path), tmp_path)
    page = Path(facts["page"]).read_text(encoding="utf-8")
    assert "Means over 100 rows and four windows." in page
    rows = pq.read_table(facts["data"]).to_pylist()
    errors = {(r["d"], r["window"], r["estimator"], r["after"]): r["mse"] for r in rows}
    pairs = [(e, errors[(*place, True)]) for (*place, after), e in errors.items() if not after]
    assert len(pairs) == len(rows) / 2
    assert np.mean([after > before for before, after in pairs]) > 0.9


def _small(classes: int) -> tuple[Dealt, Model]:
    rng = np.random.default_rng(3)
    model, x = Model(rng.normal(size=(classes, 6)), rng.normal(size=classes)), rng.random((400, 6))
    labels = model.log_scores(x).argmax(axis=1)
    return Dealt(
        "small",
        tuple("abcdef"),
        x,
        labels,
        classes=classes,
        train_rows=np.arange(300),
        predict_rows=np.arange(300, 400),
    ), model


def test_ram_with_many_scores_gains_on_am() -> None:
    data, model = _small(3)
    drawn = data.train_rows, {"predict": data.predict_rows}
    rows = agnostic_rows({}, (data, model), drawn, windows(6, 2, quick=False), (50,))
    mean = {a: np.mean([r["mse"] for r in rows if r["attack"] == a]) for a in {r["attack"] for r in rows}}
    assert mean["half_star, exact scores"] < mean["ram 50"] < mean["am"]


@pytest.mark.parametrize("window", [[2], [1, 2, 3]])
def test_distorted_weights_mislead_and_an_inadmissible_distance_is_said(window: list[int]) -> None:
    data, model = _small(2)
    most = largest_distortion(model.weight[:, window])
    levels = [(share, share * most) for share in (0.1, 0.5, 1.0)]
    rows = distorted_rows({}, (data.x, model, data.x), np.array(window), levels)
    assert rows[0]["half_star"] < rows[0]["mse"] < rows[1]["mse"]
    assert "admit" in rows[2]["refused"]


def test_distortion_against_size_holds_its_epsilon_and_says_what_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model = _small(2)
    monkeypatch.setattr(var_distortion, "available", lambda names, seed: ([data], []))
    monkeypatch.setattr(var_distortion, "trained", lambda name, seed, quick: model)
    monkeypatch.setattr(var_distortion, "_EPSILONS", (0.001, 0.01, 10.0))
    asked = options(tmp_path)
    drawing = var_distortion.against_size(asked)
    assert var_distortion.against_size(asked).plots == drawing.plots  # from what was kept
    assert {r["epsilon"] for r in drawing.rows} == {0.001, 0.01, 10.0}
    assert all(("refused" in r) == (r["share"] >= 1) for r in drawing.rows)
    assert all(r["mse"] > r["half_star"] for r in drawing.rows if "mse" in r)
    refused = sum("refused" in r for r in drawing.rows)
    assert refused
    assert "closed forms agree with measurement, to " in drawing.notes[0]
    assert drawing.notes[1:] == [f"small: {refused} windows do not admit their ε: no point there"]


def test_schemes_cost_utility_and_help_with_strength() -> None:
    data, model = _small(3)
    rows = scheme_rows({}, model, data.x, windows(6, 4, quick=False))
    for scheme in ("scheme_1 plus", "scheme_2 minus", "scheme_3"):
        found = sorted(
            (r["alpha"], r["window"], r["mean_kl"], r["clamped"]) for r in rows if r["scheme"] == scheme
        )
        weakest: Array = np.array(found[:6])
        strongest: Array = np.array(found[-6:])
        assert (weakest[:, 2] >= -1e-12).all()
        assert weakest[:, 2].mean() < strongest[:, 2].mean()
        assert weakest[:, 3].mean() < strongest[:, 3].mean()


def test_closed_forms_stand_in_the_rows_of_figures_and_a_wrong_one_is_loud() -> None:
    data, model = _small(3)
    distorted = distorted_rows({}, (data.x, model, data.x), np.array([0, 2, 4]), [(0.1, 1e-4)])
    noisy = scheme_rows({}, model, data.x, windows(6, 4, quick=False)[:1])
    assert {r["statement"] for r in distorted} == {"VAR (40)"}
    for rows, measured in ((distorted, "mse"), (noisy, "half_star")):
        (text,) = theory_notes(rows, measured)
        assert text.startswith(f"{len(rows)} closed forms agree with measurement, to ")
        (loud,) = theory_notes([*rows[:-1], {**rows[-1], measured: rows[-1][measured] * 1.01}], measured)
        assert loud.startswith(
            f"THEORY AND MEASUREMENT DISAGREE in 1 of {counted(len(rows), 'row')}, by 1.0e-02"
        )
    assert theory_notes([{"mse": 0.1}]) == []
