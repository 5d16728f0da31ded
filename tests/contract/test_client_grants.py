"""What a client grants of single rows is what a training batch sees of them, behind every defence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import rebuild
from defensecases import CLASSES, NAMES
from horizontal import clients_of, deal, federation, server_of, table
from laboratory import close
from oneprocess import LocalFederation
from scipy.special import softmax

from vflens.clients.horizontal.client import Client
from vflens.numerics.gradients.first_layer import layer_input
from vflens.plugins.defense import BATCH_HOOKS
from vflens.protocol.acts import Disclose
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.roles import ROLES
from vflens.tables.table import Table
from vflens.types import Array, Exchange, Phase, Point, Released, Role

ROWS = 300
TABLES = {"a": table(ROWS + 6, 1)}
GRANTS = [{"what": what, "to": "server", "rows": 24} for what in ("embeddings", "gradients")]
PRIVATE: dict[str, Any] = {
    "horizontal": {"rounds": 2, "method": "lg_fedavg"},
    "training": {"optimizer": "sgd", "batch_size": 32, "learning_rate": 0.01},
    "model": {"architecture": "mlp", "width": 64, "top": [64], "precision": "float64"},
}
#: The exchange of grants: a round that never was.
BATCH = Exchange("tiny/run", Phase.TRAIN, 2, 0)
AT_CLIENTS = [name for name in NAMES if CLASSES[name].hooks() & ROLES[Role.CLIENT].hooks]
ON_BATCHES = [name for name in AT_CLIENTS if CLASSES[name].hooks() & set(BATCH_HOOKS)]
IN_MODELS = [name for name in AT_CLIENTS if "wrap_model" in CLASSES[name].hooks()]


@dataclass
class Granted:
    """``x`` (n, d) and ``y`` (n, k) before the defences of batches, ``h`` (n, w), ``gradients`` by name."""

    client: Client
    rows: Array
    x: Array
    y: Array
    h: Array
    gradients: dict[str, Array]

    @property
    def inputs(self) -> Array:
        """The rows (n, d) that the gradients were computed on."""
        return layer_input(self.gradients["bottom.0.weight"], self.gradients["bottom.0.bias"])[0]

    @property
    def probabilities(self) -> Array:
        """(n, k), which the top model gives of ``h``."""
        top = self.client.run.model.parameters()
        hidden = np.maximum(np.maximum(self.h, 0) @ top["top.1.weight"].T + top["top.1.bias"], 0)
        p: Array = softmax(hidden @ top["top.3.weight"].T + top["top.3.bias"], axis=1)
        return p


def _run(folder: Path, *defenses: dict[str, Any], rows: int = 24, **settings: Any) -> LocalFederation:
    grants = [{**grant, "rows": rows} for grant in GRANTS]
    tables: dict[str, Table] = settings.pop("tables", TABLES)
    made = federation(deal(folder, tables, defenses=defenses, disclose=grants, **{**PRIVATE, **settings}))
    made.run()
    return made


def _granted(local: LocalFederation) -> Granted:
    def found(point: Point) -> Released:
        sent = server_of(local).transcript.select(point)
        return next(r for r in sent if r.sender == "a" and r.exchange.phase is Phase.DISCLOSE)

    client, h, g = clients_of(local)["a"], found(Point.EMBEDDING), found(Point.GRADIENT)
    x, y = client.run.inputs[h.rows], client.run.soft_labels[h.rows]
    return Granted(client, h.rows, x, y, h.tensor("embedding"), {n: g.tensor(n) for n in g.tensors or {}})


def _configured(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A defence, and the method that it may act in."""
    if "on_received" in CLASSES[name].hooks():  # its labels are false in some batches: here in nearly all
        return {"name": name, "start": 0, "share": 0.99}, {"horizontal": {"rounds": 2, "method": "splitfed"}}
    return {"name": name}, {}


@pytest.fixture(scope="module")
def granted_by(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str | None], Granted]:
    """What a client with this defence, or without any, granted."""

    @cache
    def of(name: str | None) -> Granted:
        defense, method = ({}, {}) if name is None else _configured(name)
        local = _run(tmp_path_factory.mktemp("run"), *([defense] if defense else []), **method)
        found = _granted(local)
        close(local)
        return found

    return of


def test_there_are_such_defences() -> None:
    assert len(ON_BATCHES) >= 3
    assert len(IN_MODELS) >= 3


@pytest.mark.parametrize("name", ON_BATCHES)
def test_a_grant_is_of_the_batch_that_the_defence_leaves(
    granted_by: Callable[[str | None], Granted], name: str
) -> None:
    """A defence is known by its hooks alone: of inputs, of labels, or both."""
    granted, hooks = granted_by(name), CLASSES[name].hooks()
    fold, rows = granted.client.chain.fold, granted.rows
    x, y = fold("on_batch", granted.x, BATCH, rows), fold("on_batch_labels", granted.y, BATCH, rows)
    p = granted.probabilities
    np.testing.assert_allclose(granted.inputs, x, atol=1e-6)
    np.testing.assert_allclose(granted.gradients["top.3.bias"], y.sum(axis=1)[:, None] * p - y, atol=1e-9)
    assert (np.abs(x - granted.x).max() > 0.1) == ("on_batch" in hooks)
    assert (np.abs(y - granted.y).max() > 0.1) == ("on_batch_labels" in hooks)


@pytest.mark.parametrize("defense", [None, *IN_MODELS, *ON_BATCHES])
def test_embeddings_and_gradients_are_of_one_batch(
    granted_by: Callable[[str | None], Granted], defense: str | None
) -> None:
    """The top model's gradient shows what it read: the granted embedding, with the same draws."""
    granted = granted_by(defense)
    read, _ = layer_input(granted.gradients["top.1.weight"], granted.gradients["top.1.bias"])
    np.testing.assert_allclose(read, np.maximum(granted.h, 0), atol=1e-9)


@pytest.mark.parametrize("name", IN_MODELS)
def test_layers_of_training_alone_act_on_what_is_granted(
    granted_by: Callable[[str | None], Granted], name: str
) -> None:
    granted = granted_by(name)
    predicted = granted.client.run.model.embeddings(granted.x, Exchange("tiny/run", Phase.PREDICT, 1, 0))
    assert np.abs(granted.h - predicted).max() > 1e-3


def test_rows_have_noise_and_dropout_of_their_own(tmp_path: Path) -> None:
    """Rows are alike, what leaves is not."""
    x = np.repeat(TABLES["a"].features[:1], len(TABLES["a"].ids), axis=0)
    tables = {"a": replace(TABLES["a"], features=x)}
    dropout = {**PRIVATE["model"], "hidden": [64], "dropout": 0.5}
    for folder, defenses, model in (("mid", [{"name": "mid"}], PRIVATE["model"]), ("dropout", [], dropout)):
        local = _run(tmp_path / folder, *defenses, tables=tables, model=model)
        h = _granted(local).h
        assert len(np.unique(h.round(12), axis=0)) > len(h) / 2
        close(local)


def test_a_client_that_was_restarted_grants_the_same(tmp_path: Path) -> None:
    local = _run(tmp_path, {"name": "instahide"})
    before = _granted(local)
    rebuild(local, "a")
    embeddings, gradients = clients_of(local)["a"].disclose(Disclose("tiny/run", MODEL_VERSION, "server"))
    assert embeddings.tensor("embedding").tobytes() == before.h.tobytes()
    assert all(gradients.tensor(n).tobytes() == g.tobytes() for n, g in before.gradients.items())
    close(local)


# -- each claim, from what was granted alone ------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in ON_BATCHES if CLASSES[n]().claim({}).noise_std is not None])
def test_the_noise_of_granted_labels_is_the_claimed_noise(tmp_path: Path, name: str) -> None:
    """M u, M = I − p 1ᵀ, is what shows of noise u: its whitened squares have the claimed variance."""
    std = CLASSES[name]().claim({}).noise_std
    assert std is not None

    def as_claimed(granted: Granted) -> bool:
        p = granted.probabilities
        left = p - granted.y - granted.gradients["top.3.bias"]
        shown = np.eye(p.shape[1]) - p[:, :, None]
        inverse = np.linalg.pinv(shown @ shown.transpose(0, 2, 1), rcond=1e-9, hermitian=True)
        variance = np.einsum("ni,nij,nj->n", left, inverse, left).mean() / (p.shape[1] - 1)
        return bool(0.7 < variance / std**2 < 1.4)

    found = {}
    for folder, defenses in (("noisy", [{"name": name}]), ("clear", [])):
        local = _run(tmp_path / folder, *defenses, rows=ROWS)
        found[folder] = as_claimed(_granted(local))
        close(local)
    assert found == {"noisy": True, "clear": False}


def _is_mixture(x: Array, y: Array, i: int, centred: Array, labels: Array) -> bool:
    """Whether |x| (d,) is that of λ·centred_i + (1 − λ)·centred_j, j ≠ i, .35 ≤ λ ≤ .65, and ``y`` alike."""
    for j, sign in product(np.delete(np.arange(len(centred)), i), (-1, 1)):
        a, b = centred[i], centred[j]
        weight = (sign * abs(x[0]) - b[0]) / (a[0] - b[0])
        fits = np.allclose(np.abs(weight * a + (1 - weight) * b), np.abs(x), atol=1e-6)
        alike = np.allclose(weight * labels[i] + (1 - weight) * labels[j], y, atol=1e-6)
        if fits and alike and 0.35 - 1e-6 <= weight <= 0.65 + 1e-6:
            return True
    return False


@pytest.mark.parametrize("defended", [True, False])
def test_rows_granted_behind_instahide_are_mixtures_with_signs(tmp_path: Path, defended: bool) -> None:
    """Read from the gradients: two rows of the batch, weights of .35 to .65, labels mixed alike."""
    local = _run(tmp_path, *([{"name": "instahide", "mixed": 2}] if defended else []))
    granted = _granted(local)
    everybody = granted.client.run.inputs
    mean = everybody[np.arange(len(everybody))].mean()
    x, y = granted.inputs, granted.probabilities - granted.gradients["top.3.bias"]
    found = [_is_mixture(x[i], y[i], i, granted.x - mean, granted.y) for i in range(len(x))]
    assert set(found) == {defended}
    assert ({-1.0, 1.0} <= set(np.sign(x).ravel())) == defended
    close(local)
