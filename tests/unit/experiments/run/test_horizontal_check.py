"""``vflens check`` of a horizontal experiment, in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from vflens.errors import ConfigError, KnowledgeError
from vflens.experiments.run.check import check

FILE = """
name = "tiny"
[data]
name = "synthetic"
rows = 60
features = 5
classes = 3
informative = 3
[split]
kind = "rows"
[parties]
clients = 2
[horizontal]
rounds = 2
"""
MLP = '\n[model]\narchitecture = "mlp"\nhidden = [7]\nwidth = 6\ntop = [4]\n'


def checked(folder: Path, text: str) -> dict[str, object]:
    file = folder / "experiment.toml"
    file.write_text(text, encoding="utf-8")
    return dict(check(file))


def test_what_the_model_takes_is_described(tmp_path: Path) -> None:
    layers = torch.nn.Linear(5, 7), torch.nn.Linear(7, 6), torch.nn.Linear(6, 4), torch.nn.Linear(4, 3)
    count = sum(p.numel() for layer in layers for p in layer.parameters())
    found = checked(tmp_path, FILE + MLP)
    assert str(found["model"]).startswith(f"{count} parameters, an update of {4 * count / 2**20:.2g} MiB ")
    assert found["rows"] == "48 to train, 12 to predict at 2 clients"


def test_the_model_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ConfigError("no layer of this name")

    monkeypatch.setattr("vflens.models.networks.training.bottom", missing)
    with pytest.raises(ConfigError, match=r"^no layer of this name$"):
        checked(tmp_path, FILE + MLP)


@pytest.mark.parametrize("alpha", ["true", "1e308", "1e-9", "0", "-1", "nan", "inf", '"0.5"'])
def test_a_dirichlet_law_that_cannot_be_drawn_is_refused(tmp_path: Path, alpha: str) -> None:
    text = FILE.replace('kind = "rows"', f'kind = "rows"\nalpha = {alpha}')
    with pytest.raises(ConfigError, match=r"split\.alpha: give .* \(got "):
        checked(tmp_path, text)


def test_a_client_without_rows_is_refused(tmp_path: Path) -> None:
    text = FILE.replace('kind = "rows"', 'kind = "rows"\nalpha = 0.001').replace("clients = 2", "clients = 9")
    with pytest.raises(ConfigError, match=r"^client 'client-\d' gets \d+ training .* raise split\.alpha, or"):
        checked(tmp_path, text)


def test_clients_without_rounds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"parties\.clients without a table \[horizontal\]: add it"):
        checked(tmp_path, FILE.replace("[horizontal]\nrounds = 2", ""))


def test_a_wrong_name_among_many_clients_is_one_short_sentence(tmp_path: Path) -> None:
    at = '\n[[scenarios]]\nname = "run"\ndefenses = [{ name = "dp_gaussian", at = "client-1" }]\n'
    with pytest.raises(
        ConfigError, match=r"party 'client-1' is none of client-01, client-02, .*, did you mean client-"
    ) as refused:
        checked(tmp_path, FILE.replace("clients = 2", "clients = 60") + at)
    assert "client-30" not in str(refused.value)


GRANTED_GRADIENTS = """
[[attacks]]
name = "wgi_moments"
[[disclose]]
what = "gradients"
to = "server"
rows = 4
[[disclose]]
what = "moments"
to = "server"
"""
ONE_LAYER = MLP.replace("[7]", "[]")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (MLP, "wgi_moments needs an 'mlp' whose bottom model is one layer"),
        (ONE_LAYER.replace("[4]", "[]"), None),
        (ONE_LAYER, None),
        ("", "the federation trains softmax regression: this attack is made for split networks"),
    ],
    ids=["two layers", "one layer", "one layer and a deep top", "softmax regression"],
)
def test_an_attack_on_another_model_is_refused(tmp_path: Path, model: str, words: str | None) -> None:
    text = FILE + GRANTED_GRADIENTS + model
    if words is None:
        assert "wgi_moments" not in str(checked(tmp_path, text)["model"])
        return
    remedy = "train such a model, or leave it out"
    with pytest.raises(KnowledgeError, match=f"^attack 'wgi_moments' would never run: {words}: {remedy}$"):
        checked(tmp_path, text)


GRANTS = {
    "rows = 25": (
        'what = "labels"\nrows = 25',
        "25 rows with their truth and 0 to attack are more than its 24 training",
    ),
    "parameters": ('what = "parameters"', "disclose parameters at 'client-1': the server has all of them"),
}


@pytest.mark.parametrize("grant", GRANTS)
def test_a_grant_that_a_client_would_refuse_is_refused(tmp_path: Path, grant: str) -> None:
    table, sentence = GRANTS[grant]
    with pytest.raises(ConfigError, match=sentence):
        checked(tmp_path, f'{FILE}\n[[disclose]]\nto = "server"\n{table}\n')
