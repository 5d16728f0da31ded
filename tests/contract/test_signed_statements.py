"""Statements under a party's own name: who signs what, who refuses what, and whom an audit then names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import horizontal
import numpy as np
import pytest
from certs import FEDERATION, files, pin, subject
from chains import link_anew
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from horizontal import clients_of, server_of, table
from laboratory import federation, let_go_later
from test_log_audit import _flip

from vflens.config import Tls
from vflens.errors import ConfigError, ProtocolError
from vflens.experiments.log_audit.audit import audit_logs
from vflens.member.member import Member
from vflens.member.signer import Statement, heads_statement, key_statement
from vflens.protocol.acts import Describe, Finished, Prepare
from vflens.protocol.horizontal import HorizontalFederation
from vflens.services.folder import write_status
from vflens.storage.sent_heads import SentHeads, received_in
from vflens.types import Role, Signature
from vflens.wire.tls.identity import Identity
from vflens.wire.tls.issue import Authority, draw_authority, write_public
from vflens.wire.tls.signing import TlsSigner
from vflens.wire.tls.subject import Subject

NOTHING = np.zeros(0, np.int32)
ROLES = {"coordinator": Role.COORDINATOR, "active": Role.ACTIVE, "passive": Role.PASSIVE}


def signer(folder: Path, name: str, role: Role, authority: Authority) -> TlsSigner:
    return TlsSigner(Identity(files(folder, subject(name, role), authority), name, role))


def give_certificates(members: Iterable[Member], home: Path, authority: Authority) -> None:
    for member in members:
        member.signer = signer(home / member.name, member.name, member.role, authority)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return draw_authority(FEDERATION)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Path:
    """The folders of a finished run of three parties with certificates, and ``trust`` beside them."""
    home = tmp_path_factory.mktemp("signed")
    local = federation(home / "run")
    give_certificates(local.members(), home / "tls", authority)
    local.run()
    write_public(home / "trust" / "authority.pem", authority.certificate)
    return home


@pytest.fixture
def home(finished: Path, tmp_path: Path) -> Path:
    """A copy of them, to be changed."""
    return Path(shutil.copytree(finished, tmp_path / "home"))


def accused(home: Path, *parties: str, trust: bool = True) -> set[str]:
    """Whom an audit of the folders of ``parties``, by default of all, names."""
    folders = [home / "run" / party for party in parties or ROLES]
    (audited,) = audit_logs(folders, home / "trust" if trust else None)
    return {finding.party for finding in audited.found.findings}


def edit(home: Path, holder: str, change: Callable[[dict[str, Any]], object], owner: str = "passive") -> None:
    """Change what ``holder`` has in its folder of ``owner``."""
    file = home / "run" / holder / "heads.json"
    held = json.loads(file.read_text())
    change(held[owner])
    file.write_text(json.dumps(held))


def _another_head(held: dict[str, Any]) -> None:
    held["transcript"]["head"] = "ab" * 32


def rewrite_passive(home: Path) -> None:
    """A record of the passive party changes, and all links and its own status with it."""
    log = home / "run" / "passive" / "transcript"
    _flip(log / "payload.bin", 100)
    link_anew(log)
    write_status(home / "run" / "passive", "finished")


def test_a_whole_run_fits_and_every_head_is_signed(finished: Path) -> None:
    assert accused(finished) == accused(finished, trust=False) == set()
    for party in ROLES:
        held = received_in(finished / "run" / party)
        assert set(held) == {*ROLES} - {party}
        assert all(sent.signature and sent.federation for sent in held.values())


def test_who_changes_a_head_that_it_holds_is_named_alone(home: Path) -> None:
    edit(home, "active", _another_head)
    for trust in (True, False):
        assert accused(home, "active", "passive", trust=trust) == {"active"}


@pytest.mark.parametrize(
    ("role", "named"), [(Role.CLIENT, {"active"}), (Role.PASSIVE, {"active", "passive"})]
)
def test_a_certificate_of_another_federation_proves_nothing(
    home: Path, authority: Authority, role: Role, named: set[str]
) -> None:
    """The authority signed it too; another role is a lie, the same one leaves both under suspicion."""
    other = Subject("other", role, "passive")
    forger = TlsSigner(Identity(files(home / "other", other, authority), "passive", role))

    def forge(held: dict[str, Any]) -> None:
        _another_head(held)
        heads = {name: value for name, value in held.items() if name not in ("federation", "signature")}
        facts = {"heads": heads, "federation": held["federation"]}
        held["signature"] = forger.sign(Statement("heads", "tiny/run", facts))

    edit(home, "active", forge)
    assert accused(home, "active", "passive") == named


def test_heads_of_a_party_of_another_federation_are_not_kept(tmp_path: Path, authority: Authority) -> None:
    mine = signer(tmp_path / "mine", "active", Role.ACTIVE, authority)
    statement = Statement("heads", "tiny/run", {})
    for federation_, fits in ((FEDERATION, True), ("other", False)):
        certified = Subject(federation_, Role.PASSIVE, "passive")
        theirs = TlsSigner(
            Identity(files(tmp_path / federation_, certified, authority), "passive", Role.PASSIVE)
        )
        assert mine.fits("passive", statement, theirs.sign(statement)) is fits


def test_who_changes_its_own_log_is_named_alone(home: Path) -> None:
    """The coordinator gave no folder: the active party alone is the witness."""
    rewrite_passive(home)
    for log in ("transcript", "released"):  # else its messages are compared too
        shutil.rmtree(home / "run" / "active" / log)
    (audited,) = audit_logs([home / "run" / "active", home / "run" / "passive"], home / "trust")
    heads = [f for f in audited.found.findings if "no such log" not in f.problem]
    assert [(f.party, f.file) for f in heads] == [("passive", "transcript/chain.bin")]
    assert heads[0].problem.endswith("(signed with a certificate that is trusted)")


def test_a_certificate_that_is_not_trusted_leaves_both(home: Path) -> None:
    """Whoever holds a head can draw a certificate under any name and sign another with it."""

    def change(held: dict[str, Any]) -> None:
        _another_head(held)
        made_up = signer(home / "made up", "passive", Role.PASSIVE, draw_authority(FEDERATION))
        heads = json.loads(json.dumps({k: held[k] for k in ("transcript", "released", "digests")}))
        facts = {"heads": heads, "federation": held["federation"]}
        held["signature"] = made_up.sign(Statement("heads", "tiny/run", facts))

    edit(home, "active", change)
    assert accused(home, "active", "passive", trust=False) == {"active", "passive"}
    assert accused(home, "active", "passive") == {"active", "passive"}
    assert accused(home) == {"active"}  # the coordinator's word of the passive party is proven


def test_heads_without_a_signature_leave_both(home: Path) -> None:
    """As every run without [tls] has them, and folders of earlier releases without a digest too."""

    def change(held: dict[str, Any]) -> None:
        del held["signature"], held["federation"]
        _another_head(held)

    edit(home, "active", change)
    assert accused(home, "active", "passive") == {"active", "passive"}


def test_a_log_that_is_left_out_is_found_where_its_head_is_held(home: Path) -> None:
    for log in ("transcript", "released"):
        shutil.rmtree(home / "run" / "passive" / log)
    (audited,) = audit_logs([home / "run" / party for party in ROLES], home / "trust")
    missing = [f for f in audited.found.findings if "no such log was given" in f.problem]
    assert [(f.party, f.file) for f in missing] == [
        ("passive", "transcript/chain.bin"),
        ("passive", "released/chain.bin"),
        ("passive", "released/digests.bin"),
    ]


def test_trust_that_cannot_be_used_is_refused(home: Path) -> None:
    with pytest.raises(ConfigError, match="holds no certificate"):
        audit_logs([home / "run"], home / "nowhere")


def test_a_leader_takes_no_heads_that_their_party_could_deny(tmp_path: Path) -> None:
    local = federation(tmp_path / "run")
    give_certificates(local.members(), tmp_path / "tls", draw_authority(FEDERATION))
    local.coordinator.prepare()
    passive, leader = local.passive["passive"], local.coordinator
    sent = passive.heads()
    leader._check_signed(Finished("tiny/run", "passive", sent))
    assert passive.signer
    other = signer(tmp_path / "other", "passive", Role.PASSIVE, draw_authority(FEDERATION))
    for wrong in (
        replace(sent, signature=None),
        replace(sent, federation=bytes(32)),
        replace(sent, signature=other.sign(heads_statement("tiny/run", sent))),
        replace(sent, signature=passive.signer.sign(heads_statement("another", sent))),
    ):
        with pytest.raises(
            ProtocolError, match=r"^the heads of 'passive': not signed with a certificate of pas"
        ):
            leader._check_signed(Finished("tiny/run", "passive", wrong))


def test_a_party_keeps_no_heads_that_their_owner_did_not_sign(tmp_path: Path) -> None:
    """The coordinator relays them: it could make every receiver a witness of what nobody sent."""
    local = federation(tmp_path / "run")
    give_certificates(local.members(), tmp_path / "tls", draw_authority(FEDERATION))
    local.coordinator.prepare()
    sent = local.passive["passive"].heads()
    made_up = SentHeads({}, sent.federation, sent.signature)
    local.active.keep_heads({"passive": made_up, "coordinator": local.coordinator.heads()})
    assert set(received_in(local.active.folder)) == {"coordinator"}
    local.active.keep_heads({"passive": sent})
    assert received_in(local.active.folder)["passive"] == sent


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

    def told(self, local: Any, client: str, change: Mapping[str, Any]) -> HorizontalFederation:
        """The federation, with another description of the other clients for ``client``."""
        config = server_of(local).config
        infos = [c.perform(Describe(config.run), "server", Role.SERVER) for c in clients_of(local).values()]
        members = tuple(info if info.name == client else replace(info, **change) for info in infos)
        return HorizontalFederation(
            config.run, members, config.training, config.lab, config.model, config.horizontal
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
        assert "no certificate of a client is trusted" in (client.folder / "events.jsonl").read_text()

    def test_an_audit_of_two_clients_finds_what_they_were_told(self, local: Any, tmp_path: Path) -> None:
        """One without certificates; and a key that its owner did not sign."""
        clients = clients_of(local)
        give_certificates(clients.values(), tmp_path / "tls", draw_authority(FEDERATION))
        told = self.told(local, "c1", {}), self.told(local, "c2", {})
        clients["c1"].signer = None
        invented = replace(told[0], parties=(*told[0].parties[:2], replace(told[0].parties[2], name="other")))
        for name, known in (("c1", invented), ("c2", told[1])):
            clients[name].perform(Prepare(known, NOTHING), "server", Role.SERVER)
        (audited,) = audit_logs([clients["c1"].folder, clients["c2"].folder])
        problems = [str(f) for f in audited.found.findings]
        assert any(
            "c2: federation.json: its members are not those of 'c1' (c1, c2, c3, and c1" in p
            for p in problems
        )
        file = clients["c2"].folder / "federation.json"
        facts = json.loads(file.read_text())
        facts["parties"][1]["mask_key"] = "34" * 32
        file.write_text(json.dumps(facts))
        (audited,) = audit_logs([clients["c2"].folder])
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
    statement = key_statement("run", "ab" * 32)
    signature = of.sign(statement)
    assert of.fits("c1", statement, signature)
    of.check("c1", Role.CLIENT, statement, signature)
    assert not of.fits("c2", statement, signature)
    assert not of.fits("c1", statement, None)
    for other in (
        key_statement("run", "cd" * 32),
        key_statement("other", "ab" * 32),
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
