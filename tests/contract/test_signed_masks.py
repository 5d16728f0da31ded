"""Keys of masks and other statements are signed: each is of one party, kind and run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import horizontal
import numpy as np
import pytest
from certs import FEDERATION, authority, files, give_certificates, pin, subject
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from horizontal import clients_of, server_of, table
from laboratory import THREE, federation, let_go_later
from oneprocess import LocalFederation

from vflens.config import Tls
from vflens.errors import ProtocolError
from vflens.experiments.verify_log.verify import verify_logs
from vflens.member.signer import key_statement
from vflens.protocol.acts import Describe, Done, Prepare
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.pair_key import PairKey
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.types import Role, Signature
from vflens.wire.tls.identity import Identity
from vflens.wire.tls.issue import Authority, draw_authority, write_public
from vflens.wire.tls.signing import TlsSigner

_FIXTURES = (authority,)  # used by name
NONCE = "00" * 32
NOTHING = np.zeros(0, np.int32)


class TestMasks:
    """A server that tells clients of others than there are could take their masks off."""

    @pytest.fixture
    def local(self, tmp_path: Path) -> Any:
        tables = {f"c{i}": table(30 + i, i) for i in (1, 2, 3)}
        secure = {"rounds": 2, "secure_aggregation": True}
        training = {"batch_size": 10, "learning_rate": 0.1}
        dealt = horizontal.deal(
            tmp_path / "run", tables, secure_aggregation=True, horizontal=secure, training=training
        )
        return let_go_later(horizontal.federation(dealt))

    def told(self, local: Any, client: str, change: Mapping[str, Any]) -> HorizontalAgreement:
        """The federation, with another description of the other clients for ``client``."""
        config = server_of(local).config
        infos = [c.perform(Describe(config.run), "server", Role.SERVER) for c in clients_of(local).values()]
        members = tuple(info if info.name == client else replace(info, **change) for info in infos)
        return HorizontalAgreement(
            run=config.run,
            parties=members,
            training=config.training,
            lab=config.lab,
            model=config.model,
            horizontal=config.horizontal,
        )

    def test_a_client_refuses_a_key_that_no_client_signed(self, local: Any, tmp_path: Path) -> None:
        give_certificates(clients_of(local).values(), tmp_path / "tls", draw_authority(FEDERATION))
        client = clients_of(local)["c1"]
        signature = self.told(local, "c2", {}).parties[0].signature  # of another client
        for change in (
            {"mask_key": "12" * 32},
            {"name": "c2-x"},
            {"signature": None},
            {"signature": signature},
        ):
            with pytest.raises(
                ProtocolError, match=r"^the key of masks of 'c2.*': not signed with a certificate"
            ):
                client.perform(Prepare(self.told(local, "c1", change), NOTHING), "server", Role.SERVER)
        client.perform(Prepare(self.told(local, "c1", {}), NOTHING), "server", Role.SERVER)

    def test_a_client_that_pins_its_server_alone_verifies_no_key(self, local: Any, tmp_path: Path) -> None:
        client = clients_of(local)["c1"]
        tls = files(tmp_path / "c1", subject("c1", Role.CLIENT))
        pin(tls, [files(tmp_path / "server", subject("server", Role.SERVER))])
        client.signer = TlsSigner(Identity(tls, "c1", Role.CLIENT))
        client.perform(Prepare(self.told(local, "c1", {}), NOTHING), "server", Role.SERVER)
        assert "no certificate of an owner is trusted" in (client.folder / "events.jsonl").read_text()

    def test_an_audit_of_two_clients_finds_what_they_were_told(self, local: Any, tmp_path: Path) -> None:
        """One without certificates; and a key that its owner did not sign."""
        clients = clients_of(local)
        give_certificates(clients.values(), tmp_path / "tls", draw_authority(FEDERATION))
        agreed = self.told(local, "c1", {}), self.told(local, "c2", {})
        clients["c1"].signer = None
        invented = replace(
            agreed[0], parties=(*agreed[0].parties[:2], replace(agreed[0].parties[2], name="other"))
        )
        for name, known in (("c1", invented), ("c2", agreed[1])):
            clients[name].perform(Prepare(known, NOTHING), "server", Role.SERVER)
        (audited,) = verify_logs([clients["c1"].folder, clients["c2"].folder])
        problems = [str(f) for f in audited.found.findings]
        assert any(
            "c2: federation.json: its members are not those of 'c1' (c1, c2, c3, and c1" in p
            for p in problems
        )
        file = clients["c2"].folder / "federation.json"
        facts = json.loads(file.read_text())
        facts["parties"][1]["mask_key"] = "34" * 32
        file.write_text(json.dumps(facts))
        (audited,) = verify_logs([clients["c2"].folder])
        assert [f.problem for f in audited.found.findings] == [
            "its key of masks of 'c2' is not the one that 'c2' signed"
        ]


@pytest.mark.parametrize("kind", ["EC", "RSA", "Ed25519"])
def test_a_word_is_of_one_party_kind_and_run(kind: str, tmp_path: Path) -> None:
    """Also with keys that other tools drew."""
    authority = draw_authority(FEDERATION)
    tls = files(tmp_path, subject("c1", Role.CLIENT), authority)
    if kind != "EC":
        _draw_other(kind, tls, authority)
    of = TlsSigner(Identity(tls, "c1", Role.CLIENT))
    statement = key_statement("run", "ab" * 32, NONCE)
    signature = of.sign(statement)
    assert of.fits("c1", statement, signature)
    of.check("c1", Role.CLIENT, statement, signature)
    assert not of.fits("c2", statement, signature)
    assert not of.fits("c1", statement, None)
    for other in (
        key_statement("run", "cd" * 32, NONCE),
        key_statement("other", "ab" * 32, NONCE),
        key_statement("run", "ab" * 32, "01" * 32),
        key_statement("run", "ab" * 32, ""),
        statement._replace(kind="x"),
    ):
        assert not of.fits("c1", other, signature)
    for broken in (Signature("", ""), Signature("x", "zz"), signature._replace(value="00" * 64)):
        assert not of.fits("c1", statement, broken)
    with pytest.raises(ProtocolError, match="not signed with a certificate of passive 'c1'"):
        of.check("c1", Role.PASSIVE, statement, signature)


def _draw_other(kind: str, tls: Tls, authority: Authority) -> None:
    key: Any = (
        rsa.generate_private_key(65537, 2048) if kind == "RSA" else ed25519.Ed25519PrivateKey.generate()
    )
    tls.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    write_public(tls.certificate, authority.issue(key.public_key(), subject("c1", Role.CLIENT)))


class TestProtectedTraining:
    """A coordinator that tells passive parties of other keys stands between two that share columns."""

    @pytest.fixture
    def local(self, tmp_path: Path) -> LocalFederation:
        training = {"epochs": 1, "batch_size": 20, "optimizer": "sgd", "protection": "shares"}
        return federation(tmp_path / "run", parties=THREE, training=training, attacks=[], disclose=[])

    def lie(self, local: LocalFederation, party: str, about: str, **change: Any) -> None:
        """Let ``party`` be told of another description of ``about``."""
        member = local.data_parties[party]

        def told(act: Prepare) -> Done:
            assert isinstance(act.federation, VerticalAgreement)
            members = (replace(p, **change) if p.name == about else p for p in act.federation.parties)
            return prepare(replace(act, federation=replace(act.federation, parties=tuple(members))))

        prepare, member.prepare = member.prepare, told  # type: ignore[method-assign]

    @pytest.mark.parametrize("party", ["a", "b", "active"])
    @pytest.mark.parametrize("change", [{"mask_key": "12" * 32}, {"signature": None}], ids=str)
    def test_a_key_that_no_party_signed_is_refused(
        self, local: LocalFederation, tmp_path: Path, party: str, change: Mapping[str, Any]
    ) -> None:
        give_certificates(local.members(), tmp_path / "tls", draw_authority(FEDERATION))
        self.lie(local, party, "c", **change)
        with pytest.raises(ProtocolError, match=r"^the key of masks of 'c': not signed with a certificate"):
            local.coordinator.prepare()

    def test_keys_that_are_signed_are_taken_and_the_run_ends(
        self, local: LocalFederation, tmp_path: Path
    ) -> None:
        give_certificates(local.members(), tmp_path / "tls", draw_authority(FEDERATION))
        local.run()
        signed = {p.name for p in local.coordinator.aligned.parties if p.signature is not None}
        assert signed == {"a", "b", "c"}

    def test_a_party_takes_no_other_key_for_its_own(self, local: LocalFederation) -> None:
        self.lie(local, "c", "c", mask_key="12" * 32)
        with pytest.raises(ProtocolError, match="the key of masks of 'c' is another than it described"):
            local.coordinator.prepare()

    def test_without_certificates_an_audit_finds_it_afterwards(self, local: LocalFederation) -> None:
        self.lie(local, "a", "c", mask_key=PairKey(b"of the coordinator", "columns", "run", "c").public.hex())
        local.coordinator.prepare()
        (audited,) = verify_logs([local.data_parties[name].folder for name in ("a", "c")])
        assert [f.problem for f in audited.found.findings if "key of masks" in f.problem] == [
            "its key of masks of 'c' is not that of 'c': who put it there could take masks off"
        ]
