"""A remedy of an audit names where its reader can state it: a description, a flag, a form, an argument."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import vflens as vl
import vflens.cli.main
from vflens.api.tables import _Asked
from vflens.defenses.withhold_parameters import WithholdParameters
from vflens.errors import ConfigError
from vflens.experiments.audit import defenses as module
from vflens.experiments.audit.advice import check_advice
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.given import FlagPlan
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.watch.own_audit_form import FormPlan
from vflens.types import ColumnInfo


@pytest.mark.parametrize(
    ("plan", "key", "words"),
    [
        (Plan(), "training", "training = 'secure' in [audit] of a description"),
        (FlagPlan(), "training", "--training secure"),
        (FlagPlan(), "slow_rows", "--slow-rows secure"),
        (_Asked(classes=2), "training", "training = 'secure'"),
        (FormPlan(), "training", "'Nobody sees the messages of training' on the form"),
        (FormPlan(), "rows", "rows = 'secure' in [audit] of a description, in a terminal,"),
    ],
)
def test_each_door_has_its_place(plan: Plan, key: str, words: str) -> None:
    assert plan.stated(key, "secure") == words


def test_the_form_has_the_fields_that_it_names() -> None:
    page = Path(vl.__file__).parent / "experiments" / "pages" / "templates" / "own_audit.html.j2"
    for key in ("training", "known"):
        assert FormPlan().stated(key, 5).split("'")[1] in page.read_text()


def test_a_run_is_not_advised_to_name_its_columns() -> None:
    infos = tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(129))
    run = AuditSubject("run 'r', party 'p'", infos, np.zeros((100, 129)), 2)
    with pytest.raises(ConfigError, match=r"no advice follows: state --training secure if nobody sees"):
        check_advice(run, FlagPlan())
    with pytest.raises(ConfigError, match=r"follows: name fewer with --columns, or state --training secure"):
        check_advice(replace(run, bounds=np.zeros((129, 2))), FlagPlan())


Cli = Callable[..., tuple[str, str]]


@pytest.fixture
def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """What ``vflens audit`` prints and notes, with one defence to try."""
    monkeypatch.setattr(module, "candidates", lambda: iter([("withhold_parameters", {}, WithholdParameters)]))

    def run(*arguments: str) -> tuple[str, str]:
        out = ["--models", "1", "--out", str(tmp_path / "audit.html")]
        monkeypatch.setattr(sys, "argv", ["vflens", "audit", *arguments, *out])
        with pytest.raises(SystemExit):
            vflens.cli.main.command_line()
        return capsys.readouterr()

    return run


def test_the_remedy_of_a_data_set_works_and_stays(audited: Cli) -> None:
    """A data set has no description: its flags are no earlier form of one."""
    clear, _ = audited("wine")
    assert "What helps once training is protected: state --training secure." in clear
    secure, noted = audited("wine", "--training", "secure")
    assert "hold only if nobody sees the messages of training" in secure
    assert "version 0.4" not in noted
    assert "state --known 89" in audited("wine", "--known", "177")[1]


def test_a_threshold_names_the_rows_of_the_plan(audited: Cli) -> None:
    """Too few attacked rows: those known to the adversary are read besides."""
    given = ("--rows", "60", "--known", "40", "--training", "secure", "--fail-if", "proline > 15 %")
    printed, noted = audited("wine", *given)
    assert ", 80 attacked rows would decide" in printed
    assert "state --rows 120, or allow more" in noted


@pytest.mark.usefixtures("few_defences")
def test_python_names_the_argument() -> None:
    """Every sentence that it shows, not the recommendation alone."""
    rng = np.random.default_rng(0)
    frame = {"a": rng.random(300), "rare": (np.arange(300) % 60 == 0) * 1.0}
    audit = vl.audit(frame, classes=2, models=1, rows=100, training="secure", most_leak=1.0)
    for words in (audit.decision, audit.verdict, audit.recommendation, audit._repr_html_()):
        assert "[audit]" not in words
