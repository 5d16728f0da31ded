"""The target's scoring service: figures stay home, and what goes back holds nothing private."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import federation, figures

from vflens import attacks
from vflens.array import ScaledColumns
from vflens.errors import ConfigError, ProtocolError, StateError, VflensError
from vflens.experiments.results.folders import read_party
from vflens.numerics.entropy import nearest_letters
from vflens.protocol.acts import Guess, Receipt, Submission
from vflens.score.columns import ColumnScoring
from vflens.score.service import ScoringService, milestones
from vflens.score.theory import ReleasedModel
from vflens.storage.log import party_log
from vflens.storage.metrics import Metrics, Name
from vflens.types import Array, ColumnInfo, RowStatus, numbered, statuses
from vflens.wire.messages import RPCS

N, D = 60, 3
RNG = np.random.default_rng(0)
TRUTH = RNG.random((200, D))
WEIGHT = np.random.default_rng(1).normal(size=(3, D))
RELEASED = RNG.permutation(200)[:N].astype(np.int32)


def _service(folder: Path, truth: Array = TRUTH, *, lab: bool = False, pictures: int = 0) -> ScoringService:
    folder.mkdir(exist_ok=True)
    return ColumnScoring(
        party="target",
        truth=ScaledColumns(truth),
        columns=(ColumnInfo("x"), ColumnInfo("y"), ColumnInfo("z", alphabet=(0.0, 1.0))),
        training=np.arange(40, 100, dtype=np.int32),
        predicting=N,
        lab=lab,
        metrics=Metrics(folder / "metrics.parquet"),
        log=party_log(folder / "events.jsonl", "target"),
        folder=folder,
        pictures=pictures,
        model=lambda: ReleasedModel(WEIGHT, WEIGHT),
    )


def _submission(rows: Array = RELEASED, *guesses: Guess, scored_set: str = "predict") -> Submission:
    return Submission("run", "active", scored_set, rows, guesses=guesses or (_guess(len(rows)),))


def _guess(n: int, name: str = "ls", values: Array | None = None) -> Guess:
    return Guess(name, np.full((n, D), 0.3) if values is None else values, numbered(statuses(n)))


def _answer(call: Callable[..., Receipt], *arguments: Any) -> bytes:
    """All that the caller gets: the reply's bytes, or the refusal's class and sentence."""
    try:
        reply: bytes = RPCS[Submission].encode_reply(call(*arguments)).SerializeToString()
    except VflensError as error:
        return f"{type(error).__name__}: {error}".encode()
    return reply


# --- what the submitter learns

PROBES: dict[str, Submission] = {
    "a guess": _submission(),
    "the truth itself": _submission(RELEASED, _guess(N, "oracle", TRUTH[RELEASED])),
    "two attacks": _submission(RELEASED, _guess(N, "a"), _guess(N, "b", np.zeros((N, D)))),
    "huge values": _submission(RELEASED, _guess(N, "a", np.full((N, D), 1e300))),
    "the first rows": _submission(RELEASED[:50]),
    "no attack": Submission("run", "active", "predict", RELEASED, guesses=()),
    "too few rows": _submission(RELEASED[:49]),
    "one row": _submission(RELEASED[:1]),
    "no row": _submission(RELEASED[:0]),
    "rows in another order": _submission(RELEASED[::-1].copy()),
    "rows never released": _submission(np.arange(N, dtype=np.int32)),
    "more rows than released": _submission(np.arange(200, dtype=np.int32)),
    "a column too many": _submission(RELEASED, _guess(N, "a", np.zeros((N, D + 1)))),
    "no milestone": _submission(RELEASED[:51]),
    "one attack twice": _submission(RELEASED, _guess(N, "a"), _guess(N, "a")),
    "ever more attacks": _submission(RELEASED, *(_guess(N, f"a{i}") for i in range(257))),
    "a name without end": _submission(RELEASED, _guess(N, "a" * 70_000)),
    "a name that breaks lines": _submission(RELEASED, _guess(N, "a\nb")),
    "NaN": _submission(RELEASED, _guess(N, "a", np.full((N, D), np.nan))),
    "infinity": _submission(RELEASED, _guess(N, "a", np.full((N, D), np.inf))),
}


@pytest.mark.parametrize("probe", PROBES)
def test_two_truths_give_the_caller_identical_bytes(tmp_path: Path, probe: str) -> None:
    other = 1 - TRUTH
    answers = [
        _answer(service.score, PROBES[probe], RELEASED)
        for service in (_service(tmp_path / "a"), _service(tmp_path / "b", other))
    ]
    assert answers[0] == answers[1]


def test_the_bytes_of_a_receipt_are_two_counts() -> None:
    """So that the test above cannot pass because everything is refused."""
    sent = RPCS[Submission].encode_reply(Receipt(60, 2, {}))
    assert sent.SerializeToString() == b"\x08\x3c\x10\x02"


def test_in_lab_mode_alone_the_errors_go_back(tmp_path: Path) -> None:
    """The truth differs in one cell: in the lab the caller sees it, outside it does not."""
    nudged = TRUTH.copy()
    nudged[RELEASED[7], 1] += 0.01
    for lab in (True, False):
        a, b = (
            _answer(service.score, _submission(), RELEASED)
            for service in (
                _service(tmp_path / f"a{lab}", lab=lab),
                _service(tmp_path / f"b{lab}", nudged, lab=lab),
            )
        )
        assert (a != b) == lab


# --- what is refused

REFUSED: list[tuple[str, str]] = [
    ("too few rows", "^submission of 49 rows: fewer than 50 are scored in lab mode only, wait for more "
                     "predictions$"),
    ("no row", "^submission of 0 predict rows: it must name the first rows that were released, in that "
               "order$"),
    ("rows in another "
     "order", "^submission of 60 predict rows: it must name the first rows that were released"),
    ("rows never released", "^submission of 60 predict rows: it must name the first rows that were released"),
    ("more rows than released", "^submission of 200 predict rows: it must name the first rows"),
    ("no milestone", "^submission of 51 predict rows: the first 50, 100, 200, 500, … are scored, and all of "
                     "them at"),
    ("no attack", "^submission of 0 attacks, 0 of them distinct: from 1 to 256 are scored, each once$"),
    ("one attack twice", "^submission of 2 attacks, 1 of them distinct"),
    ("ever more attacks", "^submission of 257 attacks, 257 of them distinct: from 1 to 256 are scored"),
    ("a name without "
     "end", "^attack 'a{64}' has a name of 70000 characters: give 1 to 64 printable ones$"),
    ("a name that breaks lines", r"^attack 'a\\nb' has a name of 3 characters"),
    ("a column too many", r"^attack 'a' submitted values of shape \(60, 4\): \(60, 3\) is needed$"),
    ("NaN", "^attack 'a' submitted NaN or infinite values: give a finite guess for every cell$"),
    ("infinity", "^attack 'a' submitted NaN or infinite values"),
    ("huge values", "^attack 'a' submitted NaN or infinite values"),
]  # fmt: skip


@pytest.mark.parametrize(("probe", "sentence"), REFUSED)
def test_what_does_not_fit_is_refused_and_leaves_no_figure(tmp_path: Path, probe: str, sentence: str) -> None:
    service = _service(tmp_path, lab=False)
    with pytest.raises(ProtocolError, match=sentence):
        service.score(PROBES[probe], RELEASED)
    assert not (tmp_path / "metrics.parquet").exists()


def test_rows_are_scored_once_so_that_submissions_do_not_fill_the_disk(tmp_path: Path) -> None:
    service = _service(tmp_path)
    service.score(_submission(RELEASED[:50]), RELEASED)
    service.score(_submission(), RELEASED)
    before = figures(tmp_path)
    for rows in (RELEASED, RELEASED[:50]):
        with pytest.raises(StateError, match=rf"^the first {len(rows)} predict rows were scored before"):
            service.score(_submission(rows, _guess(len(rows), "another")), RELEASED)
    assert figures(tmp_path) == before


def test_a_row_state_for_every_row(tmp_path: Path) -> None:
    guess = Guess("a", np.zeros((N, D)), numbered(statuses(N - 1)))
    with pytest.raises(ProtocolError, match=r"^attack 'a' submitted "):
        _service(tmp_path).score(_submission(RELEASED, guess), RELEASED)


def test_few_rows_are_scored_in_the_lab(tmp_path: Path) -> None:
    receipt = _service(tmp_path, lab=True).score(_submission(RELEASED[:1]), RELEASED)
    assert (receipt.rows, receipt.attacks) == (1, 1)
    assert receipt.errors["ls"] == pytest.approx(float(((TRUTH[RELEASED[0]] - 0.3) ** 2).mean()))


# --- the figures, by hand


def test_figures_agree_with_a_calculation_by_hand(tmp_path: Path) -> None:
    values = RNG.random((N, D))
    status = statuses(N)
    status[:6] = RowStatus.INCONSISTENT
    receipt = _service(tmp_path, lab=True).score(
        _submission(RELEASED, Guess("ls", values, numbered(status))), RELEASED
    )
    found = figures(tmp_path)

    truth = [[float(v) for v in TRUTH[r]] for r in RELEASED]
    squares = [[(truth[i][j] - float(values[i][j])) ** 2 for j in range(D)] for i in range(N)]
    per_row = [sum(s) / D for s in squares]
    mse = sum(per_row) / N
    assert found["mse", "ls", ""] == pytest.approx(mse, rel=1e-12)
    assert receipt.errors == {"ls": found["mse", "ls", ""]}
    variance = sum((e - mse) ** 2 for e in per_row) / (N - 1)
    assert found["mse_stderr", "ls", ""] == pytest.approx((variance / N) ** 0.5, rel=1e-12)
    assert found["unusable", "ls", ""] == pytest.approx(0.1)
    for j, column in enumerate(("x", "y", "z")):
        assert found["column_mse", "ls", column] == pytest.approx(sum(s[j] for s in squares) / N, rel=1e-12)

    means = [sum(TRUTH[r][j] for r in range(40, 100)) / 60 for j in range(D)]
    blind: dict[str, Callable[[int, int], float]] = {
        "zero": lambda i, j: truth[i][j] ** 2,
        "half": lambda i, j: (truth[i][j] - 0.5) ** 2,
        "column_means": lambda i, j: (truth[i][j] - means[j]) ** 2,
    }
    columns = {name: [sum(f(i, j) for i in range(N)) / N for j in range(D)] for name, f in blind.items()}
    for name, per_column in columns.items():
        assert found["blind_mse", name, ""] == pytest.approx(sum(per_column) / D, rel=1e-12)
    draws = np.random.default_rng(1).random((4000, N, D))
    simulated = ((draws - np.array(truth)) ** 2).mean()
    assert found["blind_mse", "random", ""] == pytest.approx(simulated, rel=2e-3)
    for j, column in enumerate(("x", "y", "z")):
        least = min(per_column[j] for per_column in columns.values())
        assert found["column_blind_mse", "", column] == pytest.approx(least, rel=1e-12)


def test_an_answer_is_moved_into_the_box_before_it_is_scored_and_not_for_theory(tmp_path: Path) -> None:
    """An attack that knows no box errs by what its clipped answer errs, pictures too; a closed form is of the
    answer itself.
    """
    far = TRUTH[RELEASED] + RNG.normal(size=(N, D))
    assert not ((far >= 0) & (far <= 1)).all()
    found = {}
    for kind, values in {"free": far, "inside": np.clip(far, 0, 1)}.items():
        service = _service(tmp_path / kind, lab=True, pictures=4)
        receipt = service.score(_submission(RELEASED, _guess(N, "ls", values)), RELEASED)
        assert receipt.errors["ls"] == pytest.approx(((np.clip(far, 0, 1) - TRUTH[RELEASED]) ** 2).mean())
        found[kind] = {key: v for key, v in figures(tmp_path / kind).items() if "theory" not in key[0]}
        with np.load(tmp_path / kind / "pictures.npz") as saved:
            np.testing.assert_array_equal(saved["estimate:ls"], np.clip(far[:4], 0, 1))
    assert found["free"] == found["inside"]
    (measured,) = (v for key, v in figures(tmp_path / "free").items() if key[:2] == ("theory_measured", "ls"))
    assert measured == pytest.approx(((far - TRUTH[RELEASED]) ** 2).mean())


def test_finite_columns_are_scored_in_bits_too(tmp_path: Path) -> None:
    truth = TRUTH.copy()
    truth[:, 2] = np.arange(200) % 2
    values = np.column_stack([truth[RELEASED, :2], 1 - truth[RELEASED, 2]])
    _service(tmp_path, truth).score(_submission(RELEASED, _guess(N, "a", values)), RELEASED)
    found = figures(tmp_path)
    assert found["column_mse", "a", "z"] == 1.0
    assert found["column_conditional_entropy", "a", "z"] == 0.0
    assert found["column_entropy", "", "z"] == pytest.approx(1.0, abs=0.05)
    assert {c for m, _, c in found if "entropy" in m} == {"z"}
    assert found["column_right", "a", "z"] == 0.0
    assert found["column_blind_right", "", "z"] == max(np.bincount(RELEASED % 2)) / N
    assert {c for m, _, c in found if "right" in m} == {"z"}


def test_an_estimate_stands_for_the_nearest_value_of_a_finite_column() -> None:
    letters, values = np.array([0.0, 0.2, 1.0]), np.array([-3.0, 0.09, 0.11, 0.59, 0.61, 7.0])
    np.testing.assert_array_equal(nearest_letters(letters, values), [0.0, 0.0, 0.2, 0.2, 1.0, 1.0])
    np.testing.assert_array_equal(nearest_letters(letters[:1], values), np.zeros(6))


def test_theory_stands_beside_the_measured_errors_of_the_usable_rows(tmp_path: Path) -> None:
    A, truth = np.diff(WEIGHT, axis=0), TRUTH[RELEASED]
    values = {n: attacks.estimate(n, A, truth @ A.T).values for n in ("ls", "half_star")}
    status = statuses(N)
    status[:6] = RowStatus.SATURATED
    values["ls"][:6] = 9.0
    guesses = [Guess(n, v, numbered(status if n == "ls" else statuses(N))) for n, v in values.items()]
    _service(tmp_path).score(_submission(RELEASED, *guesses), RELEASED)
    found = {(m, a): v for (m, a, _), v in figures(tmp_path).items()}
    assert found["theory_rows", "ls"] == N - 6
    for name in values:
        closed = found["theory_closed", name]
        assert found["theory_measured", name] == pytest.approx(closed, rel=1e-10)
        assert found["theory_any_center", name] <= closed
        assert found["theory_lower", name] <= closed <= found["theory_upper", name]
    assert found["theory_disorder", "half_star"] == 0
    ok = numbered(statuses(N))
    wrong = [Guess("half_star", 1 - truth, ok), Guess("rcc2", truth, ok)]
    _service(tmp_path / "wrong").score(_submission(RELEASED, *wrong), RELEASED)
    found = {(m, a): v for (m, a, _), v in figures(tmp_path / "wrong").items()}
    assert found["theory_disorder", "half_star"] == N
    assert found["theory_disorder", "rcc2"] == 0


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, True),
        ({"parties": {"passive": ["a", "b"]}}, False),
        ({"defenses": [{"at": "passive", "name": "withhold_parameters"}]}, False),
        ({"defenses": [{"at": "coordinator", "name": "round_scores"}]}, True),
    ],
)
def test_theory_is_kept_where_the_target_alone_can_know_it(
    tmp_path: Path, changes: dict[str, Any], kept: bool
) -> None:
    local = federation(tmp_path, attacks=[{"name": "half"}, {"name": "half_star"}], **changes)
    local.run()
    folders = [p.folder for p in local.passive.values()]
    kinds = [m for f in folders for m, _, _ in figures(f) if m.startswith("theory_")]
    assert bool(kinds) == kept
    assert not [m for m, _, _ in figures(local.active.folder) if m.startswith("theory_")]


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        (1, [1]),
        (49, [49]),
        (50, [50]),
        (51, [50, 51]),
        (360, [50, 100, 200, 360]),
        (1000, [50, 100, 200, 500, 1000]),
    ],
)
def test_milestones(total: int, expected: list[int]) -> None:
    assert milestones(total) == expected


def test_pictures_are_drawn_from_the_first_rows_into_the_own_folder(tmp_path: Path) -> None:
    values = RNG.random((N, D))
    _service(tmp_path, pictures=4).score(_submission(RELEASED, _guess(N, "ls", values)), RELEASED)
    with np.load(tmp_path / "pictures.npz") as saved:
        np.testing.assert_array_equal(saved["rows"], RELEASED[:4])
        np.testing.assert_array_equal(saved["original"], TRUTH[RELEASED[:4]])
        np.testing.assert_array_equal(saved["estimate:ls"], values[:4])
    _service(tmp_path / "none", pictures=0).score(_submission(), RELEASED)
    assert not (tmp_path / "none" / "pictures.npz").exists()


def test_attacks_stop_at_the_attacked_rows_and_utility_does_not(tmp_path: Path) -> None:
    local = federation(tmp_path, attacked_rows=10)
    local.run()
    rows = {
        m.name: m.rows
        for folder in (local.passive["passive"].folder, local.active.folder)
        for m in read_party(folder).metrics
    }
    assert (rows[Name.MSE], rows[Name.ACCURACY]) == (10, 18)


@pytest.mark.parametrize("rows", [49, 60, 250])
def test_outside_the_lab_as_many_rows_are_attacked_as_are_scored(tmp_path: Path, rows: int) -> None:
    with pytest.raises(ConfigError, match=rf"attacked_rows = {rows}: outside lab mode a target scores 50"):
        federation(tmp_path, attacked_rows=rows, lab=False)


def test_two_settings_of_one_attack_are_scored_apart(tmp_path: Path) -> None:
    attacks = [{"name": "gia", "steps": 1}, {"name": "gia:long", "steps": 200}]
    local = federation(tmp_path, attacks=attacks)
    local.run()
    found = figures(local.passive["passive"].folder)
    assert found["mse", "gia:long", ""] != found["mse", "gia", ""]


# --- worst cases


def test_cells_rows_and_unique_rows_within_the_tolerance_and_the_most_exposed_rows(tmp_path: Path) -> None:
    truth = TRUTH.copy()
    truth[:, 2] = np.arange(200) % 2
    truth[RELEASED[3]] = truth[RELEASED[4]]  # two rows that are alike
    values = truth[RELEASED] + [0.04, -0.04, 0.3]
    values[10:, 0] += 0.2
    service = _service(tmp_path, truth)
    reply = _answer(service.score, _submission(RELEASED, _guess(N, "a", values)), RELEASED)
    found = {(m, a): v for (m, a, _), v in figures(tmp_path).items()}
    inside = np.clip(values, 0, 1)
    near = np.abs(inside - truth[RELEASED]) <= [0.05, 0.05, 0.4999]
    assert found["cells_found", "a"] == pytest.approx(near.mean())
    assert found["rows_found", "a"] == pytest.approx(near.all(axis=1).mean())
    assert 0 < found["rows_unique", "a"] <= found["rows_found", "a"] - 2 / N
    errors = ((inside - truth[RELEASED]) ** 2).mean(axis=1)
    assert found["exposed_mse", "a"] == pytest.approx(errors.min())
    kept = json.loads((tmp_path / "exposed.json").read_text(encoding="utf-8"))
    assert kept == {"predict": {"a": [int(RELEASED[errors.argmin()])]}}
    assert reply == b"\x08\x3c\x10\x01"  # 60 rows, one attack, and nothing of these
