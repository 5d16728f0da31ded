"""How many rows a round sends: the sentence on made-up records, the way there against autograd."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, linear

import vflens.cli.main
from vflens.errors import ConfigError
from vflens.experiments.outcome import batches
from vflens.experiments.outcome.batches import Round, fresh, inverted, rounds, sent, update_gradient
from vflens.types import Array

BANK = Path(__file__).parents[4] / "examples" / "bank_passive.csv"

SENTENCES = [
    (
        [(4, 20, 20), (8, 40, 40), (24, 120, 0)],
        "Rounds of 8 rows send 8 rows; from 24 on none here was found.",
    ),
    ([(1, 5, 5), (2, 10, 10)], "Rounds of 2 rows send 2 rows; larger ones were not tried."),
    ([(1, 5, 0), (2, 10, 0)], "Of rounds of 1 to 2 rows none here was found."),
    (
        [(4, 20, 20), (8, 40, 16), (12, 60, 0)],
        "Rounds of 4 rows send 4 rows; 8 rows send 3.2 on average; from 12 on none here was found.",
    ),
    ([(4, 20, 4), (8, 40, 0)], "Rounds of 4 rows send 0.8 on average; from 8 on none here was found."),
    (
        [(2, 10, 10), (4, 20, 0), (8, 40, 40), (12, 60, 0)],
        "Rounds of 2 rows send 2 rows; 8 rows send 8 rows; from 12 on none here was found.",
    ),
]


@pytest.mark.parametrize(("records", "sentence"), SENTENCES)
def test_the_sentence(records: list[tuple[int, int, int]], sentence: str) -> None:
    assert sent([Round(*record) for record in records]) == sentence


def _rows(n: int) -> Array:
    return np.random.default_rng(1).integers(0, 2, (n, 25)).astype(float)


def test_the_update_is_that_of_a_step_of_gradient_descent() -> None:
    x, labels, rng = _rows(6), np.array([0, 1, 2, 0, 1, 2]), np.random.default_rng(2)
    layers = fresh((25, 14, 9, 3), rng)
    free = [torch.tensor(part, requires_grad=True) for layer in layers for part in layer]
    z = torch.tensor(x)
    for number in range(3):
        z = linear(torch.relu(z) if number else z, free[2 * number], free[2 * number + 1])
    taken = torch.autograd.grad(cross_entropy(z, torch.tensor(labels)), free[:2])
    for precision, near in (("float64", 1e-12), ("float32", 1e-4)):
        weight, bias = update_gradient(x, labels, layers, 0.05, precision)
        np.testing.assert_allclose(weight, taken[0].numpy(), rtol=0, atol=near)
        np.testing.assert_allclose(bias, taken[1].numpy(), rtol=0, atol=near)


def test_rows_that_are_found_are_counted_and_no_others() -> None:
    x, rng = _rows(6), np.random.default_rng(2)
    layers = fresh((25, 100, 100, 2), rng)
    assert inverted(x, np.array([0, 1, 0, 1, 1, 0]), layers, rng) == 6
    assert inverted(_rows(60), np.zeros(60, int), layers, rng) == 0


def test_it_ends_where_findings_end_and_begins_with_rows_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal rows need no attack, and few leave the larger rounds untried."""
    for x in (_rows(5), np.ones((200, 25))):
        with pytest.raises(ConfigError, match=r"up to 32 different rows, too many for the [15] of"):
            next(rounds(x, 2, 0))
    monkeypatch.setattr(batches, "inverted", lambda x, *given: 0)
    assert [one.batch for one in rounds(_rows(40), 2, 0)] == [1, 2]


def _vflens(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["vflens", "audit", str(BANK), "--batches", *arguments])
    try:
        vflens.cli.main.command_line()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(batches, "SIZES", (1, 2))
    given = ["--classes", "2", "--columns", "age,income,credit_score"]
    assert _vflens(monkeypatch, *given) == 0
    text = capsys.readouterr().out
    assert _vflens(monkeypatch, *given, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert text.startswith(found["verdict"])
    assert [one["batch"] for one in found["rounds"]] == [1, 2]
    assert found["rounds"][0] == {"batch": 1, "rows": 5, "found": 5}


def test_what_it_does_not_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _vflens(monkeypatch, "--classes", "2", "--weights", "m.npz") == 2
    assert "--batches inverts rounds and nothing else: leave out --weights" in capsys.readouterr().err
