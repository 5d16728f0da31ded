"""A launched run as its operators watch it: status, health, figures; its logs and reports afterwards.

One run of three processes, over ports and mutual TLS. It is asked while it serves and again once it has
ended; the tests read the answers, and copies of its folders.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from certs import files, subject
from commandline import Ended
from damages import DAMAGE, release_another_row, sizes_of
from nonempty import nonempty
from processes import change, dealt, eventually

from vflens.cli import main
from vflens.config import PartyConfig, Tls, load_party
from vflens.errors import AccessError
from vflens.experiments.pages.report import write_report
from vflens.experiments.run.dealer import free_addresses
from vflens.experiments.verify_log.verify import verify_logs
from vflens.member.event_loop import ENDING
from vflens.protocol.acts import Describe
from vflens.services.healthcheck import serves
from vflens.services.identity import counterpart, identity_of
from vflens.services.process import link_to
from vflens.types import Role
from vflens.wire.tls.counterpart import Counterpart
from vflens.wire.tls.identity import Identity
from vflens.wire.tls.issue import draw_authority

PARTIES = ("passive", "active", "coordinator")
OPERATING = (Path(__file__).parents[2] / "docs/operating.md").read_text(encoding="utf-8")


@dataclass
class Told:
    """What ``vflens status`` returned and printed for one party, as text and as JSON."""

    code: int
    text: str
    found: dict[str, Any]


@dataclass
class Watched:
    """The folders of a finished run, and what was seen while it served."""

    home: Path
    configs: dict[str, PartyConfig]
    serving: dict[str, Told]
    ended: dict[str, Told]
    listening: dict[str, set[str]]
    answers: dict[str, list[bool]]
    page: str


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    with dealt(folder, network={"transport": "tcp"}, after="serve") as federation:
        address = free_addresses(1)[0]
        change(federation.config("passive"), metrics={"port": int(address.rpartition(":")[2])})
        configs = {party: load_party(federation.config(party)) for party in PARTIES}
        federation.start()
        eventually(lambda: "serving predictions" in federation.said("coordinator"))
        _be_refused(configs)
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
            page = answer.read().decode()
        seen = (
            {party: status(federation.config(party)) for party in PARTIES},
            {party: _listening(federation.processes[party].pid) for party in PARTIES},
            health(configs, folder / "strangers"),
        )
        federation.processes["coordinator"].send_signal(signal.SIGINT)
        assert set(federation.codes().values()) == {0}, federation.said("coordinator")
        ended = {party: status(federation.config(party)) for party in PARTIES}
        yield Watched(federation.home, configs, seen[0], ended, *seen[1:], page)


def status(config: Path) -> Told:
    shown = _called("status", "--config", str(config))
    again = _called("status", "--config", str(config), "--json")
    assert again.code == shown.code
    return Told(shown.code, shown.out + shown.err, json.loads(again.out))


def _called(*arguments: str) -> Ended:
    """The command line, called in this process."""
    out, err, before = io.StringIO(), io.StringIO(), {s: signal.getsignal(s) for s in ENDING}
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["vflens", *arguments])
        code = _code()
    for number, handler in before.items():
        signal.signal(number, handler)
    return Ended(code, out.getvalue(), err.getvalue())


def _code() -> int:
    try:
        main.command_line()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _be_refused(configs: dict[str, PartyConfig]) -> None:
    """The passive party refuses a call of its coordinator, whose token is another."""
    peer = next(p for p in configs["coordinator"].peers if p.name == "passive")
    link = link_to(peer.model_copy(update={"token": "another-token-of-20-1"}), configs["coordinator"])
    with pytest.raises(AccessError):
        link.call(Describe("tiny/run"))
    link.close()


def _listening(process: int) -> set[str]:
    """Where the process accepts connections."""
    found = psutil.Process(process).net_connections("inet")
    bound = [c.laddr for c in found if c.status == psutil.CONN_LISTEN]
    return {f"{address.ip.removeprefix('::ffff:')}:{address.port}" for address in bound}


# --- status


@pytest.mark.parametrize("party", PARTIES)
def test_status_while_it_serves(watched: Watched, party: str) -> None:
    status_shown, ends = watched.serving[party], identity(watched.configs[party]).files.ends
    expected = {
        "party": party, "role": party, "run": "tiny/run", "folder": str(watched.home / party),
        "state": "running", "reason": "", "serves": True, "restarts": 0, "steps": 12,
        "certificate": {"ends": ends.isoformat(), "problem": ""},
        "peers": dict.fromkeys((p.name for p in watched.configs[party].peers), True),
    }  # fmt: skip
    assert status_shown.code == 0
    assert {name: status_shown.found[name] for name in expected} == expected
    assert status_shown.found["phase"] in ("open", "finished")
    assert f"{party} {party}, run tiny/run: running\n" in status_shown.text
    assert "step 11 of 12" not in status_shown.text  # training is over
    for peer in watched.configs[party].peers:
        assert f"peer {peer.name}: serves" in status_shown.text
        assert peer.token not in status_shown.text + json.dumps(status_shown.found)


def test_status_shows_the_last_error(watched: Watched) -> None:
    assert (
        watched.serving["passive"]
        .found["last_error"]
        .endswith(
            "refused: caller 'coordinator' is no peer of 'passive', or its token is another: compare both "
            "configurations"
        )
    )
    assert watched.serving["active"].found["last_error"] == ""


@pytest.mark.parametrize("party", PARTIES)
def test_status_after_the_end(watched: Watched, party: str) -> None:
    status_shown = watched.ended[party]
    expected = {"state": "finished", "phase": "finished", "serves": False, "peers": {}}
    assert status_shown.code == 0
    assert {name: status_shown.found[name] for name in expected} == expected
    assert f"{party} {party}, run tiny/run: finished\n  phase: finished; restarts: 0" in status_shown.text


# --- health


def health(configs: dict[str, PartyConfig], folder: Path) -> dict[str, list[bool]]:
    """By caller: whether each party answers it that it serves."""
    federation = identity(configs["active"]).files.subject.federation
    forged = subject("coordinator", Role.COORDINATOR, federation)
    stranger = files(folder / "stranger", forged, draw_authority(federation))
    pinned = files(folder / "pinned", forged)
    for tls in (stranger, pinned):  # they trust the parties, which do not trust them
        trusted = (configs["active"].tls or tls).trust.read_bytes()
        (tls.trust / "parties.pem").write_bytes(trusted)
    shown: dict[str, Callable[[str], Counterpart | None]] = {
        **{party: _shows(config) for party, config in configs.items()},
        "another authority": lambda peer: Counterpart(_of(stranger), peer, Role(peer)),
        "self-signed": lambda peer: Counterpart(_of(pinned), peer, Role(peer)),
        "no certificate": lambda peer: None,
        "who expects another": lambda peer: counterpart("other", Role.PASSIVE, configs["active"]),
    }
    return {
        caller: [bool(serves(configs[p].address, configs[p].limits, tls=tls(p))) for p in PARTIES]
        for caller, tls in shown.items()
    }


def _shows(config: PartyConfig) -> Callable[[str], Counterpart | None]:
    return lambda peer: counterpart(peer, Role(peer), config)


def _of(tls: Tls) -> Identity:
    return Identity(tls, "coordinator", Role.COORDINATOR)


def identity(config: PartyConfig) -> Identity:
    found = identity_of(config)
    assert found is not None
    return found


def test_the_health_service_answers_parties_of_the_federation_alone(watched: Watched) -> None:
    """Each party answers each, itself too, without a token."""
    strangers = ("another authority", "self-signed", "no certificate", "who expects another")
    assert watched.answers == {
        **dict.fromkeys(PARTIES, [True] * 3),
        **dict.fromkeys(strangers, [False] * 3),
    }


# --- figures


def test_only_the_configured_page_listens_besides_the_parties(watched: Watched) -> None:
    page = f"127.0.0.1:{watched.configs['passive'].metrics.port}"
    addresses = {party: {config.address} for party, config in watched.configs.items()}
    addresses["passive"].add(page)
    assert watched.listening == addresses


def test_the_page_has_the_figures_that_its_documentation_lists(watched: Watched) -> None:
    rows = re.findall(r"^\| (`vflens_.*?) \|", OPERATING, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"vflens_\w+", row)} | {"vflens_call_seconds_sum"}
    shown = {line.partition("{")[0].partition(" ")[0] for line in _samples(watched)}
    assert shown == listed


def _samples(watched: Watched) -> list[str]:
    return [line for line in watched.page.splitlines() if not line.startswith("#")]


def test_the_page_says_how_the_run_stands_and_no_secret(watched: Watched) -> None:
    values = dict(line.rsplit(" ", 1) for line in _samples(watched))
    assert values['vflens_party{party="passive",role="passive",run="tiny/run"}'] == "1"
    assert values["vflens_training_steps_done"] == values["vflens_training_steps"] == "12"
    assert values["vflens_refused_calls_total"] == "1"
    assert values["vflens_restarts"] == "0"
    assert int(values["vflens_received_messages_total"]) == 12
    ends = datetime.fromtimestamp(float(values["vflens_certificate_end_timestamp_seconds"]), UTC)
    assert ends == identity(watched.configs["passive"]).files.ends
    assert int(values['vflens_call_seconds_count{act="Step"}']) == 13  # the last brings a gradient
    assert not any(peer.token in watched.page for peer in watched.configs["passive"].peers)


# --- its logs


@pytest.fixture
def home(watched: Watched, tmp_path: Path) -> Path:
    """A copy of the folders, to be changed."""
    return Path(shutil.copytree(watched.home, tmp_path / "copy"))


def test_the_logs_fit_and_what_one_released_another_received(watched: Watched) -> None:
    (audited,) = verify_logs([watched.home])
    assert audited.found.findings == []
    assert audited.compared["passive", "coordinator"] == {"releases": 12, "rows": 18}
    assert audited.compared["active", "passive"]["releases"] == 12
    for party, logs in audited.logs.items():
        held = [json.loads((watched.home / p / "heads.json").read_text()) for p in PARTIES if p != party]
        digests = {heads[party]["digests"]["head"] for heads in held}
        assert digests == {logs["digests"].head.link.hex()}
        assert watched.ended[party].found["heads"]["transcript"]["head"] == logs["transcript"].head.link.hex()


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_what_was_changed_is_named(home: Path, damage: Callable[[Path], None]) -> None:
    count = len(sizes_of(home, "coordinator"))
    damage(home)
    (audited,) = verify_logs([home])
    found = [str(finding) for finding in audited.found.findings]
    words = DAMAGE[damage].replace("LAST", str(count)).replace("COUNT", str(count))
    assert found[0].startswith(words), found


def test_the_audit_ends_with_its_code(home: Path) -> None:
    ended = _called("verify-log", str(home))
    assert (ended.code, "all that could be checked fits" in ended.out) == (0, True)
    release_another_row(home)
    ended = _called("verify-log", str(home))
    assert (ended.code, "DOES NOT FIT coordinator: transcript/index.jsonl" in ended.out) == (5, True)


def test_reports_show_the_heads(watched: Watched, tmp_path: Path) -> None:
    page = write_report([watched.home], tmp_path / "report.html").read_text(encoding="utf-8")
    for party in PARTIES:
        for log, head in nonempty(watched.ended[party].found["heads"].items()):
            assert f"head of {log}: {head['records']} records, <code>{head['head']}</code>" in page


# --- a certificate that ends during the run


@pytest.mark.facts
def test_parties_name_the_coordinators_ended_certificate_and_resume_once_it_is_renewed(
    tmp_path: Path,
) -> None:
    authority = draw_authority("tiny")
    parties = {party: subject(party, Role(party), "tiny") for party in PARTIES}
    own = tmp_path / "coordinator"
    with dealt(tmp_path, network={"transport": "tcp"}, after="serve") as federation:
        for party, whom in parties.items():
            change(federation.config(party), tls=_named(files(tmp_path / party, whom, authority)))
        federation.start()
        eventually(lambda: "serving predictions" in federation.said("coordinator"))
        files(own, parties["coordinator"], authority, days=5 / 86_400)  # it is used: valid, and its own
        for party in ("passive", "active"):
            assert federation.processes[party].wait(60) == AccessError.exit_code, federation.said(party)
            assert "the certificate of party 'coordinator' at " in federation.said(party)
            assert " has ended (valid " in federation.said(party)
        status_shown = status(federation.config("coordinator"))
        assert (status_shown.code, status_shown.found["state"]) == (11, "running")
        assert "new connections are refused: certificate" in status_shown.text
        files(own, parties["coordinator"], authority)
        federation.start("passive", "active", flags=["--resume"])
        for party in ("passive", "active"):
            eventually(lambda p=party: f"{p!r} is ready at" in federation.said(p).partition("goes on")[2])  # type: ignore[misc]
        federation.processes["coordinator"].send_signal(signal.SIGINT)
        assert set(federation.codes().values()) == {0}, [federation.said(party) for party in PARTIES]


def _named(tls: Tls) -> dict[str, str]:
    return {name: str(path) for name, path in tls}
