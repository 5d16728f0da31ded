"""Sweeps of horizontal experiments: settings of the rounds, defences at all clients, rows of each client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from laboratory import SYNTHETIC

from vflens.errors import ConfigError
from vflens.experiments.results.labels_membership import membership_results
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.results import final
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.run import run
from vflens.experiments.sweeps.pool import Pool, Share
from vflens.experiments.sweeps.sweep import run_part, run_sweep
from vflens.experiments.sweeps.sweep_file import HorizontalSweepFile, SweepFile, cells

SPARSE = {"name": "sparsification", "vary": "kept", "values": [0.5]}


def sweep(**changes: Any) -> HorizontalSweepFile:
    settings: dict[str, Any] = {
        "name": "tiny",
        "data": SYNTHETIC,
        "parties": {"clients": 2},
        "horizontal": {"rounds": 2},
        "training": {"optimizer": "sgd", "batch_size": 1, "learning_rate": 0.5},
        "disclose": [{"what": "candidates", "to": "server", "rows": 10}],
        "attacks": [{"name": "softmax_inversion"}, {"name": "loss_threshold"}],
        "sweep": {"seeds": 1, "horizontal": {"local_steps": [1, 2]}, "defenses": [SPARSE]},
    }
    return HorizontalSweepFile.model_validate(settings | changes)


def test_cells_are_settings_by_strengths_by_seeds_with_a_defence_at_every_client() -> None:
    found = cells(sweep(sweep={"seeds": 2, "horizontal": {"local_steps": [1, 2]}, "defenses": [SPARSE]}))
    places = [tuple(c.key["place"].values()) for c in found]
    assert places == [
        (defense, strength, seed, steps)
        for steps in (1, 2)
        for defense, strength in (("undefended", 0.0), ("sparsification", 0.5))
        for seed in (0, 1)
    ]
    assert len({c.file() for c in found}) == 8
    last = found[-1].arguments[1]
    assert last["horizontal"] == {"rounds": 2, "local_steps": 2}
    (scenario,) = last["scenarios"]
    assert scenario["defenses"] == [
        {"name": "sparsification", "at": client, "kept": 0.5} for client in ("client-1", "client-2")
    ]
    one = sweep(sweep={"defenses": [{**SPARSE, "at": "client-2"}]})
    assert [d["at"] for d in cells(one)[-1].arguments[1]["scenarios"][0]["defenses"]] == ["client-2"]


def test_parts_give_what_one_machine_and_its_runs_give(tmp_path: Path) -> None:
    what = sweep()
    facts = run_sweep(what, Pool(tmp_path / "one"), tmp_path / "alone", "again")
    shared = Pool(tmp_path / "shared")
    assert [run_part(what, shared, Share(i, 2))["finished"] for i in (1, 2)] == [2, 4]
    merged = run_sweep(what, shared, tmp_path / "merged", "again")
    assert Path(merged["data"]).read_bytes() == Path(facts["data"]).read_bytes()
    assert {s.split(" was skipped")[0] for s in facts["refused"]} == {
        "undefended, local_steps = 2: softmax_inversion",
        "sparsification at 0.5, local_steps = 2: softmax_inversion",
    }
    rows = [
        r
        for r in pq.read_table(facts["data"]).to_pylist()
        if (r["defense"], r["horizontal.local_steps"]) == ("sparsification", 1)
    ]
    experiment = cells(what)[1].arguments[1]
    alone = run(HorizontalExperiment.model_validate({**experiment, "out": tmp_path / "run"}), in_process=True)
    (done,) = read_runs(alone.scenarios)
    errors = {(r["attack"], r["target"], r["scored_set"]): r["mse"] for r in rows if r["mse"] is not None}
    assert errors == {(r.attack, r.target, r.scored_set): r.mse for r in final(done)}
    assert {target for _, target, _ in errors} == {"client-1", "client-2"}
    ranked = {r["target"]: (r["membership_auc"], r["relative"]) for r in rows if r["adversary"]}
    assert ranked == {r.target: (r.auc, 2 * (1 - r.auc)) for r in membership_results(done)}
    page = Path(facts["page"]).read_text(encoding="utf-8")
    assert "client-2, rows of round 0, local_steps = 1: error relative to the best blind guess" in page
    assert "membership in client-1, guessed by server, candidate rows, local_steps = 2" in page
    assert "The adversary is the server." in page


def swept_sources(folder: Path, **of: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Facts and rows of a sweep without defences of an attack on whose row it is, and one on membership."""
    granted = [{"what": "candidates", "to": "server", "rows": 10, **of}]
    attacks = [{"name": "source_inference"}, {"name": "loss_threshold"}]
    what = sweep(disclose=granted, attacks=attacks, sweep={"seeds": 1, "defenses": []})
    facts = run_sweep(what, Pool(folder / "cells"), folder / "out", "again")
    return facts, pq.read_table(facts["data"]).to_pylist()


def test_an_attack_on_whose_row_it_is_has_one_row_of_all_clients(tmp_path: Path) -> None:
    facts, rows = swept_sources(tmp_path)
    (row,) = (r for r in rows if r["attack"] == "source_inference")
    assert not facts["refused"]
    assert (row["target"], row["adversary"], row["rows"]) == ("client-1 and client-2", "server", 10)
    assert row["blind"] == pytest.approx(1 / 2)
    assert row["relative"] == pytest.approx(2 * (1 - row["source_right"]))
    (found,) = row["findings"]
    assert (found["quantity"], found["value"], found["adversary"]) == (
        "sites",
        row["source_right"],
        "the server",
    )
    page = Path(facts["page"]).read_text(encoding="utf-8")
    assert "whose row it is, of client-1 and client-2, named by server, train rows: error relative" in page
    assert "training rows named as their own client" in page


def test_a_score_of_some_clients_alone_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """Naming one client always is right there."""
    facts, rows = swept_sources(tmp_path, by="client-1")
    assert {r["attack"] for r in rows} == {"loss_threshold"}
    assert facts["refused"] == [
        "undefended: source_inference has no score over all clients: let client-2 grant candidates to the "
        "server too"
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"sweep": {"horizontal": {"local_step": [1]}}},
            r"^sweep of horizontal\.local_step = 1: .*local_step",
        ),
        (
            {"sweep": {"horizontal": {"participants": [1, 3]}}},
            r"^sweep of horizontal\.participants = 3: .*participants = 3 of 2 clients: draw at most 2",
        ),
        (
            {"sweep": {"horizontal": {"method": ["lg_fedavg"]}}},
            r"^sweep of horizontal\.method = 'lg_fedavg': .*choose 'fedavg' or a split network",
        ),
        (
            {"horizontal": {"rounds": 2, "local_steps": 1}, "sweep": {"horizontal": {"local_epochs": [2]}}},
            r"^sweep of horizontal\.local_epochs = 2: .*a round has one length",
        ),
        ({"sweep": {"horizontal": {"rounds": []}}}, r"horizontal\.rounds = \[\]: give at least one value"),
        ({"sweep": {"horizontal": {"rounds": [2, 2]}}}, r"rounds = \[2, 2\]: .*and each once"),
        ({"sweep": {"defenses": [{**SPARSE, "at": "active"}]}}, "party 'active' of defence 'sparsification'"),
    ],
)
def test_what_makes_no_horizontal_sweep_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=words):
        sweep(**changes)


def test_a_vertical_defence_names_its_party() -> None:
    settings = {
        "name": "tiny",
        "data": SYNTHETIC,
        "split": {"kind": "fraction", "fraction": 0.5},
        "attacks": [{"name": "half"}],
        "sweep": {"defenses": [{"name": "gaussian_scores", "sigma": 1.0}]},
    }
    with pytest.raises(ValueError, match="defence 'gaussian_scores' is nowhere: name the party that runs it"):
        SweepFile.model_validate(settings)
