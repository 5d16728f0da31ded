"""Parties as real processes: they start in any order, end in order, and one that fails takes nobody down with
a traceback.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import terminals
from commandline import Refused, Run
from laboratory import THREE
from processes import (
    ENVIRONMENT,
    SLOW,
    Federation,
    assert_finished,
    change,
    dealt,
    eventually,
    experiment_file,
    forked,
)

from vflens.experiments.pages.report import write_report
from vflens.storage import journal

PARTIES = ("coordinator", "active", "passive")


def assert_one_sentence(text: str) -> None:
    assert "Traceback" not in text
    assert text.count("error: ") == 1, text


def assert_kept(federation: Federation) -> None:
    """Whatever happened, transcripts can be read and a report can be made."""
    for party in federation.roles:
        assert list(journal.read(federation.home / party / "transcript"))
    assert write_report([federation.home], federation.home / "report.html").exists()


def _is_up(federation: Federation, party: str) -> bool:
    """Whether the party shows a status of this run: that of an earlier one has ended."""
    return federation.status(party).get("state") not in (None, "finished")


class TestWhole:
    def test_parties_start_in_any_order_and_in_the_same_folder_again(
        self, vflens: Run, tmp_path: Path
    ) -> None:
        """What an earlier run left is kept beside, not mixed in."""
        with dealt(tmp_path) as federation:
            for *early, last in (PARTIES, ("passive", "active", "coordinator")):
                for party in early:
                    federation.start(party)
                    eventually(lambda p=party: _is_up(federation, p))  # type: ignore[misc]
                federation.start(last)
                assert_finished(federation)
                assert_kept(federation)
            first = federation.home / "active/earlier-1/transcript"
            assert journal.digest(first) == journal.digest(federation.home / "active/transcript")
            self.can_be_evaluated(vflens, federation, "earlier-1")

    def test_three_passive_parties_over_tcp(self, tmp_path: Path) -> None:
        with dealt(tmp_path, parties=THREE, network={"transport": "tcp"}) as federation:
            federation.start()
            assert_finished(federation)
            assert "scores of 18 rows released" in federation.said("coordinator")

    def can_be_evaluated(self, vflens: Run, federation: Federation, earlier: str) -> None:
        active, passive = (federation.home / party / earlier for party in ("active", "passive"))
        estimate = str(federation.home / "estimate.npz")
        assert vflens("attack", active, "--attack", "zero", "--out", estimate).code == 0
        scored = vflens("score", estimate, "--config", passive / "config.toml", "--json")
        assert 0 < json.loads(scored.out)["mse"] < 1

    def test_early_stopping_completes_everybody_s_bar(self, tmp_path: Path) -> None:
        early = {"epochs": 60, "batch_size": 20, "patience": 1, "tolerance": 10}
        with dealt(tmp_path, training=early) as federation:
            federation.start()
            assert_finished(federation)
            assert {p: federation.said(p).count("training 2/2\n") for p in PARTIES} == dict.fromkeys(
                PARTIES, 1
            )


class TestStopped:
    @pytest.mark.parametrize(
        ("who", "how"),
        [
            *(("coordinator", signal.SIGINT), ("passive", signal.SIGTERM)),
            pytest.param("active", signal.SIGHUP, marks=pytest.mark.facts),
            *(pytest.param(who, signal.SIGINT, marks=pytest.mark.facts) for who in ("active", "passive")),
        ],
    )
    def test_a_signal_ends_everybody_in_order(self, tmp_path: Path, who: str, how: signal.Signals) -> None:
        with dealt(tmp_path, training=SLOW) as federation:
            federation.start()
            federation.until_training()
            federation.processes[who].send_signal(how)
            codes = federation.codes()
            assert codes == dict.fromkeys(PARTIES, 11) | {who: 130}
            assert federation.status(who) == {"state": "interrupted", "reason": "stopped by a signal"}
            assert federation.said(who).endswith("interrupted: files written so far are kept\n")
            for other in set(PARTIES) - {who}:
                assert federation.status(other)["state"] == "failed"
                assert federation.status(other)["reason"] in federation.said(other)
                assert_one_sentence(federation.said(other))
            assert_kept(federation)

    @pytest.mark.parametrize("first", ["", "process._no_more_interrupts()"], ids=["before", "in the end"])
    def test_an_end_that_hangs_is_cut_short(self, first: str) -> None:
        code = f"""
import os, signal, threading
from services import process
process._LAST_RESORT_SECONDS = 0.5
process.stop_on_signals()
{first}
try:
    os.kill(os.getpid(), signal.SIGTERM)
    print("undisturbed", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
threading.Event().wait()
"""
        done = subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (130, "undisturbed\n" if first else "interrupted\n")

    def test_what_nobody_foresaw_is_named_to_everybody(self, tmp_path: Path) -> None:
        with dealt(tmp_path) as federation:
            _fail_at_the_coordinator(federation, 'ZeroDivisionError("private")')
            sentence = "the coordinator failed: unexpected ZeroDivisionError, look at its log"
            for party in ("active", "passive"):
                assert federation.status(party)["reason"] == f"the run ended early: {sentence}"
            assert "ZeroDivisionError: private" in (federation.home / "coordinator/events.jsonl").read_text()

    def test_a_coordinator_s_words_command_no_terminal(self, tmp_path: Path) -> None:
        with dealt(tmp_path) as federation:
            _fail_at_the_coordinator(
                federation, r"errors.DataError('\x1b[2J\x1b[32mall is well' + 5000 * '\x9b')"
            )
            for party in ("active", "passive"):
                reason = federation.status(party)["reason"]
                assert reason.startswith(r"the run ended early: \x1b[2J\x1b[32mall is well\x9b")
                assert len(reason) < 5_000
                assert reason in federation.said(party)
                assert federation.said(party).replace("\n", "").isprintable()


def _fail_at_the_coordinator(federation: Federation, error: str) -> None:
    """Raise ``error`` instead of a run, which the data parties are told."""
    code = f"""
from vflens.cli.main import main
from vflens.services import process
from vflens import errors
def run(*_, **__): raise {error}
process.run = run
main()
"""
    federation.start("active", "passive")
    config = str(federation.config("coordinator"))
    command = [sys.executable, "-c", code, "serve", "coordinator", "--config", config]
    subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False, timeout=60)
    assert federation.codes() == {"active": 11, "passive": 11}


class TestGoesWrong:
    def test_a_port_in_use(self, tmp_path: Path) -> None:
        with dealt(tmp_path, network={"transport": "tcp"}) as federation, socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            change(federation.config("passive"), address=address)
            federation.start("passive")
            assert federation.codes() == {"passive": 2}
            assert federation.said("passive") == (
                f"error: address '{address}' cannot be bound (Address already in use): "
                "choose another port, or stop who uses it\n"
            )

    def test_a_run_folder_in_use(self, refused: Refused, tmp_path: Path) -> None:
        with dealt(tmp_path) as federation:
            federation.start("passive")
            eventually(lambda: "waiting for" in federation.said("passive"))
            folder = federation.home / "passive"
            assert refused(2, "serve", "passive", "--config", federation.config("passive")) == (
                f"run folder {folder} is in use by another party's process: stop it, or choose another `out`"
            )

    def test_a_party_that_never_comes(self, tmp_path: Path) -> None:
        with dealt(tmp_path, limits={"wait_seconds": 3}) as federation:
            federation.start("coordinator", "active")
            assert federation.codes() == {"coordinator": 11, "active": 11}
            address = tomllib.loads(federation.config("passive").read_text())["address"]
            sentence = (
                f"passive 'passive' at {address} did not come within 3 s: start it, "
                "or raise limits.wait_seconds"
            )
            assert federation.said("coordinator").endswith(f"error: {sentence}\n")
            assert federation.said("active").endswith(f"error: the run ended early: {sentence}\n")

    @pytest.mark.parametrize("who", ["passive", pytest.param("coordinator", marks=pytest.mark.facts)])
    def test_a_disk_that_is_full(self, tmp_path: Path, who: str) -> None:
        """No file of the party may grow beyond 200 kB; the launcher's sentence is the disk's, not its
        victims'.
        """
        with dealt(tmp_path, training=SLOW) as federation:
            federation.start(who, file_bytes=terminals.SMALL)
            federation.start(*set(PARTIES) - {who})
            codes = federation.codes()
            assert codes[who] == 12
            assert set(codes.values()) <= {11, 12, 13}
            assert federation.status(who)["state"] == "failed"
            log = federation.home / who
            assert federation.said(who).splitlines()[-1].startswith(f"error: the log {log}/")
            assert "File too large" in federation.said(who)
            for party in PARTIES:
                assert_one_sentence(federation.said(party))
            assert_kept(federation)

    def test_another_run(self, tmp_path: Path) -> None:
        with dealt(tmp_path) as federation:
            change(federation.config("passive"), run="yesterday")
            federation.start()
            assert federation.codes() == {"coordinator": 13, "active": 11, "passive": 11}
            assert federation.said("coordinator").endswith(
                "error: party 'passive': run 'tiny/run' is not this party's: 'passive' is configured for run "
                "'yesterday'\n"
            )

    @pytest.mark.parametrize(("who", "codes"), [("coordinator", (13, 11, 11)), ("passive", (13, 11, 11))])
    def test_another_token(self, tmp_path: Path, who: str, codes: tuple[int, ...]) -> None:
        with dealt(tmp_path) as federation:
            peers = tomllib.loads(federation.config(who).read_text())["peers"]
            change(federation.config(who), peers=[p | {"token": f"guessed-for-{p['name']}"} for p in peers])
            federation.start()
            assert tuple(federation.codes()[p] for p in PARTIES) == codes
            assert (
                federation.said("coordinator")
                .splitlines()[-1]
                .endswith("or its token is another: compare both configurations")
            )

    def test_another_table(self, tmp_path: Path) -> None:
        with dealt(tmp_path) as federation:
            (federation.home / "passive/data.parquet").write_bytes(b"PAR1 no more")
            federation.start("passive")
            assert federation.codes() == {"passive": 3}
            assert_one_sentence(federation.said("passive"))
            assert federation.status("passive")["reason"] in federation.said("passive")

    def test_the_launcher_says_what_the_party_said(self, tmp_path: Path) -> None:
        """A party that is refused before it has a status: its own sentence is the run's."""
        long = tmp_path / (
            "x" * 90
        )  # too long for sockets in run folders, and in the folder for temporary files
        long.mkdir()
        file = experiment_file(tmp_path, out=str(long / "runs"))
        done = forked("run", str(file), environment={"TMPDIR": str(long)})
        assert done.returncode == 2
        assert "a socket's path holds at most 100 bytes, choose a shorter folder" in done.stderr
