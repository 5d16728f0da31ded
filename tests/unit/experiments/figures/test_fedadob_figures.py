"""FedAdOb's pages on tiny settings: cells, CAP, what stands beside what, and pages that are whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from thinned import first

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
from vflens.experiments.figures.fedadob.cells import cells, run
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
    VARIANCES,
)
from vflens.experiments.figures.fedadob.studies import Study
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.experiments.sweeps.pool import Pool
from vflens.plugins.attack import LinearAttack, installed_attack
from vflens.registry import ATTACKS as INSTALLED_ATTACKS
from vflens.registry import DEFENSES as INSTALLED_DEFENSES
from vflens.types import Setting

pytest.importorskip("torch")
NAMES = [name for name in figures() if name.startswith("fao-")]
#: A page of each kind that has no test of its own: pictures, clicks, seconds. Ablations take longer.
KINDS = ("fao-fig5", "fao-fig6", "fao-table7")
PAGES = [*KINDS, *(name for name in NAMES if name not in (*KINDS, "fao-table4", "fao-fig4"))]
FEW = {"steps": 2, "starts": 1}
EFFORT = dict.fromkeys(("cafe", "wmi", "wmi:granted", "wmi:joint"), FEW)
EFFORT |= {name: {"learning_steps": 1} for name in ("inverse_network", "inverse_network:moments")}
EFFORT |= {
    name: FEW | {"learning_steps": 2}
    for name in ("bmi", "bmi:moments", "bmi:printed", "wmi_moments", "moments_only")
}
EFFORT |= dict.fromkeys(("wmi_signs", "wmi_averaged", "wmi_masked"), FEW)
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
    clicks = [
        replace(study, training={**study.training, "epochs": 2}, effort=EFFORT)
        for study in studies.clicks(of("quick", 1))
    ]
    monkeypatch.setattr(scoring, "clicks", lambda options: clicks)
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


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cells that pages have in common are computed once."""
    return tmp_path_factory.mktemp("cells")


def made(name: str, folder: Path, cells: Path | None = None) -> tuple[dict[str, Any], str]:
    facts = reproduce(name, FigureOptions(Pool(cells or folder / ".cells"), "quick"), folder)
    return facts, Path(facts["page"]).read_text(encoding="utf-8")


def read_rows(facts: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(facts["data"]).to_pylist()
    return rows


def test_attacks_of_a_server_see_one_client(tiny: None, tmp_path: Path, finished: Path) -> None:
    """Rows of others are scored nowhere, and each page's figures are those of granted training rows."""
    facts, text = made("fao-fig3", tmp_path, finished)
    rows = read_rows(facts)
    assert {(r["target"], r["scored_set"], r["rows"]) for r in rows} == {("client-1", "train", 3)}
    attacks = {"wgi", "cafe", "wmi", "wmi:granted", "bmi", "inverse_network:linear"}
    own = {"cnn on digits": set(), "mlp on digits": {"wgi_moments"}}
    knowing = {"sparsification": {"wmi_masked"}, UNDEFENDED: set(), FEDADOB: set(), AUTHORS: set()}
    met: dict[tuple[str, str], set[str]] = {}
    for r in rows:
        met.setdefault((r["model"], r["defense"]), set()).add(r["attack"])
    assert met == {(m, d): attacks | own[m] | knowing[d] for m in own for d in knowing}
    assert "granted, not on the wire" in text
    (alone,) = [
        r for r in rows if (r["model"], r["defense"], r["attack"]) == ("cnn on digits", UNDEFENDED, "cafe")
    ]
    cap = alone["accuracy"] * alone["error"]
    words = f"cnn on digits: CAFE as printed has CAP {cap:.3f} without a defence here, 0.033 in the paper"
    assert (words in facts["lead"]) == (cap > 0.033)
    settings = TINY_CLIENTS.settings(0, (), clients.DEFENDED[1], 0.0)
    assert settings["horizontal"]["method"] == "lg_fedavg"
    assert settings["scenarios"][0]["defenses"] == []


def test_table_3_has_both_of_its_attacks(tiny: None, tmp_path: Path, finished: Path) -> None:
    """And begins with what they miss without passports."""
    facts, text = made("fao-table3", tmp_path, finished)
    ours = {(r["defense"], r["attack"]): r["error"] for r in read_rows(facts)}
    assert set(ours) == {(m.title, a) for m in clients.BLACK_BOX for a in ("bgi", "bmi")}
    lines = {row[0]: row for row in facts["tables"][0]["rows"]}
    for method in clients.BLACK_BOX:
        shown = [f"{ours[method.title, attack]:.3f}" for attack in ("bgi", "bmi")]
        assert lines[method.title][3::2][:2] == shown
    assert ours[clients.SPLITFED, "bmi"] > 0.052
    assert "BMI under SplitFed as printed has error" in text


@pytest.mark.parametrize("name", first(PAGES, len(KINDS)))
def test_every_page_is_whole(name: str, tiny: None, tmp_path: Path, finished: Path) -> None:
    facts, text = made(name, tmp_path, finished)
    refused = [n for n in facts["notes"] if "refused" in n or "failed" in n or "skipped" in n]
    assert refused == []
    assert facts["rows"] > 0
    assert FEDADOB in text
    if name == "fao-fig6":
        linear, deeper = (table["title"] for table in facts["tables"])
        assert deeper == f"{linear}, deeper top"
        tops = [s.model.get("top") for s in studies.clicks(of("default"))]
        assert [not top for top in tops] == [True, False]
        # an order may be turned
        assert all(r["error"] == min(r["label_auc"], 1 - r["label_auc"]) for r in read_rows(facts))
    if name in ("fao-table5", "fao-table6"):
        titles = [table["title"].partition(" beside")[0] for table in facts["tables"]]
        assert titles == [f"tiny, {FEDADOB},", f"tiny, {AUTHORS},"]
        column, printed = ("CAFE", "cafe") if name == "fao-table5" else ("PMC", "pmc:printed")
        (own,) = [r for r in read_rows(facts) if (r["defense"], r["attack"]) == (UNDEFENDED, printed)]
        alone = own["accuracy"] * own["error"]
        paper = CAPS[column, "AlexNet-CIFAR10", UNDEFENDED].mean
        words = f"tiny: {column} as printed has CAP {alone:.3f} without a defence here, {paper:.3f} in"
        assert (words in text) == (alone > paper)
    if name in ("fao-table7", "fao-table8"):
        assert all(r["train"] > 0 and r["infer"] > 0 for r in read_rows(facts))
    if name == "fao-fig5":
        assert text.count("data:image/png;base64,") >= 6 * 3


@pytest.mark.facts
def test_two_pages_of_one_experiment_share_its_cells(
    tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = made("fao-table4", tmp_path)
    assert "kept = 0.5" in text
    assert "Paper only, not run here: AlexNet-CIFAR10, ResNet-CIFAR10, LeNet-ModelNet." in text

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
        assert {clients.study(of(size, 2)).seeds, *(s.seeds for s in studies.clicks(of(size, 2)))} == {2}


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
    assert "1 of 2 results are not computed yet." in part["notes"]
    assert "--finished --quick" in Path(part["page"]).read_text(encoding="utf-8")
    whole = reproduce("fao-accuracy", FigureOptions(pool, "quick"), tmp_path)
    assert began == [(0, 1), (1, 1), (1, 2), (1, 2), (2, 2)]
    assert not [n for n in whole["notes"] if "not computed" in n]
    with pytest.raises(
        ConfigError, match=r"^figure 'fao-fig5' has one seed, or its own: leave --seeds 1 out$"
    ):
        reproduce("fao-fig5", FigureOptions(pool, "quick", seeds=1), tmp_path)
    with pytest.raises(ConfigError, match=r"^figure 'fao-fig5' has no page of a part: leave --finished out$"):
        reproduce("fao-fig5", FigureOptions(finished, "quick"), tmp_path)


def test_one_model_of_a_size_runs_alone(tmp_path: Path) -> None:
    pool = Pool(tmp_path / ".cells")
    alone = [studies.studies(FigureOptions(pool, "full", model=m)) for m in ("lenet", "resnet18")]
    assert [[s.beside for s in found] for found in alone] == [["LeNet-MNIST"], ["ResNet-CIFAR10"]]
    assert len(studies.studies(FigureOptions(pool, "full"))) == 3
    with pytest.raises(ConfigError, match=r"^--model 'vgg': this size runs cnn, choose one of them$"):
        reproduce("fao-table5", FigureOptions(pool, "quick", model="vgg"), tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(
        ConfigError, match=r"^figure 'fao-table3' has one model, or none: leave --model cnn out$"
    ):
        reproduce("fao-table3", FigureOptions(pool, "quick", model="cnn"), tmp_path)


def test_fewer_epochs_than_the_size_s_stand_in_the_study_s_name(tmp_path: Path) -> None:
    pool = Pool(tmp_path / ".cells")
    (found,) = studies.studies(FigureOptions(pool, "full", model="alexnet", epochs=2))
    assert (found.name, found.training["epochs"]) == ("AlexNet on CIFAR-10, 2 of 100 epochs", 2)
    for name in ("fao-fig6", "fao-table7"):
        with pytest.raises(
            ConfigError, match=rf"^figure '{name}' has epochs of its own: leave --epochs 2 out$"
        ):
            reproduce(name, FigureOptions(pool, "quick", epochs=2), tmp_path)


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
    adaptive = next(a for a in ATTACKS if a.only == FEDADOB)
    assert [m.title for m in DEFENSES if adaptive.meets(m)] == [FEDADOB, AUTHORS]
    granted = next(a for a in ATTACKS if a.name == "wmi:granted")  # it starts where the adaptive one does
    assert all(granted.meets(m) for m in DEFENSES if FEATURES in m.against)
    assert {a.on for a in SCORING} == {LABELS}
    assert sum(a.printed for a in ATTACKS if a.on == FEATURES) >= 1


def test_a_defence_meets_the_attacks_that_know_it_and_no_other_does() -> None:
    """CAP over the best attack compares defences only where each meets an adversary made for it."""
    kinds = {name: installed_attack(name) for name in INSTALLED_ATTACKS.names()}
    found_kinds = {n: k for n, k in kinds.items() if k is not None and not issubclass(k, LinearAttack)}
    vertical = {n: k for n, k in found_kinds.items() if Setting.VERTICAL in k.settings}  # of networks
    made = {name: kind.knows for name, kind in vertical.items() if kind.knows}
    estimates = {n: k.estimates for n, k in vertical.items()}
    found = set()
    for method in (*DEFENSES, *IMAGES):
        met = {a.name.partition(":")[0] for a in ATTACKS if a.meets(method)} & made.keys()
        knowing = {n for n, knows in made.items() if knows & {*method.at.values()}}
        assert met == {n for n in knowing if estimates[n] in method.against}, method.title
        found |= {(method.title, n) for n in met}
    passports = {"FedAdOb", "FedAdOb, authors' code"}
    assert {title for title, _ in found} == {"sparsification", "DP", "InstaHide", "CAE"} | passports


def test_a_server_has_the_attacks_that_know_its_clients_defences() -> None:
    kinds = {name: installed_attack(name) for name in INSTALLED_ATTACKS.names()}
    served = {n: k.knows for n, k in kinds.items() if k is not None and Setting.HORIZONTAL in k.settings}
    found = set()
    for method in clients.DEFENDED:
        knowing = {n for n, knows in served.items() if method.plugin in knows}
        assert knowing <= {a.name for a in clients.ONE_LAYER_ATTACKS if a.meets(method)}, method.title
        found |= {method.title} if knowing else set()
    assert found == {"sparsification", "DP", "InstaHide", FEDADOB, AUTHORS}


def test_a_variance_is_run_as_its_deviation() -> None:
    settings = [c.arguments[1] for c in cells(replace(TINY, seeds=1), [ablations._VARIANCES.method], 0)]
    sigmas = [s["scenarios"][0]["defenses"][0]["sigma"] for s in settings]
    assert [s**2 for s in sigmas] == pytest.approx(list(VARIANCES))
