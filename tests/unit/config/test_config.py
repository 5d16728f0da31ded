"""Configurations: every refusal names the field, and no message holds a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w
from laboratory import experiment
from pydantic import TypeAdapter

from vflens.config import (
    ActiveConfig,
    CoordinatorConfig,
    PartyConfig,
    PassiveConfig,
    Plugin,
    build_plugins,
    load_party,
    validate,
)
from vflens.errors import ConfigError, PluginError
from vflens.experiments.run.loading import load_experiment
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.families.split_network import SplitNetwork
from vflens.models.family import ModelFamily
from vflens.registry import ATTACKS, DEFENSES
from vflens.storage.private import write_private

SECRET = "SECRET-of-32-or-more-characters-in-all"


Config = dict[str, Any]


def _peer(name: str, role: str, **changes: Any) -> Config:
    address = f"127.0.0.1:{7100 + sum(name.encode())}"  # its own; nobody listens here
    return {"name": name, "role": role, "address": address, "token": f"{SECRET}-{name}", **changes}


def _party(role: str, *peers: Config, **changes: Any) -> Config:
    common = {"party": role, "role": role, "run": "r", "address": "127.0.0.1:7001", "out": "runs"}
    return {**common, "seed": f"{SECRET}-seed", "peers": list(peers), **changes}


def _data(**changes: Any) -> Config:
    return {"data": {"file": "data.csv", **changes}, "alignment_key": f"{SECRET}-key"}


def passive(**changes: Any) -> Config:
    peers = (_peer("coordinator", "coordinator"), _peer("active", "active"))
    return {**_party("passive", *peers), **_data(), **changes}


def active(**changes: Any) -> Config:
    peers = (_peer("coordinator", "coordinator"), _peer("passive", "passive"))
    return {**_party("active", *peers), **_data(label_column="y"), **changes}


def coordinator(**changes: Any) -> Config:
    return {**_party("coordinator", _peer("active", "active"), _peer("passive", "passive")), **changes}


def _load(folder: Path, config: Config) -> PartyConfig:
    file = folder / "config.toml"
    write_private(file, tomli_w.dumps(config))
    return load_party(file)


def test_whole_configurations_are_loaded(tmp_path: Path) -> None:
    loaded = [_load(tmp_path, config) for config in (passive(), active(), coordinator())]
    assert [type(c) for c in loaded] == [PassiveConfig, ActiveConfig, CoordinatorConfig]
    assert all(c.out == tmp_path / "runs" for c in loaded)
    assert isinstance(loaded[0], PassiveConfig)
    assert loaded[0].data.file == tmp_path / "data.csv"
    assert [p.name for p in loaded[0].peers] == ["coordinator", "active"]


REFUSED: list[tuple[Config, str]] = [
    (passive(defences=[]), "defences: there is no such setting"),
    (passive(limits={"wait_second": 3}), "wait_second: there is no such setting, did you mean wait_seconds"),
    (passive(limits={"wait_seconds": 0}), r"limits.wait_seconds: give more than 0 \(got 0\)"),
    (passive(limits={"checkpoint_steps": 0}),
            "limits.checkpoint_steps: give 1 or more"),
    (passive(limits={"message_mib": 2048}), "limits.message_mib: give 2047 or less"),
    (passive(party="../up"), r"party: give 1 to 64 letters, .* first \(got '../up'\)"),
    (passive(party=""), "party: give 1 to 64 letters, digits"),
    (passive(run=""), "run: give a text of length 1 or more"),
    (passive(seed=""), "seed: give a text of length 1 or more$"),
    (passive(alignment_key="short"), "alignment_key: give a text of length 16 or more$"),
    (passive(align={"mode": "plain"}), "align.mode: give 'psi' or 'hmac'"),
    (active(operator_token="short"), "operator_token: give a text of length 16 or more$"),
    (
        passive(peers=[_peer("coordinator", "coordinator", token="short")]),
        r"peers.0.token: give a text of length 16 or more$",
    ),
    (
        passive(peers=[_peer("coordinator", "operator")]),
        r"peers.0.role: a party is .* or server \(got 'operator'\)",
    ),
    (
        passive(peers=[_peer("coordinator", "coordinator"), _peer("coordinator", "active")]),
        "party 'coordinator' is named twice: give every party its own name",
    ),
    (
        passive(peers=[_peer("coordinator", "coordinator"), _peer("passive", "passive")]),
        "party 'passive' is named twice",
    ),
    (
        passive(peers=[_peer("c1", "coordinator"), _peer("c2", "coordinator")]),
        "peers name 2 parties with role 'coordinator': exactly one is needed",
    ),
    (
        passive(peers=[_peer("coordinator", "coordinator"), _peer("operator", "active")]),
        "party 'operator': this name is reserved for operators, choose another",
    ),
    (
        passive(
            peers=[_peer("coordinator", "coordinator"), _peer("active", "active", address="127.0.0.1:7001")]
        ),
        "address '127.0.0.1:7001' is given twice: every party listens at its own",
    ),
    (
        passive(address="10.0.0.1:7001", seed="example-seed"),
        "seed begins with 'example-' and address '10.0.0.1:7001' is not on this machine",
    ),
    (
        passive(disclose=[{"what": "parameters", "to": "other"}]),
        r"disclose.to = 'other' is no peer that takes disclosures: name one of \['coordinator', 'active'\]",
    ),
    (passive(peers=[_peer("coordinator", "coordinator", token=SECRET + "\n")]),
            "peers.0.token: give visible ASCII characters only"),
    (passive(peers=[_peer("coordinator", "coordinator", token="t" * 257)]),
            "peers.0.token: give a text of length 256 or less"),
    (
        passive(
            peers=[
                _peer("coordinator", "coordinator", token=SECRET),
                _peer("active", "active", token=SECRET),
            ]
        ),
        "peers.active.token is the same as peers.coordinator.token: give every pair of parties and every "
        "purpose",
    ),
    (passive(alignment_key=f"{SECRET}-coordinator"), "alignment_key is the same as peers.coordinator.token"),
    (active(operator_token=f"{SECRET}-passive"), "operator_token is the same as peers.passive.token"),
    (passive(out="a\0b"), "config.toml: out: the text holds the character NUL: remove it"),
    (
        passive(peers=[_peer("coordinator", "coordinator", address="unix:/tmp/a\0")]),
        "peers: address: the text holds the character NUL",
    ),
    (
        passive(data={"file": "data.csv", "pixels": {"x": [-1, 4096]}}),
        "data.pixels.x.0: give 0 or more .*; data.pixels.x.1: give [0-9]+ or less",
    ),
    (
        passive(data={"file": "data.csv", "pixels": {"x": [1], "y": [0, 1, 2, 3]}}),
        "data.pixels.x: give a list of length 2 or more; data.pixels.y: .* length 3 or less",
    ),
    (
        passive(data={"file": "data.csv", "bounds": {"x": [-1.7e308, 1.7e308]}}),
        r"bounds.x = \[-1.7e\+308, 1.7e\+308\]: no number is as large as their distance",
    ),
    (passive(limits={"step_seconds": 1e7}),
            "limits.step_seconds: give 1000000 or less"),
    (passive(peers=[]), "peers name 0 parties with role 'coordinator': exactly one is needed"),
    (
        passive(disclose=[{"what": "auxiliary", "to": "active"}]),
        r"disclose.0: disclose 'auxiliary' with rows = 0: rows \(at least 1\) belong to all but "
        r"parameters and moments, and only there",
    ),
    (
        passive(disclose=[{"what": "parameters", "to": "active", "rows": 3}]),
        "disclose.0: disclose 'parameters' with rows = 3",
    ),
    (
        passive(disclose=[{"what": "columns", "to": "active"}]),
        r"disclose.0.what: give 'parameters', 'auxiliary', 'moments', 'labels', "
        r"'embeddings', 'gradients' or 'candidates' \(got 'columns'\)",
    ),
    (
        passive(disclose=[{"what": "labels", "to": "active", "rows": 3}]),
        r"disclose labels at passive '\w+': the active party has them",
    ),
    (passive(scoring={"pictures": -1}), "scoring.pictures: give 0 or more"),
    (
        active(data={"file": "data.csv"}),
        "data.label_column is missing: the active party holds the labels, name their column",
    ),
    (active(peers=[_peer("passive", "passive")]), "peers name 0 parties with role 'coordinator'"),
    (
        active(attacks=[{"name": "half"}, {"name": "ls"}, {"name": "half"}]),
        "attack 'half' is configured twice: results are kept by its name",
    ),
    (active(predict_batch=0), "predict_batch: give 1 or more"),
    (active(data={"label_column": "y"}), "data.file: it is missing"),
    (
        coordinator(training={"epochs": 4}, transcript={"every": 3}),
        "transcript.every = 3 of 4 epochs leaves out the last: choose a divisor",
    ),
    (coordinator(peers=[_peer("active", "active")]),
            "peers name no passive party: a federation needs at least one"),
    (
        coordinator(peers=[_peer("passive", "passive")]),
        "peers name 0 parties with role 'active': exactly one is needed",
    ),
    (
        coordinator(peers=[_peer("a", "active"), _peer("b", "active"), _peer("passive", "passive")]),
        "peers name 2 parties with role 'active': exactly one is needed",
    ),
    (coordinator(predict_share=1.0), "predict_share: give less than 1"),
    (coordinator(training={"optimizer": "lbfgs"}), r"training.optimizer: .* \(got 'lbfgs'\)"),
    (coordinator(training={"learning_rate": 0}), "training.learning_rate: give more than 0"),
    (coordinator(training={"learning_rate": float("inf")}),
            "training.learning_rate: give a finite number"),
    (coordinator(training={"epochs": 0}), "training.epochs: give 1 or more"),
    (coordinator(training={"momentum": 0.9}), "training.momentum: there is no such setting"),
    (coordinator(role="judge"), "role is 'judge': a party is passive, active, coordinator, client or server"),
    ({"party": "p"}, "role is missing: a party is passive, active, coordinator, client or server"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_refusals_name_the_field_and_no_secret(tmp_path: Path, config: Config, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as refused:
        _load(tmp_path, config)
    assert str(refused.value).startswith(f"{tmp_path / 'config.toml'}: ")
    assert "SECRET" not in str(refused.value)
    assert "short" not in str(refused.value)


@pytest.mark.parametrize("misspelt", ["sed", "opertor_tokn", "aligment"])
def test_a_misspelt_secret_is_not_shown(tmp_path: Path, misspelt: str) -> None:
    with pytest.raises(ConfigError, match=f"{misspelt}: there is no such setting") as refused:
        _load(tmp_path, passive(**{misspelt: SECRET}))
    assert SECRET not in str(refused.value)


def test_a_byte_order_mark_is_no_setting_and_paths_are_short(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    write_private(file, "\ufeff" + tomli_w.dumps(passive(out="below/../runs", data={"file": "../data.csv"})))
    loaded = load_party(file)
    assert isinstance(loaded, PassiveConfig)
    assert (loaded.out, loaded.data.file) == (
        tmp_path.resolve() / "runs",
        tmp_path.resolve().parent / "data.csv",
    )


def test_sockets_are_found_from_the_file_wherever_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    peers = [_peer("coordinator", "coordinator", address="unix:../c/s"), _peer("active", "active")]
    loaded = _load(tmp_path, passive(address="unix:socket", peers=peers))
    above = tmp_path.resolve()
    assert loaded.address == f"unix:{above}/socket"
    assert [p.address for p in loaded.peers] == [f"unix:{above.parent}/c/s", peers[1]["address"]]
    for absolute in ("unix:/run/vflens/s", "unix:///run/vflens/s", "[::1]:7001"):
        assert _load(tmp_path, passive(address=absolute)).address == absolute


def test_a_file_that_is_absent_or_no_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"config.toml cannot be read \(No such file or directory\): check the path"
    ):
        load_party(tmp_path / "config.toml")
    for text in (b"party = ", b"\xff"):
        (tmp_path / "config.toml").write_bytes(text)
        with pytest.raises(ConfigError, match=r"config.toml is not TOML: "):
            load_party(tmp_path / "config.toml")


def test_plugins_are_built_in_order_with_their_parameters() -> None:
    noise = Plugin.model_validate({"name": "gaussian_scores", "sigma": 0.25})
    rounding = Plugin.model_validate({"name": "round_scores", "digits": 3})
    (first, rounded), (second, noisy) = build_plugins(DEFENSES, [rounding, noise])
    assert (first, second) == ("round_scores", "gaussian_scores")
    assert [type(d).__name__ for d in (rounded, noisy)] == ["RoundScores", "GaussianScores"]
    assert (rounded.digits, noisy.sigma) == (3, 0.25)


@pytest.mark.parametrize(
    ("plugin", "error", "sentence"),
    [
        ({"name": "gaussian"}, PluginError,
                "unknown defenses plug-in 'gaussian', did you mean .*gaussian_scores"),
        ({"name": "gaussian_scores", "sigma": 0}, ConfigError,
                r"^defenses plug-in 'gaussian_scores': sigma: .* \(got 0\)"),
        ({"name": "gaussian_scores", "std": 1}, ConfigError, "std: there is no such setting"),
    ],
)  # fmt: skip
def test_wrong_plugins_are_refused(plugin: Config, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        build_plugins(DEFENSES, [Plugin.model_validate(plugin)])


def test_an_attack_that_does_not_exist_lists_those_that_do() -> None:
    with pytest.raises(PluginError, match=r"unknown attacks plug-in 'magic': known are .*half_star"):
        build_plugins(ATTACKS, [Plugin(name="magic")])


# --- experiments

WRONG: list[tuple[Config, str]] = [
    ({"data": None}, r"give either \[data\] with \[split\], or \[files.PARTY\] for every data party"),
    ({"files": {"active": {"file": "a.csv"}}}, r"give either \[data\] with \[split\]"),
    ({"split": None}, "split is missing: say who holds which columns"),
    (
        {"data": None, "split": None, "files": {"active": {"file": "a.csv"}}},
        r"files names \['active'\], the data parties are \['active', 'passive'\]",
    ),
    ({"parties": {"passive": ["a", "a"]}},
            r"parties \['a', 'a', 'active', 'coordinator'\]: give every party its own"),
    ({"parties": {"active": "coordinator"}}, "give every party its own name"),
    ({"parties": {"active": "a/b"}}, r"parties.active: give 1 to 64 letters, .* first \(got 'a/b'\)"),
    ({"parties": {"passive": []}}, "parties.passive: "),
    (
        {"disclose": [{"what": "parameters", "to": "nobody"}]},
        "party 'nobody' is none of passive, active, coordinator",
    ),
    ({"disclose": [{"what": "parameters", "to": "active", "by": "nobody"}]}, "party 'nobody' is none of"),
    ({"scenarios": [{"name": "s", "defenses": [{"name": "label_only", "at": "x"}]}]}, "party 'x' is none of"),
    ({"disclose": [{"what": "parameters", "to": "activ"}]},
            r"party 'activ' is none of .*, did you mean active\?$"),
    ({"scenarios": [{"name": "s", "defenses": [{"name": "label_only"}]}]},
            "scenarios.0.defenses.0.at: it is missing"),
    ({"scenarios": [{"name": "a b"}, {"name": "a b"}]}, "give every scenario its own name"),
    ({"scenarios": [{"name": "a b"}, {"name": "a-b"}]}, "give every scenario its own name"),
    ({"scenarios": []}, "scenarios: "),
    ({"attacks": [{"name": "ls"}, {"name": "ls"}]}, "attack 'ls' is configured twice"),
    ({"name": "../x"}, r"name: give 1 to 64 letters, .* or spaces, a letter or digit first \(got '../x'\)"),
    ({"overlap": 0}, "overlap: give more than 0"),
    ({"epochs": 3}, "epochs: there is no such setting"),
    ({"split": {"kind": "fraction", "fraction": 1.0}},
            "split.fraction: give less than 1"),
    ({"aggregator": "active"},
            r"aggregator = 'active': softmax regression releases its scores at"),
    ({"training": {"staleness": 1}},
            "training.staleness = 1 needs aggregator = 'active': through the coordinator every"),
    ({"training": {"staleness": 2}}, "training.staleness: give 1 or less"),
    ({"aggregator": "passive"}, "aggregator: give 'coordinator' or 'active'"),
    ({"after": "leave"}, r"after: give 'stop' or 'serve' \(got 'leave'\)"),
]  # fmt: skip


def test_a_model_is_named_by_its_family_or_by_default(tmp_path: Path) -> None:
    whole = experiment(tmp_path).model_dump(mode="json", exclude={"model"}, exclude_none=True)

    def model(**settings: Any) -> ModelFamily:
        return validate(TypeAdapter(Experiment), {**whole, **settings}, "experiment.toml").model

    assert model() == model(model={"family": "softmax_regression"}) == SOFTMAX_REGRESSION
    network = SplitNetwork(architecture="mlp", width=5)
    assert model(model={"architecture": "mlp", "width": 5}) == network
    assert model(model=network.model_dump(mode="json")) == network
    with pytest.raises(PluginError, match="unknown models plug-in 'trees': known are linear_reg"):
        model(model={"family": "trees"})


@pytest.mark.parametrize(("changes", "sentence"), WRONG, ids=range(len(WRONG)))
def test_wrong_experiments_are_refused(tmp_path: Path, changes: Config, sentence: str) -> None:
    whole = experiment(tmp_path).model_dump(mode="json")
    whole = {k: v for k, v in {**whole, **changes}.items() if v is not None}
    with pytest.raises(ConfigError, match=sentence):
        validate(TypeAdapter(Experiment), whole, "experiment.toml")


def test_the_files_of_an_experiment_lie_beside_it(tmp_path: Path) -> None:
    files = {name: {"file": f"{name}.csv"} for name in ("active", "passive")}
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps({"name": "own", "files": files}), encoding="utf-8")
    assert load_experiment(file).files["active"].file == tmp_path / "active.csv"
