"""The report: self-contained, safe, without secrets, with the panels whose numbers exist and no others."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image
from reportpage import Page, report
from runfolder import SECRETS, crossing, metric, scores, theory, write_party, write_pictures, write_run

from vflens.experiments.pages.report import render
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.verdict import alarms, to_json

ALWAYS = {"verdict", "rerun", "limits"}
ALL = ALWAYS | {
    "threat",
    "pictures",
    "numbers",
    "heat",
    "features",
    "convergence",
    "theory",
    "utility",
    "progress",
}
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def test_a_finished_run_shows_every_panel(tmp_path: Path) -> None:
    page = report(write_run(tmp_path / "demo"))
    assert page.panels == ALL
    assert (
        "reconstructs the passive party's pixels: it finds 74 % of what a blind guess leaves open (MSE .021; "
        in page.text
    )
    assert "secure training" in page.text


def test_nothing_is_loaded(tmp_path: Path) -> None:
    page = report(write_run(tmp_path / "demo"))
    links = [a[k] or "" for _, a in page.tags for k in ("src", "href", "srcset", "action", "data") if k in a]
    assert len(links) > 10
    assert [link for link in links if not link.startswith(("data:image/png;base64,", "#"))] == []
    assert {tag for tag, _ in page.tags} & {"link", "iframe", "object", "base"} == set()
    style = page.html.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_only_the_two_scripts_of_the_report_may_run(tmp_path: Path) -> None:
    page = report(write_run(tmp_path / "demo"))
    policy = next(a["content"] or "" for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in page.scripts]
    assert len(hashes) == 2
    assert policy.startswith("default-src 'none'")
    assert all(f"'sha256-{h}'" in policy for h in hashes)
    assert "unsafe-inline" not in policy.partition("script-src")[2]


def test_untrusted_text_stays_text(tmp_path: Path) -> None:
    run = tmp_path / "demo"
    errors = [m | {"target": EVIL, "column": m["column"] and EVIL} for m in scores({EVIL: 0.021})]
    parties = [{"name": EVIL, "role": "passive", "columns": [{"name": EVIL}], "n_classes": 0}]
    write_party(
        run / "passive",
        "passive",
        config={"defenses": [{"name": EVIL, EVIL: EVIL}], "disclose": [{"what": EVIL, "to": EVIL}]},
        facts={
            "party": EVIL,
            "run": EVIL,
            "parties": parties,
            "versions": {EVIL: EVIL},
            "transcript_digest": EVIL,
        },
        status={"state": "failed", "reason": EVIL},
        crossings=[crossing(EVIL, EVIL, EVIL)],
        metrics=[*errors, metric("skipped", 1, attack=EVIL, detail=EVIL), metric("train_loss", 1.0, step=1)],
    )
    page = report(run)
    assert page.text.count("alert(1)") > 10
    assert len(page.scripts) == 2
    assert [a for tag, a in page.tags if tag == "img" or any(k.startswith("on") for k in a)] == []
    assert page.figures
    assert "<img" not in json.dumps(page.figures), "plotly reads labels as HTML"


def test_control_and_invisible_characters_are_escaped(tmp_path: Path) -> None:
    hidden = "a\x1b[31m\u202eb"
    errors = [m | {"target": hidden} for m in scores({hidden: 0.021})]
    write_party(
        tmp_path / "demo" / "passive",
        "passive",
        config={"defenses": [{"name": hidden}]},
        facts={"party": hidden, "versions": {hidden: hidden}},
        status={"state": "failed", "reason": hidden},
        metrics=errors,
    )
    html = render(read_runs([tmp_path / "demo"]))
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert html.count("a\\x1b[31m\\u202eb") > 5


def test_no_secret_is_shown(tmp_path: Path) -> None:
    page = report(write_run(tmp_path / "demo"))
    assert "SECRET" in json.dumps(SECRETS)
    assert "SECRET" not in page.html
    assert "epochs = 5" in page.text
    assert "vflens serve coordinator --config demo/coordinator/config.toml" in page.text


@pytest.mark.parametrize(
    ("gone", "panels"),
    [
        ("blind_mse", {"numbers", "heat", "features", "convergence"}),
        ("mse", {"numbers", "heat", "features", "convergence"}),
        ("column_blind_mse", {"features"}),
        ("column_mse", {"features"}),
        ("theory_measured", {"theory"}),
    ],
)
def test_a_number_without_its_counterpart_is_not_shown(tmp_path: Path, gone: str, panels: set[str]) -> None:
    run = write_run(tmp_path / "demo")
    kept = [m for rows in (50, 360) for m in scores({"lmmse": 0.021}, rows) if m["metric"] != gone]
    kept += [m for m in theory("half_star", 0.12, 0.12) if m["metric"] != gone]
    write_party(run / "passive", "passive", metrics=kept)
    page = report(run)
    assert panels == ALL - page.panels
    assert (".021" in page.text) == ("heat" not in panels)


def test_panels_need_their_numbers(tmp_path: Path) -> None:
    run = tmp_path / "demo"
    passive = write_party(run / "passive", "passive")
    assert report(run).panels == ALWAYS
    assert len(report(run).scripts) == 0, "no figure, no plotly"
    write_pictures(passive, ["lmmse"])
    assert report(run).panels == ALWAYS | {"pictures"}
    write_party(run / "active", "active", metrics=[metric("accuracy", 0.9)])
    assert report(run).panels == ALWAYS | {"pictures", "utility"}
    write_party(run / "coordinator", "coordinator", metrics=[metric("steps", 9)])
    assert report(run).panels == ALWAYS | {"pictures", "utility", "progress"}


def test_bytes_per_step_need_both_figures(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "coordinator"
    received, steps = metric("bytes_received", 5e6), metric("steps", 1000)
    for metrics in ([received], [steps], [received, metric("steps", 0)]):
        write_party(folder, "coordinator", metrics=metrics)
        assert "bytes per step" not in report(tmp_path / "demo").text
    write_party(folder, "coordinator", metrics=[received, steps])
    page = report(tmp_path / "demo")
    assert "bytes per step" in page.text
    assert "5.0 kB" in page.text


def test_an_interrupted_run_shows_what_was_computed(tmp_path: Path) -> None:
    run = tmp_path / "demo"
    folder = write_party(
        run / "passive",
        "passive",
        metrics=scores({"lmmse": 0.021}, rows=50),
        status={"state": "interrupted", "reason": "stopped by the operator"},
    )
    page = report(run)
    assert "party passive was interrupted" in page.text
    assert "stopped by the operator" in page.text
    assert "heat" in page.panels
    for name in ("federation.json", "status.json"):
        (folder / name).unlink()
    assert "it left no status" in report(run).text


def test_a_party_that_left_only_its_configuration_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "passive"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('party = "passive"\nrole = "passive"\nseed = "SECRET"\n')
    page = report(tmp_path / "demo")
    assert page.panels == ALWAYS
    assert "Nothing can be said yet" in page.text


def test_defences_stand_beside_what_they_act_on(tmp_path: Path) -> None:
    run = write_run(tmp_path / "demo", defenses=[{"name": "round_scores", "digits": 1}])
    rows = [row.partition("</tr>")[0] for row in report(run).html.split("<tr><td>")]
    scores_row = next(row for row in rows if "<td>scores</td>" in row)
    assert "round_scores (digits 1)" in scores_row
    assert '<td class="n">2</td><td class="n">200 B</td>' in scores_row
    embedding_row = next(row for row in rows if "<td>embedding</td>" in row)
    assert "round_scores" not in embedding_row
    alone = Page([run / "active"], tmp_path / "alone.html")
    assert "not known: the sender's folder was not given" in alone.text
    assert "the folders of coordinator, passive were not given" in alone.text


def test_an_unknown_plugin_is_named_not_fatal(tmp_path: Path) -> None:
    page = report(
        write_run(tmp_path / "demo", {"of_another_package": 0.02}, defenses=[{"name": "unheard_of"}])
    )
    assert "not installed here" in page.text
    assert "unheard_of" in page.text


def test_skipped_attacks_say_why(tmp_path: Path) -> None:
    run = tmp_path / "demo"
    write_party(run / "active", "active", metrics=[metric("skipped", 1, attack="lmmse", detail="no moments")])
    assert "did not run : no moments" in " ".join(report(run).text.split())


def test_failed_attacks_are_not_called_skipped(tmp_path: Path) -> None:
    run = tmp_path / "demo"
    bug = metric("failed", 1, attack="lmmse", adversary="active", target="p", detail="ValueError: a bug")
    write_party(run / "active", "active", metrics=[bug])
    page = " ".join(report(run).text.split())
    assert "failed : ValueError: a bug" in page
    assert "did not run" not in page
    runs = read_runs([run])
    assert alarms(runs) == ["AN ATTACK FAILED, with demo: lmmse in active on p failed: ValueError: a bug"]
    (found,) = to_json(runs)["runs"]
    assert found["skipped"] == []
    assert found["failed"] == [
        {"attack": "lmmse", "adversary": "active", "target": "p", "reason": "ValueError: a bug"}
    ]


def test_the_heat_map_is_relative_to_the_blind_error(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {"lmmse": 0.02, "ls": 0.4})
    b = write_run(tmp_path / "b", {"lmmse": 0.04}, defenses=[{"name": "round_scores", "digits": 1}])
    figures = Page([a, b], tmp_path / "report.html").figures
    figure = cast(Any, next(f for f in figures if "texttemplate" not in f and "text" in f["data"][0]))
    heat, layout = figure["data"][0], figure["layout"]
    assert layout["xaxis"]["ticktext"] == ["no defence", "round_scores (digits 1)"]
    assert layout["yaxis"]["ticktext"] == ["lmmse", "ls"]
    assert list(zip(heat["x"], heat["base"], heat["text"], strict=True)) == [
        (0, -0.48, "25 %"),
        (1, -0.48, "50 %"),
        (0, 0.52, "500 %"),
    ]
    assert heat["marker"]["color"] == ["#d94801", "#fd8d3c", "#eef2f6"]  # the scale's stops at 1/4, 1/2, 1


def test_figures_that_are_not_finite_do_not_break_the_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "demo")
    broken = [
        *scores({"lmmse": 0.021, "ls": float("inf"), "gia": float("nan")}),
        metric("mean_kl", float("inf")),
        metric("bytes_received", float("inf")),
    ]
    write_party(run / "passive", "passive", metrics=broken)
    page = report(run)
    assert all(len(f["data"]) for f in page.figures)
    assert "∞" in page.text
    assert "NaN" not in json.dumps([f["data"] for f in page.figures])


@pytest.mark.parametrize(("mse", "mark"), [(0.02, "leaks"), (0.09, "blind"), (None, "")])
def test_the_verdict_is_marked(tmp_path: Path, mse: float | None, mark: str) -> None:
    page = report(write_run(tmp_path / "demo", {"ls": mse} if mse else {}))
    assert next(a["class"] for tag, a in page.tags if a.get("id") == "verdict") == mark


def test_pictures_fill_the_bounding_box_and_are_clipped(tmp_path: Path) -> None:
    run = write_run(tmp_path / "demo")
    original = np.array([[-0.5, 0.5, 1.0, 7.0]])
    np.savez(run / "passive" / "pictures.npz", rows=np.array([4]), original=original)
    images = [a["src"] or "" for tag, a in report(run).tags if tag == "img"]
    assert len(images) == 2, "the original and the guess of one half"
    image = Image.open(io.BytesIO(base64.b64decode(images[0].partition(",")[2])))
    assert np.asarray(image)[..., 0].tolist() == [[0, 128], [255, 255]]


@pytest.mark.parametrize(
    ("channels", "drawn"),
    [
        (3, [[[0, 51, 255, 255]], [[102, 153, 204, 255]]]),  # red, green, blue and opacity
        (2, [[[0, 255], [51, 255]], [[102, 255], [153, 255]]]),  # two views, side by side
    ],
)
def test_colours_and_views_are_drawn(tmp_path: Path, channels: int, drawn: list[Any]) -> None:
    values = np.array([0, 51, 255, 102, 153, 204] if channels == 3 else [0, 51, 102, 153]) / 255
    columns = [{"name": f"{r} {k}", "pixel": [r, 5, k]} for r in range(2) for k in range(channels)]
    described = {"name": "passive", "role": "passive", "columns": columns}
    folder = write_party(tmp_path / "demo" / "passive", "passive", facts={"parties": [described]})
    np.savez(folder / "pictures.npz", rows=np.array([4]), original=values[None])
    source = next(a["src"] for tag, a in report(folder).tags if tag == "img") or ""
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))))
    assert image.tolist() == drawn


def test_in_process_and_lab_runs_say_so(tmp_path: Path) -> None:
    folder = tmp_path / "demo" / "passive"
    write_party(folder, "passive")
    plain = report(tmp_path / "demo").text
    assert "isolation" not in plain
    assert "Lab mode" not in plain
    write_party(folder, "passive", facts={"in_process": True, "lab": True, "clipped": 12})
    page = report(tmp_path / "demo")
    assert "a convention, not security" in page.text
    assert "Lab mode" in page.text
    assert "12 values lay outside" in page.text


def test_the_verdict_and_pictures_come_first_and_what_explains_them_is_folded(tmp_path: Path) -> None:
    page = report(write_run(tmp_path / "demo"))
    order = [str(a["id"]) for tag, a in page.tags if tag == "section"]
    assert order[:2] == ["verdict", "pictures"]
    assert order[-3:] == ["threat", "rerun", "limits"]
    folded = {str(a["id"]) for (_, a), inner in pairwise(page.tags) if "id" in a and inner == ("details", {})}
    assert {"heat", "features", "convergence", "progress", "threat"} & page.panels <= folded
    assert {"heat", "features", "threat"} <= folded
    assert not {"verdict", "pictures", "numbers", "limits"} & folded


def test_the_head_of_pictures_is_one_whole_word(tmp_path: Path) -> None:
    run = write_run(tmp_path / "demo", {"mean_star_of_all_columns": 0.02})
    write_pictures(run / "passive", ["mean_star_of_all_columns"])
    assert '<th scope="row">mean_star_of_all_columns <span>.020</span></th>' in report(run).html
