"""The verdict in words and as data: every figure beside its blind baseline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from runfolder import metric, scores, target, write_party, write_run

from vflens.cli.screen.result_tables import result_tables
from vflens.experiments.outcome.words import number
from vflens.experiments.pages.report import render
from vflens.experiments.results import clear_training
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.results import final, results
from vflens.experiments.results.titles import labels
from vflens.experiments.results.utility import utility
from vflens.experiments.results.verdict import baseline, omissions, result_table, to_json, verdict
from vflens.experiments.watch.page import RunsPage
from vflens.registry import Registry

LABEL_ONLY = [{"name": "label_only"}]
HEADLINE = (
    "From 360 predictions the active party reconstructs the passive party's pixels: it finds 74 % "
    "of what a blind guess leaves open (MSE .021; of the best blind guess, the column means, .080)."
)
UNREAD = (
    "Trained in the clear, and no attack of this run reads that: the attacks read predictions and disclosed "
    "parameters only."
)
Runs = Callable[..., tuple[RecordedRun, ...]]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Runs by name, each from the arguments of ``write_run``."""

    def build(**arguments: dict[str, Any]) -> tuple[RecordedRun, ...]:
        return read_runs([write_run(tmp_path / name, **given) for name, given in arguments.items()])

    return build


def test_the_verdict_names_the_leak_and_what_a_defence_changes(runs: Runs) -> None:
    printed = verdict(runs(plain={}, guarded={"errors": {"lmmse": 0.0785}, "defenses": LABEL_ONLY}))
    assert printed.headline == HEADLINE
    assert printed.others == ("With label_only: MSE .079, no better than a blind guess, accuracy unchanged.",)
    assert printed.assumption == UNREAD
    assert str(printed) == f"{HEADLINE} {printed.others[0]} {UNREAD}"


def test_a_defence_that_fails_and_costs_accuracy(runs: Runs) -> None:
    guarded = {"errors": {"lmmse": 0.04}, "defenses": LABEL_ONLY, "accuracy": 0.9}
    assert verdict(runs(plain={}, guarded=guarded)).others == (
        "With label_only: 50 % found (MSE .040), accuracy .960 → .900.",
    )


def test_of_two_classes_the_auc_stands_before_the_accuracy(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defended model that answers "no" to everybody keeps the accuracy of most tables."""
    plain, guarded = runs(plain={}, guarded={"errors": {"lmmse": 0.04}, "defenses": LABEL_ONLY})
    figures = {plain.name: 0.81, guarded.name: 0.52}
    measured = property(lambda run: {"auc": figures[run.name], "accuracy": 0.96})
    monkeypatch.setattr(RecordedRun, "utility", measured)
    monkeypatch.setattr(RecordedRun, "value", lambda run, name: run.utility[name])
    of_ten = "With label_only: 50 % found (MSE .040), accuracy unchanged."
    assert verdict((plain, guarded)).others == (of_ten,)
    monkeypatch.setattr(RecordedRun, "n_classes", 2)
    of_two = "With label_only: 50 % found (MSE .040), AUC .810 → .520, accuracy unchanged."
    assert verdict((plain, guarded)).others == (of_two,)


def test_a_leak_of_two_per_cent_is_hardly_one(runs: Runs) -> None:
    printed = verdict(runs(plain={"errors": {"lmmse": 0.077}}, guarded={"errors": {"lmmse": 0.0765}}))
    assert (
        "reconstructs the passive party's pixels hardly better than a blind guess (MSE .077; "
        in printed.headline
    )
    assert printed.others[0].endswith(": MSE .076, hardly better than a blind guess, accuracy unchanged.")
    just = verdict(runs(third={"errors": {"lmmse": 0.076}}))
    assert "it finds 5 % of what a blind guess leaves open (MSE .076; " in just.headline


def test_the_baseline_is_the_first_run_without_defences(runs: Runs) -> None:
    both = runs(guarded={"errors": {"lmmse": 0.0785}, "defenses": LABEL_ONLY}, plain={})
    assert labels(both) == ["no defence", "label_only"]
    assert verdict(both).headline == HEADLINE


def test_a_run_without_results_is_no_baseline(runs: Runs) -> None:
    both = runs(plain={"errors": {}}, guarded={"defenses": LABEL_ONLY})
    assert baseline(both) == 1
    printed = verdict(both)
    assert printed.headline == f"With label_only: f{HEADLINE[1:]}"
    assert printed.others == ("With no defence: nothing was scored, accuracy unchanged.",)


def test_a_defended_run_alone_says_so(runs: Runs) -> None:
    printed = verdict(runs(guarded={"defenses": [{"name": "round_scores", "digits": 2}]}))
    assert printed.headline == f"With round_scores (digits 2): f{HEADLINE[1:]}"


def test_no_better_than_blind_until_the_interval_lies_below(runs: Runs) -> None:
    (inside,) = runs(a={"errors": {"lmmse": 0.0785}})
    (below,) = runs(b={"errors": {"lmmse": 0.0775}})
    assert [r.better for r in (*final(inside), *final(below))] == [False, True]
    assert "no better than a blind guess (MSE .079; of the best blind guess" in verdict([inside]).headline


def columns(errors: dict[str, float], rows: int = 360) -> dict[str, Any]:
    """Arguments of a run in which ls equals a blind guess over all columns, but errs by so much at each."""
    mean = sum(errors.values()) / len(errors)
    kept = [m for m in scores({"ls": max(mean, 0.1)}, rows) if m["metric"] != "column_mse"]
    where = {"attack": "ls", "target": "passive", "scored_set": "predict", "rows": rows}
    return {"metrics": [*kept, *(metric("column_mse", e, column=c, **where) for c, e in errors.items())]}


def test_no_better_than_blind_does_not_hide_a_column_that_leaks(tmp_path: Path) -> None:
    one = target(tmp_path / "one", **columns({"pixel_2_5": 0.001, "pixel_2_6": 0.9}))
    assert verdict([one]).headline.endswith(
        "the column means, .080), but 1 column leaks: pixel_2_5 (ls, MSE .001, of a blind guess .080)."
    )
    two = target(tmp_path / "two", **columns({"pixel_2_5": 0.03, "pixel_2_6": 0.02, "pixel_3_5": 0.9}))
    assert ", but 2 columns leak, most of all this: pixel_2_6 (ls, MSE .020, " in verdict([two]).headline
    assert "no better than a blind guess, but 1 column leaks: " in verdict([two, one]).others[0]


def test_a_column_is_not_said_to_leak_by_chance(tmp_path: Path) -> None:
    half = target(tmp_path / "half", **columns({"pixel_2_5": 0.041, "pixel_2_6": 0.9}))
    few = target(tmp_path / "few", **columns({"pixel_2_5": 0.001, "pixel_2_6": 0.9}, rows=49))
    for run in (half, few):
        assert verdict([run]).headline.endswith("the column means, .080).")


def test_where_a_blind_guess_is_exact_the_attack_that_errs_least_comes_first(tmp_path: Path) -> None:
    found = [
        m | {"value": 0.0} if m["metric"] == "blind_mse" else m for m in scores({"ls": 0.2, "half": 0.1})
    ]
    assert [r.attack for r in final(target(tmp_path, found))] == ["half", "ls"]


def test_several_targets_are_told_apart_worst_first(tmp_path: Path) -> None:
    run = target(tmp_path, [*scores({"ls": 0.04}), *scores({"ls": 0.02}, target="registry")])
    assert [r.target for r in final(run)] == ["registry", "passive"]
    headline = verdict([run]).headline
    assert headline.index("party registry's columns: it finds 75 %") < headline.index(
        "passive party's pixels"
    )


def test_without_figures_nothing_is_claimed(tmp_path: Path) -> None:
    run = target(tmp_path, [])
    assert str(verdict([run])).startswith("Nothing can be said yet")
    assert (results(run), result_table([run])[1], utility(run)) == ((), [], {})


def test_training_rows_are_named_as_such(tmp_path: Path) -> None:
    run = target(tmp_path, [m | {"scored_set": "train"} for m in scores({"ls": 0.02}, rows=1437)])
    assert verdict([run]).headline.startswith("Of 1,437 train rows the active party reconstructs")


@pytest.mark.parametrize(
    ("scored", "words"),
    [("round-3", "rows of round 3"), ("batches-0", "rows of the batches of round 0")],
)
def test_rows_of_a_round_are_named_in_words(tmp_path: Path, scored: str, words: str) -> None:
    run = target(tmp_path, [m | {"scored_set": scored} for m in scores({"ls": 0.02}, rows=24)])
    assert verdict([run]).headline.startswith(f"Of 24 {words} the active party reconstructs")
    assert words in str(render([run]))
    assert f"24 {words}" in str(RunsPage([run.parties[0].folder]).panels({})["errors"])
    assert [table.title for table in result_tables([run], 200)] == [f"passive, {words}"]


def test_an_attack_on_training_traffic_changes_the_threat_model(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clear_training, "reads_training", lambda attack: attack == "half_star")
    assert verdict(runs(plain={})).assumption == "Training in the clear: half_star read training traffic."


def test_blind_errors_of_other_rows_do_not_count(tmp_path: Path) -> None:
    other = [m for m in scores({"ls": 0.02}, rows=100) if m["metric"] == "blind_mse"]
    alone = [m for m in scores({"ls": 0.02}, rows=360) if m["metric"] == "mse"]
    assert results(target(tmp_path, [*other, *alone])) == ()


def test_the_targets_own_figure_wins_over_the_adversarys_copy(tmp_path: Path) -> None:
    write_party(tmp_path / "demo" / "active", "active", metrics=scores({"ls": 0.5, "gia": 0.3}))
    run = target(tmp_path, scores({"ls": 0.02}))
    assert {r.attack: r.mse for r in final(run)} == {"ls": 0.02, "gia": 0.3}


def test_a_result_carries_interval_and_least_blind_error(tmp_path: Path) -> None:
    (result,) = results(target(tmp_path, scores({"ls": 0.02})))
    assert (result.rows, result.mse, result.blind, result.unusable) == (360, 0.02, 0.08, 0.0)
    assert result.half_width == pytest.approx(1.96 * 0.001)
    assert result.blind_guess == "the column means"
    assert result.relative == pytest.approx(0.25)


def test_without_a_standard_error_there_is_no_interval(tmp_path: Path) -> None:
    run = target(tmp_path, [m for m in scores({"ls": 0.02}) if m["metric"] != "mse_stderr"])
    assert final(run)[0].half_width is None
    assert result_table([run])[1][0][-1] == ".020 (25 %)"


def test_of_a_blind_guess_that_is_exact_nothing_is_a_share(tmp_path: Path) -> None:
    exact = [m | {"value": 0.0} if m["metric"] == "blind_mse" else m for m in scores({"ls": 0.02})]
    assert result_table([target(tmp_path, exact)])[1][0][-1] == ".020 ± .002"


def test_final_is_the_last_milestone(runs: Runs) -> None:
    (run,) = runs(plain={"errors": {"ls": 0.02}})
    assert [r.rows for r in results(run)] == [50, 100, 360]
    assert [r.rows for r in final(run)] == [360]


def test_runs_with_the_same_defence_are_told_apart_by_name(runs: Runs) -> None:
    assert labels(runs(a={}, b={}, c={"defenses": LABEL_ONLY})) == [
        "no defence · a",
        "no defence · b",
        "label_only",
    ]


def test_unknown_defences_are_not_called_none(tmp_path: Path) -> None:
    assert labels([target(tmp_path, [])]) == ["demo"]


def test_many_runs_do_not_drown_the_verdict(runs: Runs) -> None:
    six = {f"r{i}": {"defenses": [{"name": "round_scores", "digits": i}]} for i in range(1, 7)}
    printed = verdict(runs(plain={}, **six))
    assert len(printed.others) == 6
    assert printed.others[0].startswith(
        "No defence here lessens the largest leak, 74 % of what a blind guess leaves"
    )
    assert printed.others[-1] == "2 more runs stand in the heat map below."


def test_the_table_is_attack_by_run_with_blind_rows_last(runs: Runs) -> None:
    header, rows = result_table(runs(plain={}, guarded={"errors": {"ls": 0.08}, "defenses": LABEL_ONLY}))
    assert header == ("target", "rows", "attack", "no defence", "label_only")
    assert rows == [
        ("passive", "predict", "lmmse", ".021 ± .002 (26 %)", "–"),
        ("passive", "predict", "half_star", ".112 ± .002 (140 %)", "–"),
        ("passive", "predict", "ls", "–", ".080 ± .002 (100 %)"),
        (
            "passive",
            "predict",
            "best blind guess = 100 %",
            ".080 (the column means)",
            ".080 (the column means)",
        ),
    ]


def test_json_is_strict_and_has_stable_keys(tmp_path: Path) -> None:
    perfect = [m | {"value": 0.0} if m["metric"] == "blind_mse" else m for m in scores({"ls": 0.02})]
    run = target(tmp_path, [*perfect, metric("mean_kl", float("inf"))])
    data = json.loads(json.dumps(to_json([run]), allow_nan=False))
    assert sorted(data) == ["runs", "verdict"]
    (facts,) = data["runs"]
    assert sorted(facts) == [
        "column_means",
        "defenses", "explained_after_affine_map", "failed", "fedadob", "findings",
        "hijacking_suspected", "label",
        "labels", "largest_leaks", "membership", "on_grants_only", "parties", "privacy", "results", "run",
        "skipped", "theory", "theory_disagreements", "utility",
        "worst_cases",
    ]  # fmt: skip
    assert facts["utility"] == {"mean_kl": None}
    assert facts["results"] == [
        {
            **{"attack": "ls", "target": "passive", "scored_set": "predict", "rows": 360, "mse": 0.02},
            **{"half_width": 0.00196, "blind": 0.0, "blind_guess": "all zeros", "unusable": 0.0},
            **{"relative": None, "better_than_blind": False, "own_units": []},
            **dict.fromkeys(("psnr", "ssim", "blind_psnr", "blind_ssim")),
        }
    ]


def test_the_gain_is_over_the_active_party_alone(runs: Runs) -> None:
    (run,) = runs(plain={})
    assert utility(run) == pytest.approx(
        {"accuracy": 0.96, "accuracy_alone": 0.9, "accuracy_gain": 0.06, "mean_kl": 0.01}
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *[(0.0213, ".021"), (1.2344, "1.234"), (-0.05, "-.050"), (0.0, ".000"), (0.9996, "1.000")],
        *[(2.1e-6, "2.1e-06"), (10.5, "10.500"), (float("inf"), "∞"), (float("-inf"), "-∞")],
        *[(float("nan"), "–"), (None, "–"), (9.7e-23, "0"), (-1e-17, "0")],
    ],
)
def test_figures_read_as_in_the_papers(value: float | None, text: str) -> None:
    assert number(value) == text


def test_who_attacks_labels_does_not_reconstruct_columns(runs: Runs, tmp_path: Path) -> None:
    (run,) = runs(plain={})
    passive = tmp_path / "plain" / "passive" / "config.toml"
    passive.write_text(passive.read_text() + '\n[[attacks]]\nname = "gradient_sign"\n')
    assert len([p for p in read_runs([tmp_path / "plain"])[0].parties if p.settings.attacks]) == 2
    assert verdict(read_runs([tmp_path / "plain"])).headline == verdict([run]).headline == HEADLINE


def test_attacks_that_did_not_run_are_named_once_with_their_runs(tmp_path: Path) -> None:
    lacking = [metric("skipped", 1, attack="pmc", adversary="passive", target="active", detail="no labels")]
    runs = [target(tmp_path / name, [*scores({"lmmse": 0.021}), *lacking]) for name in ("a", "b")]
    (sentence,) = omissions(runs)
    assert sentence.startswith("an attack did not run, with ")
    assert sentence.endswith(": pmc in passive on active: no labels")
    assert omissions([target(tmp_path / "c", scores({"lmmse": 0.021}))]) == []


def test_no_attack_is_looked_up_for_each_figure(tmp_path: Path) -> None:
    milestones = range(50, 1050, 50)
    run = target(tmp_path, [m for n in milestones for m in scores({"half": 0.1, "lmmse": 0.05}, rows=n)])
    with patch.object(Registry, "get", autospec=True, side_effect=Registry.get) as get:
        for _ in range(20):
            assert len(results(run)) == 2 * len(milestones)
    once = ["half", "lmmse"]  # for each of two questions: up to an affine map, and a blind guess
    assert sorted(call.args[1] for call in get.call_args_list) == sorted(2 * once)


def test_clients_and_their_server_are_called_by_name() -> None:
    from types import SimpleNamespace
    from typing import cast

    from vflens.experiments.results.record import RecordedRun
    from vflens.experiments.results.titles import named
    from vflens.types import Role

    roles = {"hub": Role.SERVER, "north": Role.CLIENT, "b": Role.PASSIVE}
    infos = {name: SimpleNamespace(role=role) for name, role in roles.items()}
    found = SimpleNamespace(infos=lambda: infos)
    assert [named(cast(RecordedRun, found), n) for n in roles] == [
        "the server",
        "north",
        "the passive party b",
    ]
