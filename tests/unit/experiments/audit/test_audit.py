"""The audit: its bounds hold for the models it simulates, its words follow its figures."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import federation
from markupsafe import escape

from vflens import attacks
from vflens.cli.output import grids
from vflens.defenses.label_only import LabelOnly
from vflens.defenses.withhold_parameters import WithholdParameters
from vflens.errors import ConfigError, DataError, KnowledgeError
from vflens.experiments.audit import defenses as module
from vflens.experiments.audit.advice import recommendation
from vflens.experiments.audit.bench import Bench, Plan, Wanted
from vflens.experiments.audit.charts import columns_table, table
from vflens.experiments.audit.defenses import candidates
from vflens.experiments.audit.models import simulate
from vflens.experiments.audit.record import AuditRecord, EarlyBounds
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import AuditSubject, load_subject
from vflens.experiments.audit.words import in_detail, in_short, sentences, write_audit
from vflens.experiments.outcome.words import number
from vflens.plugins.defense import Context, Defense
from vflens.registry import ATTACKS, Registry
from vflens.types import Array, ColumnInfo, Estimate, RowStatus

QUICK = Plan(models=2, known=15, rows=70, seed=1, training="secure")


def _silent(stage: str, done: int, total: int) -> None: ...


def _subject(d: int = 4, classes: int = 3, n: int = 150, **given: Any) -> AuditSubject:
    rng = np.random.default_rng(7)
    x = rng.random((n, d)) ** 2 @ rng.dirichlet(np.ones(d), size=d).T
    return AuditSubject(
        "mine.csv", tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(d)), x, classes, **given
    )


@pytest.fixture(scope="module")
def record() -> AuditRecord:
    """Three of the defences: all take many seconds."""
    tried = [c for c in candidates() if c[0] in ("gaussian_scores", "label_only", "withhold_parameters")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "candidates", lambda: iter(tried))
        return audit(_subject(), QUICK, _silent)


@pytest.fixture(autouse=True)
def one_defence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless a test says otherwise."""
    monkeypatch.setattr(module, "candidates", lambda: iter([("label_only", {}, LabelOnly)]))


# -- simulated models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "trained"])
def test_the_adversary_holds_the_equations_of_the_released_scores(kind: str) -> None:
    """The route through transcript and view gives what plain arrays give."""
    subject = _subject()
    world = simulate(subject, kind, np.random.default_rng(0))
    rows = np.arange(5, 60, dtype=np.int32)
    estimate = world.attack(ATTACKS.get("half_star")(), rows, np.zeros(0, np.int32), np.random.default_rng(0))
    assert world.parameters is not None
    A = np.diff(world.parameters["weight"], axis=0)
    plain = attacks.estimate("half_star", A, subject.x[rows] @ A.T)
    np.testing.assert_allclose(estimate.values, plain.values, atol=1e-9)
    assert (estimate.status == RowStatus.OK).all()


def test_a_trained_model_has_learned_and_a_drawn_one_fits_its_labels() -> None:
    for kind in ("trained", "random"):
        world = simulate(_subject(n=400), kind, np.random.default_rng(2))
        most_common = np.bincount(world.labels).max() / len(world.labels)
        assert world.figures(world.released)["accuracy"] > most_common + 0.05


def test_known_labels_and_columns_are_used_for_training() -> None:
    rng = np.random.default_rng(3)
    labels, other = rng.integers(0, 3, 150), rng.random((150, 2))
    world = simulate(_subject(labels=labels, other=other), "trained", rng)
    np.testing.assert_array_equal(world.labels, labels)
    np.testing.assert_array_equal(world.other, other)
    assert world.own_weight.shape == (3, 2)


def test_defences_act_where_they_would() -> None:
    subject, none = _subject(), np.zeros(0, np.int32)
    rng = np.random.default_rng
    labels = simulate(subject, "trained", rng(0), [("label_only", LabelOnly())])
    plain = simulate(subject, "trained", rng(0))
    np.testing.assert_array_equal(np.isfinite(labels.released).sum(axis=1), 1)
    assert module._mean_kl(plain.released, labels.released) == np.inf
    assert module._mean_kl(plain.released, plain.released) == 0.0
    assert labels.figures(labels.released)["accuracy"] == plain.figures(plain.released)["accuracy"]
    withheld = simulate(subject, "trained", rng(0), [("withhold_parameters", WithholdParameters())])
    with pytest.raises(KnowledgeError, match="withheld"):
        withheld.attack(ATTACKS.get("ls")(), np.arange(9, dtype=np.int32), none, rng(0))


# -- figures -------------------------------------------------------------------------------------------


def test_bounds_hold_for_every_simulated_model(record: AuditRecord) -> None:
    measured: list[Any] = [a for a in record.attacks if a.attack in record.bounds]
    assert len(measured) == 4
    for a in measured:
        bounds = record.bounds[a.attack]
        assert max(bounds.lower, bounds.any_center) <= a.unclipped <= bounds.upper


def test_the_strongest_attack_stands_beside_its_blind_guess(record: AuditRecord) -> None:
    thorough = [a for a in record.attacks if a.rows == record.attacked_rows]
    assert record.strongest.mse == min(a.mse for a in thorough)
    assert {a.attack for a in record.attacks if a not in thorough} <= {"rcc1"}
    assert record.blind["column_means"] == min(record.blind.values())
    for a in record.attacks:
        assert np.mean(a.columns) == pytest.approx(a.mse)
        assert a.low <= a.mse <= a.high
    assert (record.attacked_rows or 0) + record.known_rows == record.rows == QUICK.rows


def test_one_seed_one_result(record: AuditRecord) -> None:
    again = audit(_subject(), QUICK, _silent)
    label_only = tuple(d for d in record.defenses if d.defense == "label_only")
    assert again == replace(record, defenses=label_only, fitting=again.fitting)
    assert json.dumps(again.json) == json.dumps(replace(again).json)
    other = audit(_subject(), replace(QUICK, seed=2), _silent)
    assert other.attacks != record.attacks


def test_progress_reaches_its_end() -> None:
    facts: list[tuple[str, int, int]] = []
    audit(_subject(), QUICK, lambda *event: facts.append(event))
    assert {stage for stage, done, total in facts if done == total} == {
        "models attacked",
        "defences tried on models",
    }
    runs = [stage.partition(": ")[2] for stage, done, _ in facts if stage.startswith("models attacked: ")]
    assert runs.count("a random model") == runs.count("a trained model") == 2
    assert {"half_star", "lmmse", "ls"} <= set(runs)
    defences = {stage.partition(": ")[2] for stage, _, _ in facts if stage.startswith("defences tried")}
    assert {"training without one", "label_only", "label_only, lmmse"} <= defences
    assert [done for stage, done, _ in facts if stage == "models attacked: a trained model"] == [2, 3]


def test_with_enough_classes_everything_is_recovered() -> None:
    record = audit(_subject(d=2, classes=4), QUICK, _silent)
    assert record.strongest.mse < 1e-12
    assert record.bounds["ls"] == EarlyBounds(0.0, 0.0, 0.0)
    text = " ".join(sentences(record))
    assert "enough to solve for all of them" in text
    assert "finds everyone's" in text
    assert " exactly; a guess is " in text or " exactly; a guess is wrong" in text


def test_without_known_rows_no_attack_has_moments() -> None:
    record = audit(_subject(), Plan(models=2, known=0, rows=60, training="secure"), _silent)
    assert {a.attack for a in record.attacks}.isdisjoint({"lmmse", "mean_star"})
    assert "knows" not in sentences(record)[3]
    constant = replace(record, blind=dict.fromkeys(record.blind, 0.0))
    assert ", beside that of the best blind guess (" in sentences(constant)[3]


def test_one_column_is_attacked_even_where_parameters_are_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "candidates", lambda: iter([("withhold_parameters", {}, WithholdParameters)]))
    x = np.random.default_rng(0).beta(0.5, 1.5, (300, 1))
    record = audit(AuditSubject("one", (ColumnInfo("c", 0.0, 1.0),), x, 3), QUICK, _silent)
    defended: Any = record.defenses[0]
    assert {"black_box", "known_scores"} <= set(defended.tried)
    assert defended.attack == "known_scores"
    assert defended.mse < 1e-12


def test_finite_columns_are_attacked_as_such() -> None:
    rng = np.random.default_rng(5)
    columns = tuple(ColumnInfo(f"b{j}", 0.0, 1.0, alphabet=(0.0, 1.0)) for j in range(8))
    subject = AuditSubject("bits", columns, rng.integers(0, 2, (80, 8)).astype(float), 2)
    record = audit(subject, Plan(models=2, known=10, rows=80, training="secure"), _silent)
    assert record.strongest.attack == "finite_alphabet"
    assert record.strongest.mse == 0.0
    assert "knows the values your columns can take" in sentences(record)[3]
    assert sentences(record)[0].startswith("Whoever knows the model and gets its predictions finds b")
    assert sentences(record)[2] == "8 of 8 columns found. Read: all 80 rows."
    many = tuple(ColumnInfo(f"b{j}", 0.0, 1.0, alphabet=tuple(np.linspace(0, 1, 101))) for j in range(8))
    record = audit(
        AuditSubject("bits", many, subject.x, 2), Plan(models=1, known=0, rows=20, training="secure"), _silent
    )
    assert "finite_alphabet" not in {a.attack for a in record.attacks}  # too many combinations to search


def test_after_training_the_closed_form_is_what_is_measured(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.run()
    subject = load_subject(str(local.passive["passive"].folder), classes=None, columns=None, id_column="id")
    weight = local.passive["passive"].run.model.parameters()["weight"]
    np.testing.assert_array_equal(subject.weight, weight)
    record = audit(subject, Plan(known=0, training="secure"), _silent)
    assert {a.kind for a in record.attacks} == {"given"}
    attacks: list[Any] = list(record.attacks)
    for a in (a for a in attacks if a.attack in ("ls", "half_star")):
        closed = record.after_training[a.attack]
        assert closed.mse == pytest.approx(np.mean(closed.columns), rel=1e-12)
        assert closed.mse == pytest.approx(a.unclipped, rel=1e-7)
        assert a.closed == pytest.approx(a.unclipped, rel=1e-7)
        assert a.mse <= a.unclipped
    (ls,) = (a for a in attacks if a.attack == "ls")
    assert ls.mse < ls.unclipped  # some of its answers lie outside the box
    for a in record.attacks:
        assert a.low < a.mse < a.high  # of one model: over rows
    assert "Against your trained model the answers of least squares err by" in sentences(record)[5]
    header, *rows = columns_table(record)
    assert header[-2:] == ("ls, closed form", "half_star, closed form")
    assert sorted(row[0] for row in rows) == sorted(record.columns)
    by_column = dict(zip(record.columns, record.after_training["ls"].columns, strict=True))
    assert [row[-2] for row in rows] == [number(by_column[row[0]]) for row in rows]


def test_theory_that_disagrees_is_loud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: AuditRecord
) -> None:
    assert record.theory_disagreements == []
    for a in record.attacks:
        assert (a.closed is not None) == (a.attack in ("ls", "half_star"))
    honest = ATTACKS.get("ls").solve  # type: ignore[attr-defined]

    def moved(self: Any, A: Array, b: Array, **given: Any) -> Any:
        e = honest(self, A, b, **given)
        return Estimate(e.target, e.rows, e.values * 1.01, e.status, extras=e.extras)

    monkeypatch.setattr(ATTACKS.get("ls"), "solve", moved)
    wrong = audit(_subject(), QUICK, _silent)
    assert [s.split(" measured")[0] for s in wrong.theory_disagreements] == [
        "ls against random models",
        "ls against trained models",
    ]
    write_audit(wrong, tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert page.count('class="alarm"') == 2
    assert "\n".join(in_short(wrong)).count("DISAGREE: ls against") == 2


def _letters(d: int) -> AuditSubject:
    """Columns of four, three, two, … values; the last has no alphabet."""
    rng = np.random.default_rng(3)
    sizes = range(d + 2, 2, -1)
    columns = [ColumnInfo(f"c{m}", 0.0, m - 1.0, alphabet=tuple(map(float, range(m)))) for m in sizes]
    x = np.column_stack([rng.integers(0, m, 200) / (m - 1) for m in sizes])
    return AuditSubject("mine.toml", (*columns[:-1], ColumnInfo("free", 0.0, 1.0)), x, 4)


def test_columns_with_an_alphabet_have_their_entropies(tmp_path: Path) -> None:
    """Four classes give three equations of six columns: only who knows the alphabets learns every value."""
    subject, plan = _letters(6), Plan(models=2, known=20, seed=1, training="secure")
    record = audit(subject, plan, _silent)
    x = subject.x[Bench.set_up(subject, plan).rows]
    whole: list[Any] = list(record.column_entropy[:-1])
    assert record.column_entropy[-1] is None
    for letters, bits in zip(x.T, whole, strict=False):
        counts = np.array(list(Counter(letters.tolist()).values()))
        plain = float(np.log2(len(x)) - (counts * np.log2(counts)).sum() / len(x))
        assert bits == pytest.approx(plain + (len(counts) - 1) / (2 * len(x) * np.log(2)), rel=1e-12)
    for a in (a for a in record.attacks if a.rows == len(x)):
        left: list[Any] = list(a.conditional_entropies[:-1])
        assert a.conditional_entropies[-1] is None
        if a.attack == "finite_alphabet":
            assert left == [0.0] * 5
        else:
            assert all(1 < bits <= most for bits, most in zip(left, whole, strict=True))
    assert record.strongest.attack == "finite_alphabet"
    header, *rows = columns_table(record)
    assert header[-2:] == ("H(X | X̂), bits", "H(X), bits")
    assert {row[0]: row[-2:] for row in rows} == {
        **{name: (".000", number(b)) for name, b in zip(record.columns, whole, strict=False)},
        "free": ("–", "–"),
    }
    assert {row[1] for row in rows if row[0] != "free"} == {"right in 100 % of rows"}
    write_audit(record, tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert '<th scope="col">H(X | X̂), bits</th><th scope="col">H(X), bits</th>' in page
    shown = grids(columns_table(record))
    assert "H(X)," in shown


# -- defences ------------------------------------------------------------------------------------------


def test_each_defence_is_measured_by_the_attack_that_it_leaves(record: AuditRecord) -> None:
    measured: dict[str, Any] = {d.defense: d for d in record.defenses if d.mse is not None}
    assert {"label_only", "withhold_parameters", "gaussian_scores"} <= set(measured)
    blind = min(record.blind.values())
    assert measured["withhold_parameters"].attack == "known_scores"
    assert measured["withhold_parameters"].mse < 0.5 * blind
    assert measured["withhold_parameters"].mean_kl == 0.0
    assert measured["label_only"].accuracy_loss == 0.0
    noise: list[Any] = [d for d in record.defenses if d.defense == "gaussian_scores"]
    assert noise[0].mse <= noise[-1].mse <= blind
    assert noise[0].argmax_kept > noise[-1].argmax_kept


def test_a_defence_that_cannot_be_simulated_does_not_end_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    class Demanding(Defense):
        def on_scores(self, log_c: Array, ctx: Context) -> Array:
            raise ConfigError("it needs a moon")

    monkeypatch.setattr(module, "candidates", lambda: iter([("demanding", {}, Demanding)]))
    record = audit(_subject(), QUICK, _silent)
    assert record.defenses[0].reason == "ConfigError: it needs a moon"
    assert record.fitting == ()
    assert "No installed defence reaches a leak of at most 20 % of a column" in recommendation(record)


def test_a_defence_that_cannot_be_loaded_is_left_out_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get, reason = Registry.get, "plug-in 'vflens.defenses.passport' needs torch: install the extra"

    def without_torch(registry: Registry, name: str) -> type:
        if name == "passport":
            raise ConfigError(reason)
        return get(registry, name)

    monkeypatch.setattr(Registry, "get", without_torch)
    monkeypatch.setattr("vflens.experiments.audit.defenses.find_spec", lambda name: None)
    assert {"label_only", "gaussian_scores"} <= {name for name, _, _ in candidates()}
    record = audit(_subject(), QUICK, _silent)
    assert record.left_out == {"passport": reason}
    write_audit(record, tmp_path / "audit.html")
    sentence = f"Defence passport is left out: {reason}."
    assert escape(sentence) in (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert sentence in in_detail(record)
    assert sentence not in in_short(record)


def test_no_defence_is_recommended_where_none_is_needed(record: AuditRecord) -> None:
    easy = replace(record, wanted=Wanted(None, 1e-9, 0.01))
    assert (
        "No defence is needed against the attacks above, for an error of at least 1.0e-09"
        in recommendation(easy)
    )


# -- the page ------------------------------------------------------------------------------------------


def test_the_page_loads_nothing_and_escapes_names(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    subject = _subject()
    columns = (ColumnInfo(evil, 0.0, 1.0), *subject.columns[1:])
    record = audit(AuditSubject(evil, columns, subject.x, 3), QUICK, _silent)
    write_audit(record, tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert evil not in page
    own = page[: page.index('<script type="text/plain"')]  # what follows is plotly
    assert not re.search(r'(src|href)="(?!#)', own)
    assert "script-src 'sha256-" in own
    for panel in ("verdict", "attacks", "columns", "defenses", "limits"):
        assert f'<section id="{panel}"' in page
    figures = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert len([json.loads(f) for f in figures]) == 3
    assert "nothing stronger" in page


def test_the_table_names_the_strongest_first(record: AuditRecord) -> None:
    header, first, *_ = table(record)
    assert header[0] == "attack"
    assert first[0] == record.strongest.attack
    assert "2 trained models" in {row[1] for row in table(record)}
    alone = tuple(replace(a, models=1) for a in record.attacks)
    of_one = {row[1] for row in table(replace(record, attacks=alone))}
    assert {"1 trained model", "1 random model"} < of_one
    assert not any(cell.endswith(("models", "each")) for cell in of_one)


# -- refusals ------------------------------------------------------------------------------------------


def test_more_known_rows_than_there_are_is_refused() -> None:
    with pytest.raises(DataError, match=r"mine\.csv has 150 rows here: .* 2 more than known = 149"):
        audit(_subject(), Plan(known=149), _silent)
