"""FedAdOb's pages on tiny settings: cells, CAP, what stands beside what, and pages that are whole."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from scipy import stats

from vflens.errors import ConfigError, DataError
from vflens.experiments.figures import FigureOptions, Size, figures, page, reproduce
from vflens.experiments.figures.fedadob import (
    ablations,
    clients,
    forms,
    horizontal,
    images,
    scoring,
    studies,
    times,
    trade_offs,
)
from vflens.experiments.figures.fedadob.cells import best, caps, cells, missed, run, unlearned
from vflens.experiments.figures.fedadob.methods import (
    ATTACKS,
    AUTHORS,
    DEFENSES,
    FEATURES,
    FEDADOB,
    IMAGES,
    LABELS,
    SCORED,
    SCORING,
    TIMED,
    UNDEFENDED,
    Against,
    Method,
)
from vflens.experiments.figures.fedadob.printed import (
    CAPS,
    LARGEST_MEANS,
    MODELS,
    VARIANCES,
    VERTICAL_SECONDS,
)
from vflens.experiments.figures.fedadob.studies import Study
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.experiments.sweeps.pool import Pool
from vflens.numerics.measures.intervals import spread
from vflens.registry import ATTACKS as INSTALLED_ATTACKS
from vflens.registry import DEFENSES as INSTALLED_DEFENSES

pytest.importorskip("torch")
NAMES = [name for name in figures() if name.startswith("fao-")]
FEW = {"steps": 2, "starts": 1}
EFFORT = dict.fromkeys(("cafe", "wmi", "wmi:granted", "wmi:joint"), FEW)
EFFORT |= {name: {"learning_steps": 1} for name in ("inverse_network", "inverse_network:moments")}
EFFORT |= {
    name: FEW | {"learning_steps": 2}
    for name in ("bmi", "bmi:moments", "bmi:printed", "wmi_moments", "moments_only")
}
EFFORT |= {"wgi": FEW, "bgi": FEW | {"learning_steps": 2}}
EFFORT |= {"pmc": {"steps": 2}, "pmc:printed": {"fine_tune_steps": 1}}
TINY = Study(
    "tiny",
    "LeNet-MNIST",
    {"name": "digits", "sample": 120},
    {"architecture": "cnn", "top": [8]},
    training={"optimizer": "adam", "epochs": 1, "batch_size": 48, "learning_rate": 0.01},
    seeds=2,
    attacked=8,
    granted=4,
    labels=4,
    effort=EFFORT,
)
TINY_CLIENTS = replace(
    clients.study(FigureOptions(Pool(Path()), "quick")),
    data={"name": "digits", "sample": 120},
    clients=2,
    horizontal={"rounds": 1},
    attacked=3,
    granted=4,
    effort=EFFORT,
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages on a few digits: undefended, with one defence of each kind, and passports."""

    def small(options: FigureOptions) -> list[Study]:
        return [replace(TINY, seeds=1)]

    def one(methods: tuple[Method, ...]) -> tuple[Method, ...]:
        return tuple(
            m.at_strengths(m.values[0])
            for m in methods
            if m.title in (UNDEFENDED, "sparsification", FEDADOB, AUTHORS)
        )

    for module in (forms, trade_offs, ablations, images, times):
        monkeypatch.setattr(module, "studies", small)
    monkeypatch.setattr(scoring, "clicks", lambda options: studies.clicks(replace(options, seeds=1)))
    monkeypatch.setattr(trade_offs, "DEFENSES", one(DEFENSES))
    monkeypatch.setattr(images, "IMAGES", one(IMAGES))
    monkeypatch.setattr(times, "TIMED", one(TIMED))
    monkeypatch.setattr(scoring, "SCORED", one(SCORED))
    monkeypatch.setattr(times, "_REPETITIONS", {"quick": 1})
    monkeypatch.setattr(times, "CLIENT_TIMED", one(clients.TIMED))
    monkeypatch.setattr(horizontal, "DEFENDED", one(clients.DEFENDED))
    for module in (horizontal, times):
        monkeypatch.setattr(module, "study", lambda options: TINY_CLIENTS)


def of(size: Size, seeds: int | None = None) -> FigureOptions:
    return FigureOptions(Pool(Path()), size, seeds=seeds)


def made(name: str, folder: Path) -> tuple[dict[str, Any], str]:
    facts = reproduce(name, FigureOptions(Pool(folder / ".cells"), "quick"), folder)
    return facts, Path(facts["page"]).read_text(encoding="utf-8")


def read_rows(facts: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(facts["data"]).to_pylist()
    return rows


def test_attacks_of_a_server_see_one_client(tiny: None, tmp_path: Path) -> None:
    """Rows of others are scored nowhere, and each page's figures are those of granted training rows."""
    facts, text = made("fao-fig3", tmp_path)
    rows = read_rows(facts)
    assert {(r["target"], r["scored_set"], r["rows"]) for r in rows} == {("client-1", "train", 3)}
    attacks = {"wgi", "cafe", "wmi", "wmi:granted", "bmi", "inverse_network:linear"}
    met = {model: {r["attack"] for r in rows if r["model"] == model} for model in {r["model"] for r in rows}}
    assert met == {"cnn on digits": attacks, "mlp on digits": attacks | {"wgi_moments"}}
    assert {r["defense"] for r in rows} == {UNDEFENDED, "sparsification", FEDADOB, AUTHORS}
    assert "granted, not on the wire" in text
    settings = TINY_CLIENTS.settings(0, (), clients.DEFENDED[1], 0.0)
    assert settings["horizontal"]["method"] == "lg_fedavg"
    assert settings["scenarios"][0]["defenses"] == []


def test_an_attack_that_misses_its_own_undefended_number_is_named_first() -> None:
    assert missed("CAFE", [0.05], 0.033).startswith(
        "CAFE as printed errs 0.050 without a defence here, 0.033"
    )
    assert missed("CAFE", [0.05, 0.07, 0.06], 0.033)
    assert (
        missed("CAFE", [0.03], 0.033) == missed("CAFE", [0.02, 0.08], 0.033) == missed("CAFE", [], 0.1) == ""
    )


def test_table_3_has_both_of_its_attacks(tiny: None, tmp_path: Path) -> None:
    """And begins with what they miss without passports."""
    facts, text = made("fao-table3", tmp_path)
    ours = {(r["defense"], r["attack"]): r["error"] for r in read_rows(facts)}
    assert set(ours) == {(m.title, a) for m in clients.BLACK_BOX for a in ("bgi", "bmi")}
    lines = {row[0]: row for row in facts["tables"][0]["rows"]}
    for method in clients.BLACK_BOX:
        shown = [f"{ours[method.title, attack]:.3f}" for attack in ("bgi", "bmi")]
        assert lines[method.title][3::2][:2] == shown
    assert ours[clients.SPLITFED, "bmi"] > 0.052
    assert "BMI under SplitFed as printed errs" in text


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("fao-table4", "fao-fig4")])
def test_every_page_is_whole(name: str, tiny: None, tmp_path: Path) -> None:
    facts, text = made(name, tmp_path)
    refused = [n for n in facts["notes"] if "refused" in n or "failed" in n or "skipped" in n]
    assert refused == []
    assert facts["rows"] > 0
    assert FEDADOB in text
    if name == "fao-fig6":  # an order may be turned
        assert all(r["error"] == min(r["label_auc"], 1 - r["label_auc"]) for r in read_rows(facts))
    if name in ("fao-table5", "fao-table6"):
        titles = [table["title"].partition(" beside")[0] for table in facts["tables"]]
        assert titles == [f"tiny, {FEDADOB},", f"tiny, {AUTHORS},"]
    if name == "fao-fig5":
        assert text.count("data:image/png;base64,") >= 6 * 3


def test_two_pages_of_one_experiment_share_its_cells(
    tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = made("fao-table4", tmp_path)
    assert "kept = 0.5" in text
    assert "Paper only, not run in this size: AlexNet-CIFAR10, ResNet-CIFAR10, LeNet-ModelNet." in text

    def never(*arguments: Any, **named: Any) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("vflens.experiments.figures.fedadob.cells.run_cell", never)
    facts, _ = made("fao-fig4", tmp_path)
    assert facts["rows"] > 0
    table, figure = page("fao-table4", "quick"), page("fao-fig4", "quick")
    assert table.kept(tmp_path, "quick", 0) == figure.kept(tmp_path, "quick", 0)
    assert table.kept(tmp_path, "full", 0) != table.kept(tmp_path, "quick", 0)


def test_one_seed_of_every_row_comes_first() -> None:
    """So that a run that is stopped has whole rows, and a page of one seed can be drawn."""
    seeds = [c.key["place"]["seed"] for c in cells(TINY, DEFENSES, 3, [])]
    assert seeds == sorted(seeds)
    assert seeds.count(3) == seeds.count(4) == sum(len(m.values) for m in DEFENSES)
    for size in ("quick", "default", "full"):
        assert {s.seeds for s in studies.studies(of(size, 1))} == {1}
        assert clients.study(of(size, 2)).seeds == studies.clicks(of(size, 2)).seeds == 2


def test_finished_cells_of_one_seed_stay_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = replace(TINY, effort={}, training={**TINY.training, "batch_size": 96})
    monkeypatch.setattr(forms, "studies", lambda o: [replace(few, seeds=o.seeds or 2)])
    monkeypatch.setattr(forms, "FORMS", (forms.FORMS[0],))
    began: list[tuple[int, int]] = []
    pool = Pool(tmp_path / ".cells", progress=lambda done, total: began.append((done, total)))
    first = reproduce("fao-accuracy", FigureOptions(pool, "quick", seeds=1), tmp_path)
    assert "--seeds 1 --quick" in Path(first["page"]).read_text(encoding="utf-8")
    finished = replace(pool, only_finished=True)
    with pool.alone():  # as while another process computes them
        part = reproduce("fao-accuracy", FigureOptions(finished, "quick"), tmp_path)
    assert part["rows"] == first["rows"] > 0
    assert "1 of 2 federations are not computed yet." in part["notes"]
    assert "--finished --quick" in Path(part["page"]).read_text(encoding="utf-8")
    whole = reproduce("fao-accuracy", FigureOptions(pool, "quick"), tmp_path)
    assert began == [(0, 1), (1, 1), (1, 2), (1, 2), (2, 2)]
    assert not [n for n in whole["notes"] if "not computed" in n]
    with pytest.raises(ConfigError, match=r"^figure 'fao-fig5' has one seed, or its own: leave --seeds out$"):
        reproduce("fao-fig5", FigureOptions(pool, "quick", seeds=1), tmp_path)
    with pytest.raises(ConfigError, match=r"^figure 'fao-fig5' has no page of a part: leave --finished out$"):
        reproduce("fao-fig5", FigureOptions(finished, "quick"), tmp_path)


def test_losses_of_accuracy_are_those_of_each_seed() -> None:
    """In points, against no defence of the same seed; a form without a result has a line of its own."""
    none, printed = forms.FORMS[:2]
    places = [(none, 0.0, (0.95, 0.97)), (printed, 2, (0.94, 0.93))]
    rows = [
        {**row(value, seed, attack, found, error), "defense": method.title}
        for method, value, accuracies in places
        for seed, found in enumerate(accuracies)
        for attack, error in (("inverse_network:linear", 0.02), ("inverse_network:keyless", 0.03))
    ]
    lines = {(r[0], r[1]): list(r[2:]) for r in forms._lines(rows)}
    losses = [1.0, 4.0]
    assert lines[FEDADOB, "2"][1] == spread(losses, digits=1)
    assert lines[FEDADOB, "2"][2:] == ["0.0200 ± 0.0000", "0.0300 ± 0.0000", "0.0600 ± 0.0000"]
    assert lines[UNDEFENDED, "–"][:2] == [spread([0.95, 0.97]), "–"]
    assert lines[FEDADOB, "10"] == lines[AUTHORS, "2"] == ["–"] * 5
    layers = [m.defenses(2)[0] for m in forms.FORMS[1:]]
    assert [(d.get("normalise"), d.get("keys")) for d in layers] == [
        (None, None),
        ("authors", "redrawn"),
        ("authors", "fixed"),
    ]


def test_the_papers_one_number_stands_beside_both_forms_of_the_layer() -> None:
    drawn = trade_offs._bars(TINY, [row(2.0, 0, "wmi", 1.0, 0.3)], FEATURES, DEFENSES[-2:])
    paper = {d["name"]: d["y"] for d in drawn["spec"]["data"]}["CAFE, paper (LeNet-MNIST)"]
    assert paper == [CAPS["CAFE", "LeNet-MNIST", FEDADOB].mean] * 2


def test_an_absent_data_set_is_refused_before_any_federation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the paper's size the cells on MNIST, which come first, take days."""
    monkeypatch.delenv("VFLENS_DATA", raising=False)
    both = [TINY, replace(TINY, data={"name": "mnist"})]
    wanted = [cell for study in both for cell in cells(study, DEFENSES[:1], 0, [])]
    began: list[int] = []
    pool = Pool(tmp_path, progress=lambda done, total: began.append(done))
    with pytest.raises(DataError, match=r"^environment variable VFLENS_DATA is not set: set it to the "):
        run(FigureOptions(pool), wanted)
    assert began == []


def test_a_page_without_a_full_size_refuses_it() -> None:
    assert all(page(name, "full").name == name for name in NAMES)
    with pytest.raises(ConfigError, match=r"^figure 'rvg-fig4' comes in no size 'full': leave --full out$"):
        page("rvg-fig4", "full")


def test_every_cell_is_an_experiment_of_installed_plug_ins() -> None:
    methods = (*DEFENSES, *IMAGES, *TIMED, *SCORED)
    everything = {repr(m.at_strengths(m.values[0])): m.at_strengths(m.values[0]) for m in methods}.values()
    sizes: tuple[Size, ...] = ("quick", "default", "full")
    for study in [s for size in sizes for s in studies.studies(of(size))]:
        for cell in cells(replace(study, seeds=1), [*everything], 0):
            experiment = Experiment.model_validate(cell.arguments[1])
            for plugin in experiment.attacks:
                INSTALLED_ATTACKS.get(plugin.name)(**plugin.parameters)
            for defense in experiment.scenarios[0].defenses:
                INSTALLED_DEFENSES.get(defense.name)(**defense.parameters)


def test_an_attack_meets_the_defences_of_what_it_estimates() -> None:
    attacks = {"features": Against("CAFE", "wmi"), "labels": Against("PMC", "pmc")}
    for method in DEFENSES:
        assert {on for on, a in attacks.items() if a.meets(method)} == set(method.against)
    adaptive = next(a for a in ATTACKS if a.only)
    assert [m.title for m in DEFENSES if adaptive.meets(m)] == [FEDADOB, AUTHORS]
    granted = next(a for a in ATTACKS if a.name == "wmi:granted")  # it starts where the adaptive one does
    assert all(granted.meets(m) for m in DEFENSES if FEATURES in m.against)
    assert {a.on for a in SCORING} == {LABELS}
    assert sum(a.printed for a in ATTACKS if a.on == FEATURES) >= 1


def row(strength: float, seed: int, attack: str, accuracy: float, error: float) -> dict[str, Any]:
    named = {"defense": "DP", "strength": strength, "seed": seed, "attack": attack}
    return {**named, "accuracy": accuracy, "error": error, "blind": 0.06}


def test_cap_is_the_mean_over_the_grid_and_the_best_attack_its_minimum() -> None:
    dp = Method("DP", (FEATURES,), {"passive": "dp_gaussian"}, "level", values=(0.1, 1.0))
    rows = [
        *(row(0.1, s, "wmi", 0.9, 0.02 + 0.01 * s) for s in (0, 1)),
        *(row(1.0, s, "wmi", 0.5, 0.20) for s in (0, 1)),
        *(row(0.1, s, "bmi", 0.9, 0.05) for s in (0, 1)),
        *(row(1.0, s, "bmi", 0.5, 0.10) for s in (0, 1)),
    ]
    assert [c.value for c in caps(rows, dp, "wmi")] == pytest.approx([(0.018 + 0.1) / 2, (0.027 + 0.1) / 2])
    strongest = best(rows, dp, FEATURES)
    assert [c.value for c in strongest] == pytest.approx([(0.018 + 0.05) / 2, (0.027 + 0.05) / 2])
    assert [c.or_blind for c in strongest] == pytest.approx([(0.018 + 0.03) / 2, (0.027 + 0.03) / 2])
    assert len(caps(rows[1:], dp, "wmi")) == 1  # a mean over part of the grid is another figure


def test_an_attack_that_failed_in_one_seed_leaves_the_others() -> None:
    """Each seed has its best attack, among those that were scored throughout in it."""
    dp = Method("DP", (FEATURES,), {"passive": "dp_gaussian"}, "level", values=(0.1, 1.0))
    rows = [row(v, s, "wmi", 1.0, 0.3) for v in (0.1, 1.0) for s in (0, 1, 2)]
    rows += [row(v, s, "bmi", 1.0, 0.1) for v, s in ((0.1, 0), (1.0, 0), (0.1, 1))]
    assert [len(caps(rows, dp, name)) for name in ("wmi", "bmi")] == [3, 1]
    assert [c.value for c in best(rows, dp, FEATURES)] == pytest.approx([0.1, 0.3, 0.3])
    assert best(rows[6:], dp, FEATURES)[0].settings[0].attack == "bmi"
    assert best([], dp, FEATURES) == []


def test_federations_that_learn_nothing_are_named() -> None:
    """Two seeds of .95 and one of .1 have a mean of .67 that no federation has."""
    rows = [
        {**row(v, s, a, 0.9, 0.1), "model": "tiny", "accuracy_gain": 0.01 if (v, s) == (1.5, 1) else 0.8}
        for a in ("wmi", "bmi")
        for v in (0.1, 1.5)
        for s in (0, 1, 2)
    ]
    (sentence,) = unlearned(rows)
    assert sentence.startswith("tiny, DP: 1 of 6 federations learn nothing")
    assert sentence.endswith("Strengths (seed): 1.5 (1).")
    assert unlearned(rows[:3]) == []


def test_what_was_not_scored_has_no_bar() -> None:
    shown = trade_offs._bars(TINY, [row(2.0, 0, "wmi", 1.0, 0.3)], FEATURES, [Method("DP", (FEATURES,))])
    heights = {d["name"]: d["y"] for d in shown["spec"]["data"]}
    assert heights.pop("CAFE, paper (LeNet-MNIST)") == [CAPS["CAFE", "LeNet-MNIST", "DP"].mean]
    assert heights.pop("MI, paper (LeNet-MNIST)") == [CAPS["MI", "LeNet-MNIST", "DP"].mean]
    assert set(map(tuple, heights.values())) == {(None,)}


def test_a_method_is_timed_against_no_defence_of_its_own_turn() -> None:
    """Its first turn was refused: the second is not set against another method's first."""
    seconds = [(UNDEFENDED, 0, 1.0), (UNDEFENDED, 1, 2.0), (FEDADOB, 1, 3.0)]
    rows = [{"defense": d, "seed": s, "train": t, "infer": t / 10} for d, s, t in seconds]
    assert times._times(rows, FEDADOB, "LeNet-MNIST")[:2] == ["3.000", "1.50"]


def test_intervals_are_students() -> None:
    values = [0.1, 0.2, 0.4]
    half = stats.t.ppf(0.975, 2) * stats.tstd(values) / math.sqrt(3)
    assert spread(values) == f"{sum(values) / 3:.3f} ± {half:.3f}"
    assert (spread([0.25]), spread([])) == ("0.250", "–")


def test_the_papers_tables_are_whole() -> None:
    """Numbers read off the text, cell by cell, against a few that its prose or other tables repeat."""
    assert len(CAPS) == 4 * (5 + 5 + 7)
    assert {m for _, m, _ in CAPS} == set(MODELS)
    assert CAPS["CAFE", "LeNet-MNIST", FEDADOB] == (0.137, 0.002)
    assert CAPS["PMC", "ResNet-CIFAR10", "GradPerturb"] == (0.276, 0.119)
    large = [a * e for n, (a, e) in LARGEST_MEANS.items() if n >= 5]
    mean = sum(large) / len(large)
    assert mean == pytest.approx(CAPS["CAFE", "AlexNet-CIFAR10", FEDADOB].mean, abs=1e-3)
    accuracy, error = VARIANCES[0]
    assert accuracy * error == pytest.approx(CAPS["PMC", "AlexNet-CIFAR10", UNDEFENDED].mean, abs=2e-3)
    assert VERTICAL_SECONDS["InstaHide"][0] / VERTICAL_SECONDS[UNDEFENDED][0] == pytest.approx(3.1, abs=0.01)


def test_a_variance_is_run_as_its_deviation() -> None:
    settings = [c.arguments[1] for c in cells(replace(TINY, seeds=1), [ablations._VARIANCES.method], 0)]
    sigmas = [s["scenarios"][0]["defenses"][0]["sigma"] for s in settings]
    assert [s**2 for s in sigmas] == pytest.approx(list(VARIANCES))
