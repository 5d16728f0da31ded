"""The verdict on training in the clear: what the assumption of secure training is worth."""

from __future__ import annotations

from pathlib import Path

from runfolder import metric, scores, target

from vflens.experiments.results.clear_training import PROTECTED
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.results import final
from vflens.experiments.results.verdict import (
    to_json,
    verdict,
)
from vflens.score.membership import FALSE_POSITIVE_RATES

UNREAD = (
    "Trained in the clear, and no attack of this run reads that: the attacks read predictions and disclosed "
    "parameters only."
)


def test_what_the_assumption_of_secure_training_is_worth(tmp_path: Path) -> None:
    """An estimate up to an affine map has no MSE worth showing: its R² stands in the verdict instead."""
    where = {"target": "passive", "scored_set": "train", "rows": 100}
    affine = [
        metric(name, value, attack=attack, **where)
        for attack in ("clear_features", "agnostic")
        for name, value in (("mse", 0.3), ("affine_r2", 0.987))
    ]
    run = target(
        tmp_path, [*scores({"lmmse": 0.021}), metric("blind_mse", 0.08, attack="half", **where), *affine]
    )
    found = (
        "clear_features finds 99 % of what a blind guess leaves open in every training row, once a few are "
        "known (R² = .987 up to one affine map)."
    )
    text, reading = verdict([run]), "Training in the clear: clear_features read training traffic."
    assert text.headline == f"Trained in the clear, the passive party's pixels leak: {found}"
    assert text.assumption == reading
    assert [r.attack for r in final(run)] == ["lmmse", "agnostic"]
    assert to_json([run])["runs"][0]["explained_after_affine_map"] == [
        {"attack": "clear_features", "target": "passive", "r2": 0.987}
    ]
    alone = target(tmp_path / "alone", affine)
    assert str(verdict([alone])) == f"{text.headline} {reading}"


def test_labels_told_by_gradients_are_part_of_what_it_is_worth(tmp_path: Path) -> None:
    where = {"adversary": "passive", "target": "active", "scored_set": "train", "rows": 1437}
    labels = [
        metric("label_accuracy", 1.0, attack="gradient_sign", **where),
        metric("label_auc", 1.0, attack="gradient_sign", **where),
        metric("blind_label_accuracy", 0.101, **where),
    ]
    run = target(tmp_path, [*scores({"lmmse": 0.021}), *labels])
    worth = (
        "Trained in the clear, gradient_sign at passive names 100.0 % of 1,437 training labels rightly (the "
        "most frequent class: 10.1 %)."
    )
    reading = "Training in the clear: gradient_sign read training traffic."
    assert verdict([run]).assumption == f"{reading} {worth}"
    alone = target(tmp_path / "alone", labels)
    assert str(verdict([alone])) == f"No reconstruction of columns was scored beside a blind guess. {worth}"
    fewer = [m | {"value": 0.6} if m["metric"] == "label_accuracy" else m for m in labels]
    defended = target(tmp_path / "defended", [*scores({"lmmse": 0.021}), *fewer])
    assert worth in verdict([run, defended]).assumption  # what training gives away, not what a defence leaves
    (stated,) = to_json([run])["runs"][0]["labels"]
    assert (stated["attack"], stated["accuracy"], stated["blind"]) == ("gradient_sign", 1.0, 0.101)


def test_labels_of_each_client_have_a_result_of_their_own(tmp_path: Path) -> None:
    labels = []
    for client, right in (("client-1", 1.0), ("client-2", 0.75)):
        where = {"adversary": "server", "target": client, "scored_set": "round-0", "rows": 12}
        labels += [
            metric("matched_label_accuracy", right, attack="label_restoration", **where),
            metric("blind_matched_label_accuracy", 0.25, **where),
        ]
    run = target(tmp_path, labels)
    found = to_json([run])["runs"][0]["labels"]
    assert [(r["target"], r["accuracy"], r["blind"], r["auc"]) for r in found] == [
        ("client-1", 1.0, 0.25, None),
        ("client-2", 0.75, 0.25, None),
    ]
    for client, share in (("client-1", "100.0"), ("client-2", "75.0")):
        sentence = f"names {share} % of 12 round-0 labels of {client} rightly"
        assert sentence in str(verdict([run]))


def test_an_attack_on_membership_that_reads_training_is_named(tmp_path: Path) -> None:
    where = {"attack": "loss_threshold", "adversary": "server", "target": "passive", "rows": 100}
    ranked = [
        *(metric("membership_tpr", 0.2, detail=f"{rate:g}", **where) for rate in FALSE_POSITIVE_RATES),
        metric("membership_auc", 0.7, **where),
        metric("blind_membership_auc", 0.5, adversary="server", target="passive", rows=100),
    ]
    run = target(tmp_path, [*scores({"lmmse": 0.021}), *ranked])
    assert verdict([run]).assumption == "Training in the clear: loss_threshold read training traffic."


def test_labels_found_without_training_traffic_are_no_matter_of_secure_training(tmp_path: Path) -> None:
    """One such attack is pmc, which reads its own embeddings: its result stands beside every assumption."""
    where = {"adversary": "passive", "target": "active", "scored_set": "predict", "rows": 359}
    labels = [
        metric("label_accuracy", 0.8, attack="pmc", **where),
        metric("label_auc", 0.9, attack="pmc", **where),
        metric("blind_label_accuracy", 0.101, **where),
    ]
    found = (
        "Without training traffic, pmc at passive names 80.0 % of 359 prediction labels rightly (the most "
        "frequent class: 10.1 %)."
    )
    alone = target(tmp_path / "alone", labels)
    assert str(verdict([alone])) == f"No reconstruction of columns was scored beside a blind guess. {found}"
    run = target(tmp_path / "secure", [*scores({"lmmse": 0.021}), *labels])
    assert verdict([run]).assumption == f"{UNREAD} {found}"
    clear = target(tmp_path / "clear", [*scores({"bmi": 0.021}), *labels])
    assert verdict([clear]).assumption == f"Training in the clear: bmi read training traffic. {found}"
    read = [m | {"attack": "gradient_sign"} if m.get("attack") == "pmc" else m for m in labels]
    both = target(tmp_path / "both", [*scores({"bmi": 0.021}), *read])
    words = "Trained in the clear, gradient_sign at passive names 80.0 % of 359 prediction labels rightly "
    assert verdict([both]).assumption.startswith(
        f"Training in the clear: bmi, gradient_sign read training traffic. {words}"
    )


def test_a_run_on_shares_is_not_said_to_train_in_the_clear(tmp_path: Path) -> None:
    """Neither of columns nor of labels, and the assumption stands where only labels were attacked too."""
    where = {"target": "active", "adversary": "passive", "scored_set": "train", "rows": 455}
    labels = [
        metric("label_accuracy", 0.385, attack="gradient_sign", **where),
        metric("label_auc", 0.5, attack="gradient_sign", **where),
        metric("blind_label_accuracy", 0.615, **where),
    ]
    shares = {"facts": {"training": {"protection": "shares"}}}
    opened = "From what was opened in training, gradient_sign at passive names 38.5 % of 455 training labels"
    only_labels = str(verdict([target(tmp_path / "labels", labels, **shares)]))
    both = target(tmp_path / "both", [*scores({"lmmse": 0.021}), *labels], **shares)
    clear = target(tmp_path / "clear", [*scores({"lmmse": 0.021}), *labels])
    for text in (only_labels, str(verdict([both]))):
        assert PROTECTED in text
        assert opened in text
        assert "in the clear" not in text
    assert "Trained in the clear, gradient_sign" in (mixed := str(verdict([both, clear])))
    assert opened in mixed
    row = {"target": "passive", "scored_set": "train", "rows": 455}
    columns = [
        metric("mse", 0.0, attack="clear_columns", **row),
        metric("blind_mse", 0.08, attack="half", **row),
    ]
    leaks = verdict([target(tmp_path / "columns", columns, **shares)]).headline
    assert leaks.startswith(
        "From what was opened in training, the passive party's pixels leak: clear_columns finds"
    )


def test_protected_training_is_priced_beside_its_clear_twin_once_or_with_the_run_s_name(
    tmp_path: Path,
) -> None:
    def run(folder: str, shares: float, clear: float | None) -> RecordedRun:
        twin = [] if clear is None else [metric("accuracy_clear", clear, rows=114)]
        figures = [metric("accuracy", shares, rows=114), *twin, *scores({"lmmse": 0.021})]
        facts = {"training": {"protection": "shares"}, "run": folder}
        return target(tmp_path / folder, figures, facts=facts)

    both = (
        "rained on shares the model names 95.6 % of prediction rows rightly, trained in the clear with the "
        "same seed 96.5 %."
    )
    one, same, other = run("one", 0.956, 0.965), run("same", 0.956, 0.965), run("other", 0.9, 0.91)
    assert f"colludes with nobody. T{both}" in verdict([one]).assumption
    assert str(verdict([one, same])).count("trained in the clear with") == 1
    several = verdict([one, same, other]).assumption
    assert f" In one, t{both} In other, trained on shares the model names 90.0 %" in several
    assert "trained in the clear with" not in str(verdict([run("remote", 0.956, None)]))
    figures = to_json([one])["runs"][0]["utility"]
    assert (figures["accuracy"], figures["accuracy_clear"]) == (0.956, 0.965)


def test_a_number_on_shares_is_priced_by_r2_and_rmse(tmp_path: Path) -> None:
    worth = {"r2": 0.4321, "rmse": 57.891, "r2_clear": 0.4329, "rmse_clear": 57.852}
    figures = [metric(name, value, rows=114) for name, value in worth.items()]
    facts = {"training": {"protection": "shares"}}
    found = verdict([target(tmp_path, [*figures, *scores({"lmmse": 0.021})], facts=facts)]).assumption
    assert "Trained on shares the model has R² = 0.432 and RMSE = 57.89 (in the label's unit) on" in found
    assert "prediction rows, trained in the clear with the same seed 0.433 and 57.85." in found
