"""The live page of runs: its panels, what changes as a run goes, what stays with its owner, damaged files."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from laboratory import SYNTHETIC, federation
from livepage import Browser
from runfolder import SCHEMA, crossing, metric, scores, theory, write_party, write_run

from vflens.experiments.pages.page import plotly
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.run import run as run_experiment
from vflens.experiments.watch.page import RunsPage

EVIL = '<script>alert(1)</script><img src=x onerror="alert(1)">\x1b[31m\u202e'
ROUTES = ("/", "/live", "/report.html", "/?run=other")  # /plotly.js is the library's


def panels(*folders: Path) -> dict[str, str]:
    """The panels of a page that begins now."""
    return RunsPage(folders).panels({})


def log(folder: Path, *events: dict[str, Any]) -> None:
    """Append to the log of the party in ``folder``."""
    with (folder / "events.jsonl").open("a", encoding="utf-8") as out:
        out.writelines(json.dumps({"party": folder.name, **event}) + "\n" for event in events)


def refused(error: str, kind: str = "AccessError", number: int = 1) -> dict[str, Any]:
    return {"event": "refused", "level": "warning", "error": error, "kind": kind, "number": number}


def test_a_run_has_its_panels(tmp_path: Path) -> None:
    found = panels(write_run(tmp_path / "demo"))
    assert {name for name, html in found.items() if html} == set(found) - {"alarms"}
    assert "reconstructs" in found["summary"]
    assert ".021" in found["errors"]
    assert "± .002" in found["errors"]
    assert "RVG Theorem 2" in found["errors"]
    assert "best blind guess" in found["errors"]
    assert "accuracy alone" in found["utility"]
    assert 'alt="row 0, lmmse"' in found["pictures"]
    assert "gradient" in found["ledger"]


def test_each_attack_has_a_line(tmp_path: Path) -> None:
    """Attacks on columns, labels and membership; one that is not installed has none."""
    where = {"adversary": "passive", "target": "active", "scored_set": "train", "rows": 40}
    label = [metric(name, 0.9, attack="gradient_sign", **where) for name in ("label_accuracy", "label_auc")]
    blind = metric("blind_label_accuracy", 0.5, **where)
    folder = write_run(tmp_path / "demo")
    write_party(
        folder / "passive", "passive", metrics=[*scores({"lmmse": 0.02, "gone": 0.03}), *label, blind]
    )
    html = panels(folder)["errors"]
    stated = dict(re.findall(r"<dt><b>(.*?)</b></dt><dd>(.*?)</dd>", html))
    assert stated["lmmse"].startswith("Linear minimum mean square error: ")
    assert set(stated) == {"lmmse", "gradient_sign"}
    assert ">gone<" in html


def test_a_defence_stands_beside_its_claim(tmp_path: Path) -> None:
    tables = [{"name": "label_only"}, {"name": "gone", "digits": 2}, {"name": "label_only", "digits": "many"}]
    folder = write_party(tmp_path / "demo" / "coordinator", "coordinator", config={"defenses": tables})
    claims = re.findall(r"<td class=\"words\">(.*?)</td>", panels(folder)["utility"])
    assert claims[0::2] == ["label_only", "gone (digits 2)", "label_only (digits many)"]
    assert claims[1::2] == ["argmax", "not installed here", "not known: its table does not fit"]


def test_a_panel_without_numbers_is_empty(tmp_path: Path) -> None:
    found = panels(write_party(tmp_path / "demo" / "coordinator", "coordinator"))
    assert not any(found[name] for name in ("errors", "utility", "pictures", "alarms"))


@pytest.mark.parametrize(
    ("facts", "config", "word"),
    [
        ({"lab": True}, {}, "lab"),
        ({"in_process": True}, {}, "in-process"),
        ({}, {"insecure": True}, "insecure"),
        ({}, {"transcript": {"every": 3}}, "sampled"),
    ],
)
def test_a_banner_says_what_a_reader_must_know(
    tmp_path: Path, facts: dict[str, Any], config: dict[str, Any], word: str
) -> None:
    plain, marked = tmp_path / "plain" / "active", tmp_path / "marked" / "active"
    write_party(plain, "active")
    write_party(marked, "active", facts=facts, config=config)
    assert f"<b>{word}</b>" in panels(marked)["summary"]
    assert f"<b>{word}</b>" not in panels(plain)["summary"]


def test_a_disagreement_with_theory_is_an_alarm(tmp_path: Path) -> None:
    run = write_run(tmp_path / "demo")
    wrong = scores({"half_star": 0.12}, 360) + theory("half_star", 0.12, 0.19)
    write_party(run / "passive", "passive", metrics=wrong)
    assert "THEORY AND MEASUREMENT DISAGREE" in panels(run)["alarms"]


@pytest.mark.parametrize(("spent", "loud"), [(3.1, False), (3.3, True)])
def test_a_budget_nearly_spent_is_an_alarm(tmp_path: Path, spent: float, loud: bool) -> None:
    figures = [metric("training_releases", 5, target="passive")]
    figures += [metric("training_epsilon", spent, target="passive")]
    limits = {"limits": {"epsilon": 4.0, "delta": 1e-5}}
    folder = write_party(tmp_path / "demo" / "passive", "passive", metrics=figures, config=limits)
    found = panels(folder)
    assert ("BUDGET" in found["alarms"]) == loud
    assert str(spent) in found["utility"]


def test_refused_calls_are_counted_by_kind(tmp_path: Path) -> None:
    folder = write_party(tmp_path / "demo" / "passive", "passive")
    page = RunsPage([folder])
    assert page.panels({})["alarms"] == ""
    log(folder, refused("caller 'x' is no peer"), refused("caller 'y' is no peer", number=2))
    log(folder, refused("row 3 was asked for twice", "StateError", 3))
    alarms = page.panels({})["alarms"]
    assert re.search(r"refused AccessError</td><td class=\"n\">2</td>.*caller &#39;y&#39;", alarms)
    assert re.search(r"refused StateError</td><td class=\"n\">1</td>.*asked for twice", alarms)


def test_a_half_written_event_waits_for_its_end(tmp_path: Path) -> None:
    folder = write_party(tmp_path / "demo" / "passive", "passive")
    page, line = RunsPage([folder]), json.dumps(refused("no peer"))
    (folder / "events.jsonl").write_text(line[:20])
    assert page.panels({})["alarms"] == ""
    (folder / "events.jsonl").write_text(line + "\nno JSON\n[1]\n")
    assert "no peer" in page.panels({})["alarms"]


def test_of_a_long_log_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vflens.experiments.watch.events._MOST_BYTES", 1000)
    folder = write_party(tmp_path / "demo" / "passive", "passive")
    log(folder, *(refused("of the start", number=n) for n in range(50)), refused("the newest"))
    page = RunsPage([folder])
    alarms = page.panels({})["alarms"]
    assert "the newest" in alarms
    count = int(re.findall(r'class="n">≥ (\d+)<', alarms)[0])
    assert 1 < count < 20
    log(folder, refused("after it"))
    alarms = page.panels({})["alarms"]
    assert "after it" in alarms
    assert f"≥ {count + 1}<" in alarms


def test_a_log_that_was_moved_is_read_anew(tmp_path: Path) -> None:
    folder = write_party(tmp_path / "demo" / "passive", "passive")
    page = RunsPage([folder])
    log(folder, refused("of the earlier run"))
    assert "earlier" in page.panels({})["alarms"]
    (folder / "events.jsonl").rename(folder / "moved")
    log(folder, refused("of the next run"))
    alarms = page.panels({})["alarms"]
    assert "next" in alarms
    assert "earlier" not in alarms


def test_a_running_party_shows_its_step_and_time_left(tmp_path: Path) -> None:
    training = {"training": {"epochs": 10, "batch_size": 10}, "train_rows": 100}
    lines = [{**crossing("coordinator", "train", "gradient"), "step": step} for step in range(20)]
    running = {"state": "running", "reason": ""}
    folder = tmp_path / "demo" / "passive"
    write_party(folder, "passive", facts=training, status=running, crossings=lines)
    page = RunsPage([folder])
    assert "20 of 100" in page.panels({})["parties"]
    with (folder / "transcript/index.jsonl").open("a") as index:
        index.write(json.dumps({**lines[0], "step": 59}) + "\n" + '{"sender": "coor')
    parties = page.panels({})["parties"]
    assert "60 of 100" in parties
    assert re.search(r"<td class=\"n\">\d+ s</td>", parties)


def test_a_failed_party_shows_why(tmp_path: Path) -> None:
    status = {"state": "failed", "reason": "disk full: free space"}
    parties = panels(write_party(tmp_path / "demo" / "passive", "passive", status=status))["parties"]
    assert "disk full: free space" in parties
    assert 'class="state failed"' in parties


def test_the_ledger_grows_with_its_log(tmp_path: Path) -> None:
    lines = [crossing("coordinator", "train", "gradient")] * 2
    folder = write_party(tmp_path / "demo" / "passive", "passive", crossings=lines)
    page = RunsPage([folder])
    assert '<td class="n">2</td>' in page.panels({})["ledger"]
    with (folder / "transcript/index.jsonl").open("a") as index:
        index.write(json.dumps(lines[0]) + "\n" + json.dumps(lines[0])[:30])
    assert '<td class="n">3</td>' in page.panels({})["ledger"]


def test_a_long_log_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vflens.experiments.watch.reading._MOST_BYTES", 1)
    lines = [crossing("coordinator", "train", "gradient")] * 3
    page = RunsPage([write_party(tmp_path / "demo" / "passive", "passive", crossings=lines)])
    for messages in (1, 2, 3):
        ledger = page.panels({})["ledger"]
        assert f'<td class="n">{messages}</td>' in ledger
        assert ("still being read" in ledger) == (messages < 3)


def test_a_run_is_chosen_by_the_address(tmp_path: Path) -> None:
    write_run(tmp_path / "all" / "first", {"lmmse": 0.0211})
    write_run(tmp_path / "all" / "second", {"lmmse": 0.0322}, defenses=[{"name": "rounding", "digits": 2}])
    page = RunsPage([tmp_path / "all"])
    assert ".021" in page.panels({})["errors"]
    assert ".032" in page.panels({"run": "second"})["errors"]
    assert page.panels({"run": EVIL})["errors"] == page.panels({})["errors"]


def test_the_run_that_goes_on_is_shown(tmp_path: Path) -> None:
    write_run(tmp_path / "all" / "first", {"lmmse": 0.0211})
    second = write_run(tmp_path / "all" / "second", {"lmmse": 0.0322})
    page = RunsPage([tmp_path / "all"])
    assert ".021" in page.panels({})["errors"]
    (second / "active" / "status.json").write_text('{"state": "running", "reason": ""}')
    assert ".032" in page.panels({})["errors"]


def test_a_scenario_that_begins_appears(tmp_path: Path) -> None:
    write_run(tmp_path / "all" / "first")
    page = RunsPage([tmp_path / "all"])
    assert "second" not in page.panels({})["parties"]
    write_run(tmp_path / "all" / "second")
    assert "second" in page.panels({})["parties"]


def test_results_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = RunsPage([write_run(tmp_path / "demo")])
    first = page.panels({})
    monkeypatch.setattr("vflens.experiments.watch.panels.percent", lambda share: 1 / 0)
    assert page.panels({}) == first


def test_a_horizontal_run_has_its_panels(tmp_path: Path) -> None:
    experiment = HorizontalExperiment.model_validate(
        {
            "name": "small",
            "out": tmp_path,
            "data": {"name": "synthetic", "rows": 60, "features": 6, "classes": 2},
            "split": {},
            "parties": {"clients": 2},
            "horizontal": {"rounds": 2},
            "training": {"batch_size": 16},
        }
    )
    (home,) = run_experiment(experiment, in_process=True).scenarios
    found = panels(home)
    assert "<td>server</td>" in found["parties"]
    assert "update" in found["ledger"]
    assert "accuracy alone" in found["utility"]


class _Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("name", [EVIL, EVIL + "x" * 10_000])
def test_hostile_names_are_text(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "demo" / "passive"
    who = {"party": name, "run": name}
    line = {**crossing(name, "train", "gradient"), "phase": name, "point": name}
    write_party(
        folder,
        "passive",
        config={**who, "defenses": [{"name": name}], "attacks": [{"name": name}]},
        facts={**who, "lab": True},
        metrics=[
            *scores({name: 0.02}, 50, target=name),
            metric("failed", 1.0, attack=name, target=name, adversary=name, detail=name),
        ],
        status={"state": "failed", "reason": name},
        crossings=[line],
    )
    log(folder, {**refused(name), "event": name})
    html = Browser(RunsPage([folder])).enter().get("/").text
    tags = _Tags(html).found
    assert not any(tag == "img" or any(key.startswith("on") for key in found) for tag, found in tags)
    scripts = [found for tag, found in tags if tag == "script"]
    assert all("nonce" in found or found == {"type": "application/json"} for found in scripts)
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert len(html) < 120_000


# -- what stays with its owner ------------------------------------------------------------------------


def _answers(folder: Path) -> bytes:
    """All that a browser can get of the page on ``folder``, without nonces and plotly's own script."""
    browser = Browser(RunsPage([folder])).enter()
    found = b""
    for route in ROUTES:
        answer = browser.get(route)
        nonce = re.search(r"nonce-([\w-]+)", answer.headers["Content-Security-Policy"])
        found += answer.content.replace(nonce[1].encode(), b"") if nonce else answer.content
    return found.replace(plotly().encode(), b"")


def _truth(passive: Path, factor: float) -> None:
    """Other figures, pictures and events of the target."""
    figures = scores({"lmmse": 0.0123456789 * factor, "half_star": 0.098765432 * factor})
    pq.write_table(pa.Table.from_pylist(figures, SCHEMA), passive / "metrics.parquet")
    pictures: dict[str, Any] = {n: np.full((2, 4), 0.31 * factor) for n in ("original", "estimate:lmmse")}
    np.savez(passive / "pictures.npz", rows=np.arange(2, dtype=np.int32), **pictures)
    (passive / "events.jsonl").unlink(missing_ok=True)
    log(passive, {"event": "scored", "level": "warning", "errors": {"lmmse": 0.0123456789 * factor}})


@pytest.mark.parametrize("role", ["coordinator", "active"])
def test_a_page_of_another_party_tells_nothing_of_the_truth(tmp_path: Path, role: str) -> None:
    run = write_run(tmp_path / "demo")
    _truth(run / "passive", 1.0)
    one = _answers(run / role)
    _truth(run / "passive", 1.7)
    assert _answers(run / role) == one
    shutil.rmtree(run / "passive")
    assert _answers(run / role) == one
    for figure in (b"0.0123456789", b"0.098765432", b".012", b".099"):
        assert figure not in one
    assert b"data:image/png" not in one


def test_a_run_without_lab_mode_keeps_the_truth_at_the_target(tmp_path: Path) -> None:
    data = {**SYNTHETIC, "rows": 240}
    federation(tmp_path / "run", lab=False, data=data, predict_share=0.5).run()
    home = tmp_path / "run"
    (read,) = read_runs([home])
    secret = {repr(m.value).encode() for p in read.parties if p.name == "passive" for m in p.metrics}
    secret = {figure for figure in secret if len(figure) > 8}  # others, such as 0.5, stand there by chance
    assert len(secret) > 10
    for name in ("coordinator", "active"):
        answers = _answers(home / name)
        assert not [figure for figure in secret if figure in answers]
        assert b"data:image/png" not in answers
    own = _answers(home / "passive")
    assert [figure for figure in secret if figure in own]


def test_the_page_of_the_target_shows_its_truth(tmp_path: Path) -> None:
    run = write_run(tmp_path / "demo")
    _truth(run / "passive", 1.0)
    found = _answers(run / "passive")
    assert b".012" in found
    assert b"data:image/png" in found
    _truth(run / "passive", 1.7)
    assert _answers(run / "passive") != found
