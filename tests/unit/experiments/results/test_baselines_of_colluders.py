"""What parties guess from all their columns together is the baseline of their own attacks."""

from __future__ import annotations

from pathlib import Path

from runfolder import write_run

from vflens.experiments.results.record import read_runs


def test_a_guess_of_colluders_stands_beside_their_attacks_alone(tmp_path: Path) -> None:
    errors = {"ls": 0.02, "ls:with-b": 0.01, "ls:with-c": 0.01, "imputation": 0.06, "imputation:with-b": 0.03}
    write_run(tmp_path, errors)
    (run,) = read_runs([tmp_path])
    assert {r.attack: r.blind for r in run.results if r.attack.startswith("ls")} == {
        "ls": 0.06,
        "ls:with-b": 0.03,
        "ls:with-c": 0.06,
    }
