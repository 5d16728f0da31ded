"""Statements under a party's own name: who signs what, who refuses what, and whom an audit then names."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certs import FEDERATION, authority, files, give_certificates, signer
from chains import link_anew
from laboratory import federation
from logaudits import flip

from vflens.errors import ConfigError, ProtocolError, StateError
from vflens.experiments.verify_log.verify import verify_logs
from vflens.member.signer import Statement, heads_statement, signed_heads
from vflens.protocol.acts import Finished, Prepare
from vflens.services.folder import write_status
from vflens.storage.sent_heads import SentHeads, received_in
from vflens.types import Role
from vflens.wire.tls.identity import Identity
from vflens.wire.tls.issue import Authority, draw_authority, write_public
from vflens.wire.tls.signing import TlsSigner
from vflens.wire.tls.subject import Subject

_FIXTURES = (authority,)  # used by name
NO_HEADS = ("federation", "nonce", "signature")
NOTHING = np.zeros(0, np.int32)
ROLES = {"coordinator": Role.COORDINATOR, "active": Role.ACTIVE, "passive": Role.PASSIVE}


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
    (audited,) = verify_logs(folders, home / "trust" if trust else None)
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
    flip(log / "payload.bin", 100)
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
        heads = {name: value for name, value in held.items() if name not in NO_HEADS}
        facts = {"heads": heads, "federation": held["federation"], "nonce": held["nonce"]}
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
    (audited,) = verify_logs([home / "run" / "active", home / "run" / "passive"], home / "trust")
    heads = [f for f in audited.found.findings if "no such log" not in f.problem]
    assert [(f.party, f.file) for f in heads] == [("passive", "transcript/chain.bin")]
    assert heads[0].problem.endswith("(signed with a certificate that is trusted)")


def test_a_certificate_that_is_not_trusted_leaves_both(home: Path) -> None:
    """Whoever holds a head can draw a certificate under any name and sign another with it."""

    def change(held: dict[str, Any]) -> None:
        _another_head(held)
        made_up = signer(home / "made up", "passive", Role.PASSIVE, draw_authority(FEDERATION))
        heads = json.loads(json.dumps({k: held[k] for k in ("transcript", "released", "digests")}))
        facts = {"heads": heads, "federation": held["federation"], "nonce": held["nonce"]}
        held["signature"] = made_up.sign(Statement("heads", "tiny/run", facts))

    edit(home, "active", change)
    assert accused(home, "active", "passive", trust=False) == {"active", "passive"}
    assert accused(home, "active", "passive") == {"active", "passive"}
    assert accused(home) == {"active"}  # the coordinator's word of the passive party is proven


def test_heads_without_a_signature_leave_both(home: Path) -> None:
    """Every run without [tls] has them, and folders of earlier releases without a digest too."""

    def change(held: dict[str, Any]) -> None:
        del held["signature"], held["federation"]
        _another_head(held)

    edit(home, "active", change)
    assert accused(home, "active", "passive") == {"active", "passive"}


@pytest.mark.parametrize("removed", [True, False])
def test_with_trust_heads_that_prove_nothing_are_noted(home: Path, removed: bool) -> None:
    """A signature was taken away, or the authority is another one: all fits, and nothing is proven."""
    if removed:
        edit(home, "active", lambda held: held.pop("signature"))
    else:
        shutil.rmtree(home / "trust")
        write_public(home / "trust" / "authority.pem", draw_authority(FEDERATION).certificate)
    (audited,) = verify_logs([home / "run"], home / "trust")
    assert not audited.found.findings
    text = [note for note in audited.found.notes if note.endswith("they prove nothing to others")]
    assert len(text) == (1 if removed else 6)
    assert any(note.startswith("active: its heads of 'passive' are ") for note in text)


def test_a_log_that_is_left_out_is_found_where_its_head_is_held(home: Path) -> None:
    for log in ("transcript", "released"):
        shutil.rmtree(home / "run" / "passive" / log)
    (audited,) = verify_logs([home / "run" / party for party in ROLES], home / "trust")
    missing = [f for f in audited.found.findings if "no such log was given" in f.problem]
    assert [(f.party, f.file) for f in missing] == [
        ("passive", "transcript/chain.bin"),
        ("passive", "released/chain.bin"),
        ("passive", "released/digests.bin"),
    ]


def test_trust_that_cannot_be_used_is_refused(home: Path) -> None:
    with pytest.raises(ConfigError, match="holds no certificate"):
        verify_logs([home / "run"], home / "nowhere")


def test_two_runs_of_one_configuration_are_told_apart(
    home: Path, tmp_path: Path, authority: Authority
) -> None:
    """The same seed, so the same logs; whose heads are of the other run is named, and who holds them."""
    local = federation(tmp_path / "other")
    give_certificates(local.members(), tmp_path / "tls", authority)
    local.run()
    own, others = (received_in(folder / "active") for folder in (home / "run", tmp_path / "other"))
    assert own["passive"].heads == others["passive"].heads
    assert own["passive"].nonce != others["passive"].nonce
    shutil.copy(tmp_path / "other" / "active" / "heads.json", home / "run" / "active" / "heads.json")
    (audited,) = verify_logs([home / "run" / party for party in ROLES], home / "trust")
    assert {(f.party, f.file) for f in audited.found.findings} == {("active", "heads.json")}
    (problem,) = [f.problem for f in audited.found.findings if "'passive'" in f.problem]
    assert problem == (
        f"its heads of 'passive' are of the run with the nonce {others['passive'].nonce[:8]}… (signed with a "
        f"certificate that is trusted), most of the others say {own['passive'].nonce[:8]}…"
    )


def earlier(home: Path, authority: Authority, name: str = "earlier") -> Path:
    """The folders of another run of the same federation and name, with another seed."""
    local = federation(home / name / "run", seed=99)
    give_certificates(local.members(), home / name / "tls", authority)
    local.run()
    return home / name / "run"


@pytest.mark.parametrize("cheat", ROLES)
def test_genuine_heads_of_an_earlier_run_name_who_shows_them_alone(
    home: Path, authority: Authority, cheat: str
) -> None:
    before = earlier(home, authority)
    assert accused(home) == set()
    shutil.copy(before / cheat / "heads.json", home / "run" / cheat / "heads.json")
    assert accused(home) == {cheat}
    assert accused(home, trust=False) == {cheat}


@pytest.mark.parametrize("cheat", ROLES)
def test_a_whole_folder_of_an_earlier_run_names_who_shows_it_alone(
    home: Path, authority: Authority, cheat: str
) -> None:
    before = earlier(home, authority)
    shutil.rmtree(home / "run" / cheat)
    shutil.copytree(before / cheat, home / "run" / cheat)
    assert accused(home) == {cheat}


def test_of_two_folders_of_two_runs_nobody_knows_which_is_another(home: Path, authority: Authority) -> None:
    before = earlier(home, authority)
    for name in ("active", "passive"):
        (home / "run" / name / "heads.json").unlink()
    shutil.copy(before / "active/federation.json", home / "run/active/federation.json")
    (audited,) = verify_logs([home / "run/active", home / "run/passive"], home / "trust")
    assert {finding.party for finding in audited.found.findings} == {"active", "passive"}
    assert all("which of them is of another run cannot be told" in f.problem for f in audited.found.findings)


def test_a_nonce_is_signed(home: Path) -> None:
    """Who writes another one into heads or folder is found by the signature."""
    edit(home, "active", lambda held: held.update(nonce="ab" * 32))
    (audited,) = verify_logs([home / "run" / party for party in ROLES], home / "trust")
    assert [(f.party, f.file) for f in audited.found.findings] == [("active", "heads.json")]
    assert audited.found.findings[0].problem == "its heads of 'passive' are not those that 'passive' signed"


def test_a_folder_of_an_earlier_release_is_audited_and_told_so(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.run()
    for file in (*tmp_path.glob("*/federation.json"), *tmp_path.glob("*/heads.json")):
        file.write_text(re.sub(r', "nonce": "[0-9a-f]{64}"', "", file.read_text()))
        assert "nonce" not in file.read_text()
    (audited,) = verify_logs([tmp_path])
    assert not audited.found.findings
    assert any(note.startswith("no party states a nonce of the run") for note in audited.found.notes)


def test_heads_of_another_run_are_neither_taken_nor_kept(tmp_path: Path, authority: Authority) -> None:
    """Nor is a party let in that was told of another run of this name."""
    local = federation(tmp_path / "run")
    give_certificates(local.members(), tmp_path / "tls", authority)
    local.coordinator.prepare()
    passive = local.passive["passive"]
    assert passive.signer
    earlier = signed_heads(passive.signer, "tiny/run", replace(passive.heads(), nonce="ab" * 32))
    with pytest.raises(
        ProtocolError, match=r"^the heads of 'passive' are of another run called 'tiny/run': "
    ):
        local.coordinator._check_signed(Finished("tiny/run", "passive", earlier))
    local.active.keep_heads({"passive": earlier})
    assert not received_in(local.active.folder)
    other = replace(local.coordinator.aligned, nonce="cd" * 32)
    with pytest.raises(StateError, match=r"is in run 'tiny/run' with other settings or rows"):
        passive.prepare(Prepare(other, NOTHING))


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
