"""Theory next to measurement: agreement is quiet, disagreement loud, what no theorem covers not compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reportpage import Page, report
from runfolder import metric, scores, theory, write_party, write_run


def _with_theory(run: Path, *figures: dict[str, Any], **given: Any) -> Page:
    write_run(run, **given)
    milestones = [m for rows in (50, 360) for m in scores({"half_star": 0.12}, rows)]
    write_party(run / "passive", "passive", metrics=[*milestones, *figures])
    return report(run)


def _alarms(page: Page) -> int:
    return sum("alarm" in str(attributes.get("class")) for _, attributes in page.tags)


def _unfolded(page: Page) -> bool:
    """The panel of theory shows its alarms without a click."""
    panel = next(i for i, (_, attributes) in enumerate(page.tags) if attributes.get("id") == "theory")
    tag, attributes = page.tags[panel + 1]
    assert tag == "details"
    return "open" in attributes


def test_theory_that_agrees_is_shown_without_alarm(tmp_path: Path) -> None:
    page = _with_theory(tmp_path / "demo", *theory("half_star", 0.12, 0.12 * (1 + 1e-9)))
    assert "agrees to 1.0e-09" in page.text
    assert _alarms(page) == 0
    assert not _unfolded(page)


@pytest.mark.parametrize(("measured", "closed"), [(0.1201, 0.12), (0.05, 0.05), (0.25, 0.25)])
def test_a_disagreement_is_loud(tmp_path: Path, measured: float, closed: float) -> None:
    """A closed form that differs, a measurement below the lower bound .06, one above the upper bound .2."""
    page = _with_theory(tmp_path / "demo", *theory("half_star", measured, closed))
    assert _alarms(page) == 2  # a banner and a row
    assert _unfolded(page)
    assert "one of the numbers is wrong" in page.text


def test_a_defended_run_is_not_comparable_rather_than_wrong(tmp_path: Path) -> None:
    page = _with_theory(
        tmp_path / "demo",
        *theory("half_star", 0.3, 0.12),
        defenses=[{"name": "gaussian_scores", "sigma": 1.0}],
    )
    assert "not comparable: defended by gaussian_scores at coordinator" in page.text
    assert _alarms(page) == 0


def test_without_the_coordinators_folder_nothing_is_called_wrong(tmp_path: Path) -> None:
    run = write_run(tmp_path / "demo")
    figures = [*scores({"half_star": 0.3}), *theory("half_star", 0.3, 0.12)]
    alone = Page([write_party(run / "passive", "passive", metrics=figures)], tmp_path / "alone.html")
    assert "not comparable: the coordinator's folder was not given" in alone.text
    assert _alarms(alone) == 0


def test_a_broken_theorem_1_is_loud(tmp_path: Path) -> None:
    fine = _with_theory(
        tmp_path / "fine", metric("theory_disorder", 0, attack="half_star", target="passive", rows=360)
    )
    assert "half_star: 0 rows break it" in fine.text
    assert _alarms(fine) == 0
    page = _with_theory(
        tmp_path / "demo", metric("theory_disorder", 3, attack="rcc2", target="passive", rows=360)
    )
    assert "rcc2 on passive breaks Theorem 1 on 3 rows" in page.text
    assert _alarms(page) == 1


def test_finite_columns_are_shown_in_bits_beside_their_entropy(tmp_path: Path) -> None:
    where = {"target": "passive", "scored_set": "predict", "column": "pixel_2_5", "rows": 360}
    bits = [
        metric("column_conditional_entropy", 0.75, attack="half_star", **where),
        metric("column_conditional_entropy", 0.25, attack="lmmse", **where),
    ]
    assert "bits left" not in _with_theory(tmp_path / "alone", *bits).text
    page = _with_theory(tmp_path / "demo", *bits, metric("column_entropy", 1.5, **where))
    assert [cell in page.text for cell in ("bits left", ".250", "1.500")] == [True] * 3
    assert ".750" not in page.text
