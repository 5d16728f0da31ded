"""``vflens certs``: what it draws, what it exchanges, what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commandline import Run
from laboratory import deal
from processes import change, experiment_file

from vflens.config import load_party
from vflens.experiments.run.loading import load_experiment
from vflens.services.identity import check_trust, identity_of
from vflens.types import Role
from vflens.wire.tls import identity

TLS = {"certificate": "tls/certificate.pem", "key": "tls/key.pem", "trust": "tls/trust"}
PARTIES = ("passive", "active", "coordinator")


@pytest.fixture(autouse=True)
def _looks_at_the_files_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in one process here."""
    monkeypatch.setattr(identity, "_LOOK_SECONDS", 0.0)


@pytest.fixture
def configs(tmp_path: Path) -> dict[str, Path]:
    """Three parties' configurations with [tls], without certificates."""
    deal(load_experiment(experiment_file(tmp_path)), tmp_path / "dealt")
    made = {party: tmp_path / "dealt" / party / "config.toml" for party in PARTIES}
    for file in made.values():
        change(file, tls=TLS)
    return made


def shown(vflens: Run, *arguments: str | Path) -> Any:
    ended = vflens("certs", *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_one_owner_draws_all_at_once(vflens: Run, configs: dict[str, Path]) -> None:
    made = shown(vflens, "init", *configs.values())
    assert [(m["party"], m["kind"], m["federation"]) for m in made] == [
        (party, "self-signed", "tiny-run") for party in PARTIES
    ]
    for party, file in configs.items():
        config = load_party(file)
        check_trust(config)
        found = identity_of(config)
        assert found is not None
        assert {(s.party, s.role) for s in found.files.trust.pins} == {(p.name, p.role) for p in config.peers}
        assert (file.parent / "tls/key.pem").stat().st_mode & 0o777 == 0o600
        assert [f["party"] for f in shown(vflens, "show", file)] == [
            party,
            *sorted(p.name for p in config.peers),
        ]


def test_operators_exchange_their_files(vflens: Run, configs: dict[str, Path], tmp_path: Path) -> None:
    """Each draws alone, the public files travel; without one of them a party does not start."""
    for file in configs.values():
        shown(vflens, "init", file, "--federation", "banks")
    public = {party: file.parent / "tls/certificate.pem" for party, file in configs.items()}
    ended = vflens("certs", "check", configs["active"])
    assert ended.code == 2
    assert "holds no certificate: add the peers' with: vflens certs trust" in ended.err
    shown(vflens, "trust", configs["active"], public["passive"])
    ended = vflens("serve", "active", "--config", configs["active"])
    assert ended.code == 2
    words = "holds no certificate of coordinator 'coordinator' of federation 'banks' and no authority's"
    assert words in ended.err
    shown(vflens, "trust", configs["active"], public["coordinator"], public["passive"])
    assert len(list((configs["active"].parent / "tls/trust").iterdir())) == 2  # each once
    ended = vflens("certs", "check", configs["active"])
    assert ended.code == 11
    assert "no answer from coordinator, passive: start what is missing, then check again" in ended.err
    assert "passive at " in ended.out


def test_an_authority_signs(vflens: Run, configs: dict[str, Path], tmp_path: Path) -> None:
    asked = [Path(shown(vflens, "request", file)["request"]) for file in configs.values()]
    assert [file.name for file in asked] == ["certificate.csr"] * 3
    signed = shown(vflens, "sign", *asked, "--authority", tmp_path / "ours")
    assert [(m["party"], m["kind"]) for m in signed] == [(party, "signed") for party in PARTIES]
    assert (tmp_path / "ours/authority.key").stat().st_mode & 0o777 == 0o600
    for file in configs.values():
        added = shown(vflens, "trust", file, tmp_path / "ours/authority.pem")
        assert [a["kind"] for a in added] == ["authority"]
        check_trust(load_party(file))
    again = shown(vflens, "sign", asked[0], "--authority", tmp_path / "ours")  # the same authority
    assert again[0]["fingerprint"] != signed[0]["fingerprint"]
    check_trust(load_party(configs["passive"]))


def test_the_next_certificate_keeps_the_key(vflens: Run, configs: dict[str, Path], tmp_path: Path) -> None:
    shown(vflens, "init", *configs.values())
    own = configs["passive"].parent / "tls"
    key = (own / "key.pem").read_bytes()
    made = shown(vflens, "init", configs["passive"], "--out", tmp_path / "next.pem")
    assert (own / "key.pem").read_bytes() == key
    shown(vflens, "trust", configs["active"], tmp_path / "next.pem")
    assert len(list((configs["active"].parent / "tls/trust").glob("passive-*.pem"))) == 2
    (tmp_path / "next.pem").replace(own / "certificate.pem")
    assert shown(vflens, "show", configs["passive"])[0]["fingerprint"] == made[0]["fingerprint"]


def test_an_operator_has_files_of_its_own(vflens: Run, configs: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "operator"
    made = shown(vflens, "init", *configs.values(), folder, "--federation", "banks")
    assert (made[-1]["party"], made[-1]["role"]) == ("operator", "operator")
    assert [f["party"] for f in shown(vflens, "show", folder)] == ["operator", "active"]
    found = identity_of(load_party(configs["active"]))
    assert found is not None
    assert any(s.role is Role.OPERATOR for s in found.files.trust.pins)


def test_a_link_to_a_certificate_stays_one(vflens: Run, configs: dict[str, Path]) -> None:
    """Whoever renews it lets the link lead to the next file."""
    shown(vflens, "init", *configs.values())
    home = configs["active"].parent
    (home / "tls/certificate.pem").rename(home / "tls/first.pem")
    (home / "tls/certificate.pem").symlink_to("first.pem")
    tls = load_party(configs["active"]).tls
    assert tls is not None
    assert tls.certificate == home / "tls/certificate.pem"


class TestRefused:
    def test_no_table(self, refused: Callable[..., str], configs: dict[str, Path], tmp_path: Path) -> None:
        deal(load_experiment(experiment_file(tmp_path)), tmp_path / "plain")
        for command in ("init", "check", "show"):
            found = refused(2, "certs", command, tmp_path / "plain/active/config.toml")
            assert 'has no table [tls]: add one with certificate = "tls/certificate.pem"' in found

    def test_an_operator_without_a_federation(self, refused: Callable[..., str], tmp_path: Path) -> None:
        found = refused(2, "certs", "init", tmp_path / "nowhere.toml")
        assert "is no configuration of a party; for an operator's folder give --federation too" in found

    def test_twice(self, vflens: Run, refused: Callable[..., str], configs: dict[str, Path]) -> None:
        shown(vflens, "init", configs["active"])
        found = refused(2, "certs", "init", configs["active"])
        assert "certificate.pem exists: keep it, or draw the next certificate with --out FILE" in found

    def test_a_certificate_of_no_peer(
        self, vflens: Run, refused: Callable[..., str], configs: dict[str, Path]
    ) -> None:
        shown(vflens, "init", configs["active"], "--federation", "other")
        shown(vflens, "init", configs["passive"], "--federation", "banks")
        public = configs["active"].parent / "tls/certificate.pem"
        found = refused(2, "certs", "trust", configs["passive"], public)
        assert "is the certificate of active 'active' of federation 'other', no peer of passive" in found

    def test_no_certificate(self, vflens: Run, refused: Callable[..., str], configs: dict[str, Path]) -> None:
        shown(vflens, "init", configs["active"])
        found = refused(2, "certs", "trust", configs["active"], configs["active"])
        assert "holds no certificate in PEM: give the file that its owner made" in found
        found = refused(2, "certs", "sign", configs["active"], "--authority", configs["active"].parent / "a")
        assert "holds no request" in found
        assert not (configs["active"].parent / "a").exists()

    def test_an_authority_of_another_federation(
        self, vflens: Run, refused: Callable[..., str], configs: dict[str, Path], tmp_path: Path
    ) -> None:
        first = shown(vflens, "request", configs["active"], "--federation", "banks")["request"]
        shown(vflens, "sign", first, "--authority", tmp_path / "ours")
        second = shown(vflens, "request", configs["passive"], "--federation", "shops")["request"]
        found = refused(2, "certs", "sign", second, "--authority", tmp_path / "ours")
        assert "is of federation 'shops', the authority of 'banks'" in found

    def test_insecure_beside_tls(self, refused: Callable[..., str], configs: dict[str, Path]) -> None:
        change(configs["active"], insecure=True)
        found = refused(2, "check", configs["active"])
        assert "insecure = true beside [tls]: every address has TLS, leave insecure out" in found

    def test_tls_needs_no_insecure(self, vflens: Run, configs: dict[str, Path]) -> None:
        """An address of a network, with certificates."""
        shown(vflens, "init", *configs.values())
        change(configs["active"], address="0.0.0.0:29999")
        ended = vflens("check", configs["active"])
        assert ended.code == 0, ended.err
