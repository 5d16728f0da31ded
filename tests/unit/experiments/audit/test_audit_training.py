"""The audit says first how training is protected, and recommends nothing that its attacks undo."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audits import outcome

from vflens.defenses.dp_gaussian import DPGaussian
from vflens.defenses.label_only import LabelOnly
from vflens.defenses.withhold_parameters import WithholdParameters
from vflens.experiments.audit import defenses as module
from vflens.experiments.audit.advice import decision, protection, recommendation
from vflens.experiments.audit.bench import MOST_COLUMNS, Bench, Plan, Wanted
from vflens.experiments.audit.charts import table
from vflens.experiments.audit.defenses import Chosen, Defended
from vflens.experiments.audit.models import simulate
from vflens.experiments.audit.outcomes import AttackOutcome
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import AuditSubject, load_subject
from vflens.experiments.audit.words import sentences, write_audit
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.experiments.pages.cost import Cost
from vflens.experiments.results.clear_training import given_away
from vflens.experiments.scoreboard import grid
from vflens.experiments.scoreboard.board import Board
from vflens.experiments.scoreboard.cells import measured
from vflens.experiments.scoreboard.keys import COST, keyed
from vflens.experiments.scoreboard.verdicts import protection as board_verdict
from vflens.plugins.defense import Defense
from vflens.types import ColumnInfo, Phase

BANK = Path(__file__).parents[4] / "examples" / "bank_passive.csv"
TRIED: dict[str, type[Defense]] = {
    "withhold_parameters": WithholdParameters,
    "label_only": LabelOnly,
    "dp_gaussian": DPGaussian,
}


def _silent(stage: str, done: int, total: int) -> None: ...


def _bank() -> AuditSubject:
    return load_subject(str(BANK), classes=2, columns=["age", "income", "credit_score"], id_column="id")


@pytest.fixture(autouse=True)
def three_defences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "candidates", lambda: iter([(n, {}, d) for n, d in TRIED.items()]))


@pytest.fixture(scope="module")
def bank() -> AuditRecord:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "candidates", lambda: iter([(n, {}, d) for n, d in TRIED.items()]))
        return audit(_bank(), Plan(models=2), _silent)


# -- what was wrong: withholding parameters "hid" what training gives away ------------------------------


def test_a_defence_of_predictions_is_not_recommended_against_training_in_the_clear(bank: AuditRecord) -> None:
    text = recommendation(bank)
    assert text.startswith("While training is in the clear no installed defence reaches")
    assert "withhold_parameters" not in text
    assert "gets past it" not in text
    withheld: Any = next(d for d in bank.defenses if d.defense == "withhold_parameters")
    assert withheld.mse < 1e-12
    assert withheld.attack == "clear_columns"
    assert bank.fitting == ()
    assert bank.strongest.attack == "clear_columns"
    assert bank.strongest.mse < 1e-12


def test_how_training_is_protected_stands_first(bank: AuditRecord, tmp_path: Path) -> None:
    join, first, column, strongest, *_ = sentences(bank)
    assert join.startswith("Whoever reads training finds everyone's ")
    assert " exactly; a guess is " in join
    assert ". Do not join as planned: in 19 of 20 simulated models the worst column" in join
    assert first == (
        "Training is in the clear: whoever reads its messages finds 3 of 3 columns better than a guess."
    )
    assert "which knows the messages of training and 50 of your rows" in strongest
    assert column == "3 of 3 columns found. Read: all 200 rows."
    write_audit(bank, tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert f"<h1>{join}</h1>" in html.unescape(page)
    assert page.index(column) < page.index(first) < page.index(strongest) < page.index("What attacks reach")
    assert "training rows each" in {row[0]: row[1] for row in table(bank)}["clear_columns"]


def test_training_counts_columns_that_predictions_give_away_as_exactly(tmp_path: Path) -> None:
    """One column and two classes: predictions give it exactly too, and their attack comes first."""
    x = np.random.default_rng(7).normal(size=200)
    lines = ["id,x,never", *(f"{i},{value:.4f},3" for i, value in enumerate(x))]
    (tmp_path / "own.csv").write_text("\n".join(lines), encoding="utf-8")
    subject = load_subject(str(tmp_path / "own.csv"), classes=2, columns=None, id_column="id")
    record = audit(subject, Plan(models=2), _silent)
    assert record.by_column[0].scored_set == Phase.PREDICT
    assert protection(record).endswith("whoever reads its messages finds 1 of 2 columns better than a guess.")


def test_secure_training_is_a_condition_of_every_figure() -> None:
    record = audit(_bank(), Plan(models=2, training="secure"), _silent)
    assert "Do not join as planned: in 19 of 20 simulated models" in sentences(record)[0]
    assert sentences(record)[1].startswith("These figures hold only if nobody sees the messages of training.")
    assert {a.phase for a in record.attacks} == {"predict"}
    text = recommendation(record)
    assert text.startswith("These figures hold only if nobody sees the messages of training. No installed")
    assert "Not tested" not in text
    assert not any(d.untested for d in record.defenses)
    assert record.fitting == ()


def test_noise_on_partial_logits_acts_in_training_too() -> None:
    plain, labels, noisy = (
        simulate(_bank(), "trained", np.random.default_rng(0), defenses)
        for defenses in ([], [("label_only", LabelOnly())], [("dp_gaussian", DPGaussian())])
    )
    assert plain.training == labels.training != noisy.training
    assert len(plain.sent) == 30 * 3  # 160 rows in batches of 64
    np.testing.assert_array_equal(np.unique(np.concatenate([r.rows for r in plain.sent])), plain.trained)
    W, b = (plain.parameters or {})["weight"], (plain.parameters or {})["bias"]
    last = plain.sent[-1]
    near = _bank().x[last.rows] @ W.T + b  # one step of Adam, at .05, before the end
    assert np.abs(last.tensor("embedding") - near).max() < 0.2


def test_too_many_columns_are_said_to_be_unmeasured() -> None:
    d = MOST_COLUMNS + 1
    x = np.random.default_rng(0).random((40, d))
    subject = AuditSubject("wide", tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(d)), x, 2)
    assert Bench.set_up(subject, Plan(known=4)).training_attacks == {}
    narrow = AuditSubject("narrow", subject.columns[:-1], x[:, :-1], 2)
    assert set(Bench.set_up(narrow, Plan(known=4)).training_attacks) == {"clear_columns", "clear_features"}
    without = Bench.set_up(narrow, Plan(known=0)).training_attacks
    assert set(without) == {"clear_features"}


def test_of_many_columns_one_model_is_read() -> None:
    x = np.random.default_rng(0).random((60, 17))
    subject = AuditSubject("mine", tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(17)), x, 2)
    record = audit(subject, Plan(models=3, known=20), _silent)
    models = {a.attack: a.models for a in record.attacks if a.kind == "trained"}
    assert (models["clear_columns"], models["half_star"]) == (1, 3)
    assert all("clear_columns" in d.tried for d in record.defenses)


# -- every sentence, from made-up records --------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (1.0, "every training row, exactly, once a few are known"),
        (0.9995, "every training row, exactly, once a few are known"),
        (0.9994, "99.9 % of what a blind guess leaves open in every training row, once a few are known"),
        (0.66, "66 % of what a blind guess leaves open in every training row, once a few are known"),
        (0.05, "5 % of what a blind guess leaves open in every training row, once a few are known"),
        (0.02, "the training rows hardly better than a blind guess"),
        (-0.5, "the training rows hardly better than a blind guess"),
    ],
)
def test_what_is_given_away_in_words(share: float, words: str) -> None:
    assert given_away(share) == words


ERROR = Wanted(None, 0.08, 0.01)
WHO = "Whoever knows the model and gets its predictions"
SEEN = f"{WHO} finds income to within ± 22; a guess to within ± 32."
LEAK = Wanted(0.2, None, 0.01)


def _made_up(
    training: Any = "clear", *, read: float | None = None, leak: float | None = None, **changes: Any
) -> AuditRecord:
    """A blind error of .1; ``ls`` leaves .05 of it, or what it leaks, and of training ``read``."""
    attacks = [_attack("ls", Phase.PREDICT, 0.05, leak)]
    attacks += [] if read is None else [_attack("clear_columns", Phase.TRAIN, read)]
    facts: dict[str, Any] = {
        "subject": "a.csv",
        "columns": ("income",),
        "tolerance": {},
        "rows": 100,
        "table_rows": 100,
        "wanted": ERROR,
        "by_column": (_income(min(attacks, key=lambda a: a.mse)),),
        "by_training": tuple(_income(a) for a in attacks if a.phase is Phase.TRAIN),
        **changes,
    }
    return AuditRecord(training=training, attacks=tuple(attacks), **facts)


def _attack(name: str, phase: Phase, mse: float, leak: float | None = None) -> AttackOutcome:
    leak = 1 - mse / 0.1 if leak is None else leak
    return outcome(name, mse, phase=phase, column="income", models=10, leak=leak)


def _income(attack: AttackOutcome, **changes: Any) -> Finding:
    """What ``attack`` finds of income, whose unit is 100."""
    error = 100 * attack.mse**0.5
    ends = {"value": error, "low": 0.9 * error, "high": 1.1 * error, "blind": 10 * 10**0.5}
    place = {"attack": attack.attack, "scored_set": attack.phase, "target": "a.csv", "rows": 100}
    return Finding(quantity=Quantity.ERROR, subject="income", **{**place, **ends, **changes})


def _defended(attack: str, *tried: str, price: str = "at no measured cost (± .001)") -> Defended:
    figures: dict[str, Any] = {"mse": 0.09, "leak": 0.1, "column": "income", "gain": ".200 ± .010"}
    return Defended(
        "mist", {}, "you", attack=attack, tried=tried, price=price, cost=Cost("AUC", ()), **figures
    )


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (_made_up(), "No advice yet: training is in the clear, and what it gives away was not measured."),
        (
            _made_up(read=0.0, wanted=LEAK),
            "Whoever reads training finds everyone's income exactly; a guess is 32 off. Do not join as "
            "planned: in 19 of 20 simulated models the worst column, income, gives away up to 100 % of "
            "what a guess leaves open (you allow 20 %), and no defence here stops an attack made for it "
            "at a cost that you allow.",
        ),
        (
            _made_up("secure", wanted=LEAK, leak=0.204),
            f"{SEEN} Do not join as planned: in 19 of 20 simulated models the worst column, income, "
            "gives away up to just over 20 % of what a guess leaves open (you allow 20 %), and no defence "
            "here stops an attack made for it at a cost that you allow.",
        ),
        (
            _made_up("secure", fitting=(_defended(""),)),
            f"{SEEN} Join with mist, if nobody sees the messages of training: the strongest attack that ran "
            "errs by .090 (you ask for .080) then; at no measured cost (± .001).",
        ),
        (
            _made_up(read=0.09, wanted=replace(LEAK, most_leak=0.5)),
            f"{SEEN} Join as planned: in 19 of 20 simulated models the worst column, income, gives away "
            "at most 50 % of what a guess leaves open (you allow 50 %).",
        ),
        (
            _made_up("secure", wanted=LEAK, fitting=(_defended("ls", "ls"),)),
            f"{SEEN} Join with mist, if nobody sees the messages of training: in 19 of 20 simulated models "
            "the worst column, income, gives away at most 10 % of what a guess leaves open (you allow 20 %) "
            "then; at no measured cost (± .001).",
        ),
    ],
)
def test_whether_to_join_in_every_case(record: AuditRecord, words: str) -> None:
    assert decision(record) == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": 20}, "No advice yet: 20 rows attacked decide nothing, at least 50 do."),
        (
            {"varies": False, "deciding": 12_000},
            "No advice yet: income hardly varies in the 100 rows read of 200,000, rows = 12000 in [audit] "
            "of a description would decide.",
        ),
    ],
)
def test_rows_that_decide_nothing_are_no_reason_to_join(changes: dict[str, Any], words: str) -> None:
    own = _income(_attack("ls", Phase.PREDICT, 0.1), **changes)
    facts: dict[str, Any] = {"wanted": LEAK, "by_column": (own,), "table_rows": 200_000}
    record = _made_up("secure", leak=0.0, **facts)
    assert decision(record) == words
    assert "before more rows were read" in recommendation(record)
    leaking = _made_up("secure", leak=0.5, **facts)
    assert "Do not join as planned" in decision(leaking)  # more rows take nothing back


def test_protection_in_every_case() -> None:
    assert "finds 1 of 1 column better than a guess" in protection(_made_up(read=0.0))
    open_ = protection(_made_up(read=0.099))
    assert open_.endswith("finds 0 of 1 column better than a guess; income not decided.")
    missed = _income(_attack("clear_columns", Phase.TRAIN, 0.2))
    assert protection(_made_up(read=0.2, by_training=(missed,))).endswith(
        "0 of 1 column better than a guess."
    )
    assert "was not measured: expect every training row" in protection(_made_up())
    families = "softmax or linear regression only."
    assert f"that way with training.protection = 'shares', {families}" in protection(_made_up("secure"))


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (_made_up(), "Nothing can be recommended while it was not measured"),
        (_made_up(read=0.0), "While training is in the clear no installed defence reaches"),
        (_made_up(read=0.09), "No installed defence reaches an error of at least .080"),
        (_made_up("secure"), "No installed defence reaches an error of at least .080"),
        (_made_up(read=0.0, fitting=(_defended("ls", "ls"),)), "is mist, switched on by you: error .090"),
        (_made_up(read=0.0, fitting=(_defended("", "ls", "clear_columns"),)), "ran ls, clear_columns, none"),
        (_made_up("secure", fitting=(_defended(""),)), "These figures hold only if nobody sees"),
        (
            _made_up(read=0.0, fitting=(_defended("ls"),)),
            "the federation still gains .200 ± .010 over the other",
        ),
        (
            _made_up(read=0.0, defenses=(_defended("ls", price="not decided (.010 ± .030)"),)),
            " Enough is hidden by mist: not decided (.010 ± .030).",
        ),
    ],
)
def test_recommendations_in_every_case(record: AuditRecord, words: str) -> None:
    assert words in recommendation(record)


def test_no_defence_is_needed_of_all_attacks_or_under_a_condition() -> None:
    wanted = replace(ERROR, least_error=0.01)
    assert recommendation(_made_up(read=0.02, wanted=wanted)).startswith("No defence is needed")
    assert "While training is in the clear" in recommendation(_made_up(read=0.0, wanted=wanted))
    assert recommendation(_made_up("secure", wanted=wanted)).startswith("These figures hold only if nobody")


# -- the audit and the scoreboard, on the same data ----------------------------------------------------


def _on_the_board(monkeypatch: pytest.MonkeyPatch, scratch: Path) -> dict[str, tuple[str, str]]:
    """Defence → what the scoreboard says that it hides of columns, and what it costs; five seeds of wine."""
    monkeypatch.setitem(grid.DATA, "wine", {"kind": "fraction", "fraction": 0.5})
    rows = []
    for defense in (grid.UNDEFENDED, *TRIED):
        for seed in range(5):
            place = grid.Place("wine", "vertical-lr", defense, seed, sample=120)
            attacks = keyed(place, ["clear_columns", "lmmse", COST])
            rows += measured(place, attacks, scratch=str(scratch))
    board = Board("wine", "vertical-lr", rows)
    undefended = board.of_family(grid.UNDEFENDED, "features")
    return {d: (board_verdict(board.of_family(d, "features"), undefended), str(board.cost(d))) for d in TRIED}


def _contradictions(fitting: Sequence[Chosen], board: dict[str, tuple[str, str]]) -> list[str]:
    """The defences that the audit recommends and of which the scoreboard says that they hide nothing, or
    leave no use.
    """
    recommended = [d.defense for d in fitting]
    wrong = ("hides nothing", "no use left")
    return [d for d in recommended if any(text.startswith(wrong) for text in board[d])]


@pytest.mark.facts
def test_the_audit_never_contradicts_the_scoreboard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    board = _on_the_board(monkeypatch, tmp_path)
    assert board["withhold_parameters"][0].startswith("hides nothing (clear_columns")
    assert not any(cost.startswith("not measured") for _, cost in board.values())
    subject = load_subject("wine", classes=None, columns=None, id_column="id")
    assert _contradictions(audit(subject, Plan(models=2), _silent).fitting, board) == []
    blinded = audit(subject, Plan(models=2, training="secure"), _silent)
    assert _contradictions(blinded.fitting, board) == []
    assert "withhold_parameters" in _contradictions(blinded.defenses, board)  # the comparison can fail
