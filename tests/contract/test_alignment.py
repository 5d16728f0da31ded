"""What the coordinator can tell of the rows of two runs: outside lab mode neither digests nor places link
them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from laboratory import close, deal, estimates, experiment, transcripts
from oneprocess import LocalFederation
from processes import change

from vflens.clients.vertical.identification import Identification
from vflens.clients.vertical.passive import PassiveParty
from vflens.errors import ProtocolError
from vflens.protocol.acts import Prepare
from vflens.protocol.vertical.alignment import DIGEST_BYTES
from vflens.protocol.vertical.row_ids import Identify, Salt, Salted
from vflens.storage.files import load_arrays
from vflens.wire.messages import RPCS

PARTIES = ("active", "passive")


@pytest.fixture(scope="module")
def dealt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Configurations and tables outside lab mode."""
    home = tmp_path_factory.mktemp("dealt")
    deal(experiment(home, lab=False), home)
    return home


@contextmanager
def _federation(dealt: Path, home: Path, **changes: object) -> Iterator[LocalFederation]:
    """The parties of a copy of ``dealt``, each configuration with ``changes``."""
    shutil.copytree(dealt, home)
    configs = {f.parent.name: f for f in home.glob("*/config.toml")}
    for config in configs.values():
        change(config, **changes)
    local = LocalFederation(configs, lambda stage, done, total: None)
    try:
        yield local
    finally:
        close(local)


def _salts(local: LocalFederation) -> bytes:
    run = local.coordinator.config.run
    return b"".join(local.data_parties[p].salt(Salt(run)).salt for p in PARTIES)


def _sent(local: LocalFederation, party: str, salts: bytes) -> list[bytes]:
    found = local.data_parties[party].identify(Identify(local.coordinator.config.run, salts, 0)).digests
    return [found[at : at + DIGEST_BYTES] for at in range(0, len(found), DIGEST_BYTES)]


def test_two_runs_have_no_digest_in_common(dealt: Path, tmp_path: Path) -> None:
    with (
        _federation(dealt, tmp_path / "a", run="may") as may,
        _federation(dealt, tmp_path / "b", run="june") as june,
    ):
        for party in PARTIES:
            one, other = _sent(may, party, _salts(may)), _sent(june, party, _salts(june))
            assert len(set(one)) == len(set(other)) == 90
            assert not set(one) & set(other)


def test_scenarios_of_one_experiment_are_compared_on_the_same_rows(dealt: Path, tmp_path: Path) -> None:
    with (
        _federation(dealt, tmp_path / "a", run="may/open") as one,
        _federation(dealt, tmp_path / "b", run="may/defended") as other,
    ):
        for party in PARTIES:
            assert _sent(one, party, _salts(one)) == _sent(other, party, _salts(other))


def test_another_row_at_one_party_changes_the_digests_of_all(dealt: Path, tmp_path: Path) -> None:
    with _federation(dealt, tmp_path / "a") as before, _federation(dealt, tmp_path / "b") as after:
        table = after.data_parties["active"].table
        table.features[0, 0] += 1
        for party in PARTIES:
            assert not set(_sent(before, party, _salts(before))) & set(_sent(after, party, _salts(after)))


def test_the_salts_of_an_earlier_run_are_refused(dealt: Path, tmp_path: Path) -> None:
    with (
        _federation(dealt, tmp_path / "a", run="may") as may,
        _federation(dealt, tmp_path / "b", run="june") as june,
    ):
        earlier = _salts(may)
        for party in PARTIES:
            sentence = (
                f"^the salts of the alignment lack that of '{party}': "
                "collect them anew from all data parties$"
            )
            for salts in (earlier, b"", earlier + _salts(june)[1:]):
                with pytest.raises(ProtocolError, match=sentence):
                    _sent(june, party, salts)


def test_digests_are_sent_in_their_own_order_and_rows_still_meet(dealt: Path, tmp_path: Path) -> None:
    with _federation(dealt, tmp_path / "a") as local:
        sent = {p: _sent(local, p, _salts(local)) for p in PARTIES}
        assert all(digests == sorted(digests) for digests in sent.values())
        local.coordinator.prepare()
        rows = {p: load_arrays(tmp_path / "a" / p / "order.npz")["order"] for p in PARTIES}
        ids = {p: local.data_parties[p].table.ids[rows[p]] for p in PARTIES}
        np.testing.assert_array_equal(ids["active"], ids["passive"])
        assert (rows["active"] != np.arange(90)).any()
        assert len(set(ids["active"].tolist())) == 90


def test_a_repeated_run_repeats_its_bits(dealt: Path, tmp_path: Path) -> None:
    """Salts follow from secrets, name and tables: equal ones link nothing new."""
    for name in ("a", "b"):
        with _federation(dealt, tmp_path / name) as local:
            local.run()
    assert transcripts(tmp_path / "a") == transcripts(tmp_path / "b")
    assert estimates(tmp_path / "a") == estimates(tmp_path / "b")


def test_places_among_digests_that_another_process_sent_are_refused(dealt: Path, tmp_path: Path) -> None:
    """A party that was started again in between would take them for rows of its file."""
    with _federation(dealt, tmp_path / "a") as local:
        local.coordinator.prepare()
        federation = local.coordinator.aligned
        config = local.passive["passive"].config.model_copy(update={"out": tmp_path / "again"})
        again = PassiveParty(config, {})
        with pytest.raises(ProtocolError, match=r"^the salts of the alignment lack that of 'passive'"):
            again.prepare(Prepare(federation, np.arange(90, dtype=np.int32)))
        again.close()


@pytest.mark.parametrize("length", [0, 31, 64])
def test_a_salt_of_another_length_is_refused(
    dealt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    with _federation(dealt, tmp_path / "a") as local:
        monkeypatch.setattr(Identification, "salt", lambda *_: Salted(bytes(length), "hmac", 90))
        with pytest.raises(
            ProtocolError, match=f"^party 'active' sent a salt of {length} bytes: expected 32$"
        ):
            local.coordinator.prepare()


@pytest.mark.parametrize("length", [31, 33, 32 * 257])
def test_salts_that_are_not_those_of_parties_are_refused_on_arrival(length: int) -> None:
    rpc = RPCS[Identify]
    assert rpc.decode(rpc.encode(Identify("run", bytes(32 * 256), 0))).salts == bytes(32 * 256)
    with pytest.raises(
        ProtocolError,
        match=f"^salts of {length} bytes: expected 32 of each data party, of 256 parties at most$",
    ):
        rpc.decode(rpc.encode(Identify("run", bytes(length), 0)))
