"""What a person reads in a terminal of 80 columns: whole words, each title once, names in order."""

from __future__ import annotations

from pathlib import Path

import typer
from runfolder import metric, scores, write_party, write_run

from vflens.cli.main import app
from vflens.cli.output import plain
from vflens.cli.screen.result_tables import result_tables
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.titles import labels
from vflens.experiments.results.verdict import result_table

SPARSE = {"name": "sparsification", "kept": 0.1}


def clients(run: Path, defended: int) -> Path:
    """A run of clients 1, 2 and 10, whose first ``defended`` have a defence."""
    names = ("client-1", "client-10", "client-2")
    parties = [{"name": name, "role": "client"} for name in names]
    for i, name in enumerate(names):
        write_party(
            run / name,
            "client",
            config={"party": name, "role": "client", "defenses": [SPARSE] if i < defended else []},
            facts={"party": name, "role": "client", "setting": "horizontal", "parties": parties},
            metrics=scores({"softmax_inversion": 0.03 * (i + 1)}, target=name),
        )
    return run


def test_no_word_is_broken_at_80_columns(tmp_path: Path) -> None:
    long = [{"name": "a_defence_with_a_rather_long_name", "digits": digit} for digit in range(4)]
    folders = [write_run(tmp_path / "plain", {"softmax_inversion_of_labels": 0.021})]
    folders += [write_run(tmp_path / f"r{i}", {"ls": 0.2}, defenses=[d]) for i, d in enumerate(long)]
    shown = plain(*result_tables(read_runs(folders), 80))
    assert max(map(len, shown.splitlines())) <= 80
    for word in ("softmax_inversion_of_labels", "a_defence_with_a_rather_long_name", ".021 ± .002 (26 %)"):
        assert word in shown


def test_labels_stand_in_a_table_too(tmp_path: Path) -> None:
    where = {"target": "active", "scored_set": "train", "rows": 99, "adversary": "passive"}
    right = [metric("label_accuracy", 0.75, attack="gradient_sign", **where)]
    right += [metric("label_auc", 0.8, attack="gradient_sign", **where)]
    blind = metric("blind_label_accuracy", 0.51, **where)
    write_party(tmp_path / "demo" / "active", "active", metrics=[*right, blind])
    shown = plain(*result_tables(read_runs([tmp_path / "demo"]), 80))
    assert "gradient_sign │ active │ training │   99 │ .750" in shown.replace("99   ", "  99 ")


def test_a_defence_of_all_clients_is_named_once(tmp_path: Path) -> None:
    runs = read_runs(
        [clients(tmp_path / "all", 3), clients(tmp_path / "some", 2), clients(tmp_path / "no", 0)]
    )
    assert sorted(labels(runs)) == [
        "no defence",
        "sparsification (kept 0.1)",
        "sparsification (kept 0.1) at client-1, client-10",
    ]


def test_clients_stand_in_the_order_of_their_names(tmp_path: Path) -> None:
    (run,) = read_runs([clients(tmp_path / "all", 3)])
    targets = [row[0] for row in result_table([run])[1]]
    assert list(dict.fromkeys(targets)) == ["client-1", "client-2", "client-10"]


def test_the_help_has_groups_in_the_order_of_use() -> None:
    group = typer.main.get_command(app)
    panels = [getattr(group.commands[name], "rich_help_panel", None) for name in group.list_commands(None)]  # type: ignore[attr-defined]
    assert list(dict.fromkeys(panels)) == [
        "Begin",
        "Before a run",
        "Run",
        "Look at runs",
        "Papers and plug-ins",
    ]
    assert panels == sorted(panels, key=list(dict.fromkeys(panels)).index)
    hidden = [name for name, command in group.commands.items() if command.hidden]  # type: ignore[attr-defined]
    assert len(panels) == len(group.commands) - len(hidden)  # type: ignore[attr-defined]
    assert hidden == ["audit-log", "import-flower"]
