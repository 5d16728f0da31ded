"""Keys and autoencoders of a split network stay at home."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from accidents import rebuild_all, train_until
from laboratory import close, federation, finish, trained, transcripts
from splitcases import MODEL, SETTINGS

from vflens.defenses.passport import Passport
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom
from vflens.models.networks.parameters import to_arrays
from vflens.models.networks.passport import PassportLayer
from vflens.plugins.defense import Context
from vflens.storage import journal
from vflens.types import Array, Point


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    """Every key that a passport draws, as it is drawn."""
    drawn, found = PassportLayer._key, list[Array]()

    def remembered(layer: PassportLayer, *given: Any) -> torch.Tensor:
        key = drawn(layer, *given)
        found.append(key.numpy())
        return key

    monkeypatch.setattr(PassportLayer, "_key", remembered)
    return found


def _sent(home: Path) -> bytes:
    """All that any party received."""
    return b"".join(f.read_bytes() for f in sorted(home.glob("*/transcript/payload.bin")))


def _found(key: Array, sent: bytes) -> bool:
    """Whether four numbers of ``key`` in a row were sent, in either precision."""
    windows = [key[i : i + 4].astype(kind) for i in range(len(key) - 3) for kind in ("<f4", "<f8")]
    return any(w.tobytes() in sent for w in windows)


def test_keys_and_autoencoder_are_in_no_transcript(tmp_path: Path, keys: list[Array]) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.run()
    names = set(
        to_arrays(
            dict(bottom(SplitNetwork(**MODEL), local.passive["passive"].table.columns).named_parameters())
        )
    )
    received = [r for f in tmp_path.glob("*/transcript") for r in journal.read(f)]
    disclosed = [r for r in received if r.point is Point.PARAMETERS]
    assert disclosed
    assert all(set(r.tensors or ()) == names for r in disclosed)
    others = {n for r in received if r.point is not Point.PARAMETERS for n in r.tensors or ()}
    assert others == {"embedding", "gradient", "features"}
    sent = _sent(tmp_path)
    secret = {
        n: a
        for party in (local.passive["passive"], local.active)
        for n, a in party.run.model.state().items()
        if "encoder" in n or "decoder" in n
    }
    assert len(secret) == 4
    assert not [n for n, a in secret.items() if a.tobytes() in sent]
    weight = local.passive["passive"].run.model.parameters()["0.weight"]
    assert weight.tobytes() in sent  # the search finds what was sent
    assert len(keys) > 2 * 2 * 4 * 4  # (s^γ, s^β) of two parties in every step, then of predictions
    assert not any(_found(key, sent) for key in keys)


def test_a_key_that_is_sent_is_found(
    tmp_path: Path, keys: list[Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search above finds it: here the first numbers of a key leave in place of the layer's bias."""

    def leaking(_: Passport, w: Mapping[str, Array], ctx: Context) -> Mapping[str, Array]:
        return {**w, "3.bias": keys[0][: len(w["3.bias"])]}

    monkeypatch.setattr(Passport, "on_parameters", leaking)
    federation(tmp_path, **SETTINGS).run()
    sent = _sent(tmp_path)
    assert [i for i, key in enumerate(keys) if _found(key, sent)] == [0]


#: Images, so that the authors' layer has a batch norm.
AUTHORS: dict[str, Any] = {
    "data": {"name": "digits", "sample": 60},
    "split": {"kind": "image_halves"},
    "model": {"architecture": "cnn", "top": [8]},
    "attacks": [],
    "limits": {"checkpoint_steps": 3},
    "defenses": [
        {"name": "passport", "at": at, "normalise": "authors", "keys": "fixed"}
        for at in ("passive", "active")
    ],
}


def test_fixed_keys_and_running_moments_stay_at_home_and_survive_a_restart(
    tmp_path: Path, keys: list[Array]
) -> None:
    found = []
    for name, steps in (("undisturbed", 0), ("rebuilt", 4)):
        local = federation(tmp_path / name, **AUTHORS)
        local.coordinator.prepare()
        if steps:
            train_until(local, steps)
            rebuild_all(local)
        local.coordinator.train()
        finish(local)
        found.append((trained(local), transcripts(tmp_path / name)))
    assert found[0] == found[1]
    assert len({key.tobytes() for key in keys}) == 4  # (s^γ, s^β) of two parties, whoever was rebuilt
    state = local.passive["passive"].run.model.state()
    sent = _sent(tmp_path / "undisturbed")
    moments = {n: a for n, a in state.items() if "running" in n}
    assert len(moments) == 2
    assert not [n for n, a in moments.items() if a.tobytes() in sent]
    assert not any(_found(key, sent) for key in keys)
    assert local.passive["passive"].run.model.parameters()["4.weight"].tobytes() in sent
    close(local)
