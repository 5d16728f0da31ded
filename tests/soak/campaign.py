"""Kills of launched federations from the start of their processes on: ``make kills``.

Twelve kinds of federation run as ``vflens run`` runs them. A seed draws who is killed, and when; the launcher
starts the party again, or the run is resumed. Whatever was killed, the run must end with the bits of an
undisturbed one. A failure prints the command that repeats its run.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import tomli_w
from criterion import Bits, Draws, assert_same, left
from laboratory import NOISY
from launched import FORKS, LAUNCHER, Command, Kill, drawn
from world import NETWORK, NOISE, NOISY_CLIENT

from vflens.experiments.verify_log.verify import verify_logs
from vflens.services.folder import state_of
from vflens.services.forking.forks import Forks

AT_A_TIME = 2  # kinds, on two cores
KILLS_OF_A_RUN = 6
_MOST_FAILURES = 3  # of a kind, which then ends
_MOST_UNDISTURBED = 5  # runs one after another; then nobody would ever be killed
_LOADED = ("vflens.experiments.run.run", "vflens.experiments.run.resume", "vflens.experiments.run.horizontal")

EVERYONE: dict[str, Any] = {
    "name": "tiny",
    "seed": 3,
    "data": {"name": "synthetic", "rows": 24, "features": 4, "classes": 2, "informative": 2},
    "limits": {"wait_seconds": 30, "rejoin_seconds": 60, "call_seconds": 20, "step_seconds": 20}
    | {"checkpoint_steps": 7, "idle_seconds": 120},
    "restart": 100,
}
VERTICAL = EVERYONE | {
    "training": {"epochs": 300, "batch_size": 7, "learning_rate": 0.1},
    "split": {"kind": "fraction", "fraction": 0.5},
    "attacks": [{"name": "half"}],
    "disclose": [{"what": "parameters", "to": "active"}],
    "scenarios": [{"name": "run", "defenses": [*NOISY, NOISE]}],
}
HORIZONTAL = EVERYONE | {
    "training": {"batch_size": 7, "learning_rate": 0.1},
    "parties": {"clients": 3},
}
ON_SHARES = {**VERTICAL["training"], "epochs": 100, "optimizer": "sgd", "protection": "shares"}
SHARED = VERTICAL | {"training": ON_SHARES, "scenarios": [{"name": "run", "defenses": NOISY}]}
OF_NUMBER = VERTICAL | {
    "data": {"name": "diabetes", "sample": 24},
    "model": {"family": "linear_regression"},
    "scenarios": [{"name": "run"}],
}
DIRECT = {"aggregator": "active", "model": NETWORK, "disclose": [], "transcript": {"every": 3}}
#: The slow ones first: two at a time, they end together.
KINDS: dict[str, dict[str, Any]] = {
    "resumed": VERTICAL
    | {"restart": 0, "scenarios": [*VERTICAL["scenarios"], {"name": "again", "defenses": [NOISE]}]},
    "splitfed": HORIZONTAL | {"model": NETWORK, "horizontal": {"method": "splitfed", "rounds": 8}},
    "stale": VERTICAL
    | DIRECT
    | {
        "training": {**VERTICAL["training"], "staleness": 1},
        "scenarios": [{"name": "run", "defenses": [NOISE]}],
    },
    "regression": VERTICAL,
    "malicious": VERTICAL
    | {
        "model": NETWORK,
        "malicious": True,
        "training": {**VERTICAL["training"], "epochs": 100, "optimizer": "sgd", "l2": 0.0},
        "disclose": [{"what": "labels", "to": "passive", "rows": 6}],
        "attacks": [{"name": "amc", "at": "passive", "steps": 20}],
        "scenarios": [{"name": "run"}],
    },
    "four": SHARED | {"data": {**EVERYONE["data"], "features": 8}, "parties": {"passive": ["a", "b", "c"]}},
    "shares": SHARED | {"parties": {"passive": ["a", "b"]}},
    "psi": VERTICAL
    | {
        "align": {"mode": "psi"},
        "parties": {"passive": ["a", "b"]},
        "scenarios": [{"name": "run", "defenses": NOISY}],
    },
    "number": OF_NUMBER | {"training": {**ON_SHARES, "learning_rate": 0.04}},
    "clear number": OF_NUMBER,
    "fedavg": HORIZONTAL
    | {
        "horizontal": {"rounds": 40, "participants": 2},
        "scenarios": [{"name": "run", "defenses": [NOISY_CLIENT]}],
    },
    "masked": HORIZONTAL | {"horizontal": {"rounds": 40, "secure_aggregation": True}},
}


class Ended(NamedTuple):
    """What a run left, in each scenario, and how long it took."""

    scenarios: dict[str, Bits]
    seconds: float


class Campaign:
    """Runs of one kind below ``home``, forked by ``forks``."""

    def __init__(self, kind: str, home: Path, forks: Forks) -> None:
        self.kind, self._home, self._forks = kind, home, forks
        self._resumes = not KINDS[kind]["restart"]
        self.kills: list[int] = []  # in each run that ended as it must
        self._found: set[str] = set()
        self._undisturbed = self._run(home / "undisturbed", iter(()))
        self.seconds = self._undisturbed.seconds  # of the quickest run so far
        names = sorted(f.parent.name for f in home.glob("undisturbed/tiny/run/*/config.toml"))
        self._victims = [*names, LAUNCHER, FORKS] if self._resumes else names

    def disturbed(self, seed: int, most: int, seconds: float) -> list[Kill]:
        """Kill at most so often in one run, which must end as the undisturbed one; the kills, drawn for a run
        that takes ``seconds``. There are none where it ended before the first.

        Raises:
            AssertionError: it ends otherwise, or it is the last of many runs without a kill.
        """
        done: list[Kill] = []
        kills = islice(drawn(self._victims, seed, seconds), most)
        folder = self._home / f"seed-{seed}"
        try:
            found = self._run(folder, kills, done)
            for name, bits in found.scenarios.items():
                assert_same(bits, self._undisturbed.scenarios[name])
            self.seconds = min(self.seconds, found.seconds)
            self.kills.append(len(done))
            last = self.kills[-_MOST_UNDISTURBED:]
            assert any(last) or len(last) < _MOST_UNDISTURBED, f"{len(last)} runs ended before a kill"
        except AssertionError as error:
            error.add_note(f"killed: {'; '.join(map(str, done)) or 'nobody'}")
            raise
        shutil.rmtree(folder)
        return done

    def never_found(self) -> list[str]:
        """Those to kill of whom no run showed a process: their name is lost, and nobody kills them."""
        return sorted(set(self._victims) - self._found)

    def _run(self, home: Path, kills: Iterator[Kill], done: list[Kill] | None = None) -> Ended:
        """Run the experiment below ``home``, again until it is complete where it is resumed."""
        home.mkdir()
        file, seconds = home / "experiment.toml", 0.0
        file.write_text(tomli_w.dumps(KINDS[self.kind] | {"out": str(home)}), encoding="utf-8")
        pending, done = next(kills, None), [] if done is None else done
        while not complete(home / "tiny"):
            with self._command(home) as command:
                before = len(done)
                while pending is not None and command.kill(pending):
                    done.append(pending)
                    pending = next(kills, None)
                code, text = command.code(), (home / "said").read_text(encoding="utf-8")
                seconds += time.monotonic() - command.began
                self._found |= command.found
            killed, whole = self._resumes and len(done) > before, not code and complete(home / "tiny")
            assert killed or whole, f"the command ended with code {code}: {text}{_said(home)}"
        scenarios = [folder for folder in sorted((home / "tiny").iterdir()) if folder.is_dir()]
        if self.kind != "splitfed":  # its server answers all clients in one exchange
            for folder in scenarios:
                Draws().note_logs(folder)
        return Ended({folder.name: _judged(folder) for folder in scenarios}, seconds)

    @contextmanager
    def _command(self, home: Path) -> Iterator[Command]:
        """``vflens run`` or, where a party has begun, ``vflens resume``."""
        arguments = ["resume", str(home / "tiny")]
        if not any(home.glob("tiny/*/*/settings.json")):
            shutil.rmtree(home / "tiny", ignore_errors=True)  # killed before: nothing is lost
            arguments = ["run", str(home / "experiment.toml")]
        command = Command(self._forks, arguments, home / "said")
        try:
            yield command
        finally:
            command.end()


def complete(folder: Path) -> bool:
    """Whether all scenarios in ``folder`` were dealt and have finished."""
    scenarios = [f for f in folder.glob("*") if f.is_dir()]
    parties = [[f.parent for f in scenario.glob("*/config.toml")] for scenario in scenarios]
    return bool(parties) and all(p and all(state_of(f) == "finished" for f in p) for p in parties)


def _judged(home: Path) -> Bits:
    """What the run in ``home`` left; its logs fit, and nobody printed a traceback."""
    for audited in verify_logs([home]):
        assert not audited.found.findings, audited.words()
    text = _said(home.parent.parent)
    assert "Traceback" not in text, text
    found = left(home)
    digests = {str(f.relative_to(home)): f.read_bytes() for f in home.glob("*/released/digests.bin")}
    return found._replace(logs={**found.logs, **digests})


def _said(home: Path) -> str:
    """The words of all parties."""
    files = sorted(home.glob("tiny/*/*/output.log"))
    return "".join(f"\n{f.parent.name}: {f.read_text(encoding='utf-8')}" for f in files)


@contextmanager
def prepared(kind: str) -> Iterator[Campaign]:
    """A campaign in a folder that is removed afterwards."""
    with TemporaryDirectory(prefix="vfl") as home, Forks(*_LOADED) as forks:
        yield Campaign(kind, Path(home), forks)


def kill(kind: str, kills: int, seed: int) -> int:
    """Kill so often in runs of ``kind``; how many failed, each is printed at once."""
    failures, count, began = 0, 0, time.monotonic()
    with prepared(kind) as campaign:
        while count < kills and failures < _MOST_FAILURES:
            most, seconds = min(KILLS_OF_A_RUN, kills - count), round(campaign.seconds, 1)
            try:
                count += len(campaign.disturbed(seed, most, seconds))
            except AssertionError as error:
                facts = "\n".join([str(error), *getattr(error, "__notes__", ())])
                again = f"make kills KILLS='--repeat {kind}:{seed}:{most}:{seconds}'"
                print(f"FAILED {facts}\n  again: {again}", flush=True)
                failures, count = failures + 1, count + most
            seed += 1
        if lost := campaign.never_found():
            print(f"FAILED {kind}: no process of {', '.join(lost)} was ever found", flush=True)
            failures += 1
    undisturbed, took = f"{campaign.kills.count(0)} undisturbed runs", f"{time.monotonic() - began:.0f} s"
    print(f"{kind}: {count} kills in {took}, {undisturbed}, {failures} failures", flush=True)
    return failures


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make kills", description=__doc__)
    parser.add_argument("--each", type=int, default=KILLS_OF_A_RUN, help="kills of each kind")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="of the first run")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--repeat", metavar="KIND:SEED:KILLS:SECONDS", help="one run, as a failure names it")
    options = parser.parse_args(arguments)
    if options.repeat:
        kind, seed, most, seconds = options.repeat.split(":")
        with prepared(kind) as campaign:
            done = campaign.disturbed(int(seed), int(most), float(seconds))
            print("\n".join(map(str, done)) or "It ended before a kill, undisturbed.")
        return 0
    print(f"seed {options.seed}", flush=True)
    with ThreadPoolExecutor(AT_A_TIME) as at_once:
        failures = sum(at_once.map(lambda kind: kill(kind, options.each, options.seed), options.kinds))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
