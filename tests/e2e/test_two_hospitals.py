"""The commands of docs/two-hospitals.md, in a folder for each hospital: they end with a report."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import terminals
from commandline import Run
from processes import eventually

from vflens.experiments.run.dealer import free_addresses
from vflens.services.forking.forks import Fork
from vflens.wire.tls import identity

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/two-hospitals.md").read_text(encoding="utf-8")
FILES = {"active": "A", "coordinator": "A", "passive": "B"}


def commands() -> list[tuple[str, list[str]]]:
    """Hospital and arguments of each command, in the page's order."""
    found = []
    for fence in re.finditer(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        hospital = re.findall(r"\b(?:at|At|from)\s+([AB])\b", PAGE[: fence.start()])[-1]
        found += [(hospital, shlex.split(line)[1:]) for line in fence[1].splitlines()]
    return found


class Hospitals:
    """Two folders, what is done in them, and the parties started there."""

    def __init__(self, home: Path, vflens: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self._vflens, self._patch = home, vflens, monkeypatch
        self.parties: dict[str, Fork] = {}

    def move_in(self) -> None:
        """A folder for each hospital with its table; the page's addresses become those of this machine."""
        ports = free_addresses(len(FILES))
        self._here = dict(zip(("50051", "50052", "50053"), ports, strict=True))
        for party, hospital in FILES.items():
            (self.home / hospital).mkdir(exist_ok=True)
            if party != "coordinator":
                shutil.copy(ROOT / f"examples/bank_{party}.csv", self.home / hospital)

    def look_into_files(self) -> None:
        """The end of step 1: the page's lines for the table of B and the attack of A."""
        lines = re.findall(r"^```toml\n(\[(?:data|\[attacks).*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        for party, added in zip(("passive", "active"), lines, strict=True):
            with self.file(party).open("a", encoding="utf-8") as file:
                file.write(f"\n{added}")

    def _on_this_machine(self, argument: str) -> str:
        return re.sub(r"(?:0\.0\.0\.0|[ab]\.example):(\d+)", lambda m: self._here[m[1]], argument)

    def settings(self, party: str) -> dict[str, object]:
        return tomllib.loads(self.file(party).read_text(encoding="utf-8"))

    def file(self, party: str) -> Path:
        return self.home / FILES[party] / f"{party}.toml"

    def give_secrets(self) -> None:
        """Step 2: B writes what A gave it into its file."""
        text, given = self.file("passive").read_text(encoding="utf-8"), dict[str, str]()
        for party in ("active", "coordinator"):
            peers = self.settings(party)["peers"]
            assert isinstance(peers, list)
            token = next(p["token"] for p in peers if p["name"] == "passive")
            given[f'(name = "{party}"\n(?:.*\n){{2}})token = "[^"]*"'] = rf'\1token = "{token}"'
        for place, value in given.items():
            text, count = re.subn(place, value, text)
            assert count == 1, place
        self.file("passive").write_text(text, encoding="utf-8")

    def send_certificates(self) -> None:
        """Step 3: the public files, under the names of the page."""
        for party, hospital in FILES.items():
            other = self.home / ("B" if hospital == "A" else "A")
            own = self.home / hospital / party / "tls/certificate.pem"
            shutil.copy(own, other / f"{hospital.lower()}-{party}.pem")

    def said(self, party: str) -> str:
        return (self.file(party).parent / f"{party}.log").read_text(encoding="utf-8")

    def run(self, hospital: str, arguments: list[str]) -> None:
        """A command as it stands on the page; a party is left running."""
        folder = self.home / hospital
        if arguments[0] == "serve":
            self.parties[arguments[1]] = terminals.start(
                arguments, folder / f"{arguments[1]}.log", folder=folder
            )
            return
        self._patch.chdir(folder)
        ended = self._vflens(*map(self._on_this_machine, arguments))
        may_be_over = arguments[:2] == ["certs", "check"]  # the run takes a second
        assert ended.code in ((0, 11) if may_be_over else (0,)), (arguments, ended)


@pytest.fixture
def hospitals(tmp_path: Path, vflens: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hospitals]:
    monkeypatch.setattr(identity, "_LOOK_SECONDS", 0.0)  # commands run in one process here
    made = Hospitals(tmp_path, vflens, monkeypatch)
    yield made
    for party in made.parties.values():
        party.kill()
        party.wait()


def test_the_commands_end_with_a_report(hospitals: Hospitals) -> None:
    hospitals.move_in()
    done = []
    for hospital, arguments in commands():
        match arguments[:2]:
            case ["secrets", "init"] if hospital == "B":
                hospitals.look_into_files()
                hospitals.give_secrets()
            case ["certs", "trust"] if hospital == "B":
                hospitals.send_certificates()
            case ["status", _]:
                eventually(lambda: bool(re.search("waiting for|is ready", hospitals.said("passive"))))
            case ["report", _]:
                assert {p: c.wait(120) for p, c in hospitals.parties.items()} == dict.fromkeys(FILES, 0)
        hospitals.run(hospital, arguments)
        done.append(f"{hospital} {arguments[0]}")
    assert len(set(done)) > 8
    log = (hospitals.home / "B/passive/events.jsonl").read_text(encoding="utf-8")
    assert '"of": "active", "ids": 200' in log  # blinded, not hashed under a key that both have
    report = (hospitals.home / "B/report.html").read_text(encoding="utf-8")
    assert "clear_features" in report
    assert "no reconstruction was scored" not in report
    assert not any("example-" in hospitals.file(p).read_text(encoding="utf-8") for p in FILES)
