"""Run every console line of the pages where there is no checkout: the wheel, its core dependencies, and the
examples that it holds.

``make wheel-check`` runs it; it needs Python with ``venv`` and ``pip``, nothing else. The wheel adds one
import package, and the source distribution builds an equal one. Folders called as ours lie where the lines
run, and raise when something imports them. A line that stands on several pages runs once. ``serve`` lines
start together, answer the line that follows them, and end with Ctrl-C at the coordinator.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "docs/quickstart.md",
    "docs/own-plugins.md",
    "docs/three-terminals.md",
    "docs/python.md",
    "docs/audit.md",
    "docs/release.md",
    "docs/evidence.md",
    "docs/threat-models.md",
    "docs/sweeps.md",
    "docs/submit.md",
    "docs/operating.md",
    "docs/verify-log.md",
    "docs/others.md",
    "docs/horizontal.md",
)
#: Those of them whose Python blocks are one program.
RUN_PYTHON = ("README.md", "docs/quickstart.md", "docs/own-plugins.md", "docs/python.md")
#: Pages on parties of their own: their lines run in a folder of those, as far as one machine goes.
HOSPITALS = ("docs/two-hospitals.md", "docs/certificates.md")
#: The tutorials that the doors name, whose code runs as a program.
TUTORIALS = ("audit", "messy", "neighbour", "ranked")

_SEEN = "it needs a file of what another program saw"
_MACHINES = "it needs the other organisation's machine: tests/e2e/test_two_hospitals.py runs it"
_CLUSTER = "it needs a cluster"
#: How lines of the pages begin that do not run here, and why.
LEFT_OUT = {
    "make test": "the suite is no part of the wheel",
    "python3 -m venv": "done already",
    "pip install ./vflens": "done already",
    "vflens examples copy": "done already",
    "vflens demo": "the same as make demo",
    "DASK_SCHEDULER_ADDRESS=": _CLUSTER,
    "vflens sweep sweep.toml --out /shared": _CLUSTER,
    "'parts=$(sbatch": _CLUSTER,
    "sbatch": _CLUSTER,
    "vflens score estimate.npz --truth truth.npz": _SEEN,
    "vflens attack --arrays seen.npz --attack instance_spaces": _SEEN,
    "vflens attack --arrays seen.npz --attack histograms": _SEEN,
    "python -c 'import joblib": _SEEN,
    "vflens watch": "it needs the extra watch",
    "vflens serve client": "tests/e2e/test_horizontal_runs.py runs such",
    "vflens serve server": "tests/e2e/test_horizontal_runs.py runs such",
    "vflens predict --config examples/north.toml": "its client did not run here",
    "vflens serve active --config active.toml": _MACHINES,
    "vflens serve passive --config passive.toml": _MACHINES,
    "vflens serve coordinator --config coordinator.toml": _MACHINES,
    "vflens certs check": _MACHINES,
    "vflens status --config passive.toml": _MACHINES,
    "vflens report passive": _MACHINES,
    "vflens verify-log passive": _MACHINES,
    "mv next.pem": "the place is that of the party",
    "vflens predict --to": _MACHINES,
}
#: What readers do between the lines, by the line before which they do it.
BEFORE = {
    "vflens secrets init passive.toml": (
        "printf '\\n[data.encode]\\njob = \"one_hot\"\\n' >> passive.toml; "
        'for peer in active coordinator; do python -c "import re, sys, tomllib; from pathlib import Path; '
        "given = next(p['token'] for p in tomllib.load(open(sys.argv[1] + '.toml', 'rb'))['peers'] "
        "if p['name'] == 'passive'); file = Path('passive.toml'); file.write_text(re.sub('(name = .' + "
        "sys.argv[1] + '.\\n(?:.*\\n){2})token = .*', lambda m: m[1] + f'token = \\x22{given}\\x22', "
        'file.read_text()))" $peer; done'
    ),
    "vflens certs trust passive.toml a-active.pem a-coordinator.pem": (
        "for one in a-active a-coordinator b-passive; do cp ${one#?-}/tls/certificate.pem $one.pem; done"
    ),
    "vflens certs init active.toml": (  # another federation
        "sed -i 's/^run = .*/run = \"hospitals\"/' active.toml passive.toml; rm -r active/tls passive/tls"
    ),
    "vflens certs trust passive.toml bank.pem": "cp active/tls/certificate.pem bank.pem",
    "vflens certs sign certificate.csr --authority our-authority": "cp passive/tls/certificate.csr .",
}
#: Lines that are refused, with their exit codes.
REFUSED = {
    "vflens audit examples/bank_passive.csv --weights examples/recorded/secretflow/alice.pt": 3,
}

#: Folders that a user may have where VFLens runs, under the names of ours.
OWN_FOLDERS = ("attacks", "cli", "clients", "coordinator", "defenses", "protos", "services")

#: Builds the distribution named first of the project here, into the folder named second.
BUILD = "import sys, setuptools.build_meta as b; getattr(b, 'build_' + sys.argv[1])(sys.argv[2])"

#: What no output may have: a tutorial prints what its commands do.
_UNEXPECTED = ("Traceback (most recent call last)", "error: unexpected")

#: Variables that lead back to the checkout, or that speak to its own pytest.
OURS = ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS", "PYTEST_PLUGINS")

#: Seconds for one line, and for the parties to begin and to end.
LINE, BEGIN, END = 600.0, 120.0, 60.0


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a language on a page."""
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return fence.findall((ROOT / page).read_text(encoding="utf-8"))


def lines(pages: Sequence[str] = (*PAGES, *HOSPITALS)) -> list[str]:
    """Each console line once, without its comment and the path of the environment."""
    bodies = (body for page in pages for kind in ("sh", "console") for body in blocks(page, kind))
    found = (line.removeprefix("$ ") for body in bodies for line in body.splitlines())
    words = (shlex.join(shlex.split(line, comments=True)) for line in found)
    return list(dict.fromkeys(line.removeprefix(".venv/bin/") for line in words if line))


def left_out(line: str) -> str:
    """Why ``line`` does not run here, "" if it does."""
    return next((why for begin, why in LEFT_OUT.items() if line.startswith(begin)), "")


def program(tutorial: str) -> str:
    """The code of a notebook."""
    notebook = json.loads((ROOT / f"docs/tutorials/{tutorial}.ipynb").read_text(encoding="utf-8"))
    return "\n\n".join("".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code")


def commands(line: str) -> list[str]:
    """What a line runs: itself, or of ``make TARGET`` the recipe."""
    if not line.startswith("make "):
        return [line]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(rf"^{line.removeprefix('make ')}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    return [] if recipe is None else recipe[1].replace("\t$(BIN)/", "").splitlines()


def main() -> None:
    """Build, install, run; ends with 1 at the first line that fails."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell's background ignores, children do
    with tempfile.TemporaryDirectory(prefix="vflens-wheel-") as made, ExitStack() as ends:
        folder = Path(made)
        _install(folder)
        _run(folder, ["vflens", "examples", "copy"], "vflens examples copy")
        _add_own_folders(folder)
        hospitals = _hospitals(folder)
        for pages, place in ((PAGES, folder), (HOSPITALS, hospitals)):
            terminals = Terminals(place)
            ends.callback(terminals.kill)
            for line in lines(pages):
                if why := left_out(line):
                    print(f"left out: {line}: {why}", flush=True)
                    continue
                for command in commands(line):
                    terminals.enter(command)
        for page in RUN_PYTHON:
            code = "\n".join(blocks(page, "python"))
            _run(folder, [".venv/bin/python", "-c", code], f"the Python blocks of {page}")
        tutorials = folder / "docs/tutorials"
        tutorials.mkdir(parents=True)
        for name in TUTORIALS:
            _run(tutorials, [str(folder / ".venv/bin/python"), "-c", program(name)], f"the tutorial {name}")


def _hospitals(folder: Path) -> Path:
    """A folder for all parties of two hospitals, with their tables."""
    home = folder / "hospitals"
    home.mkdir()
    (home / ".venv").symlink_to(folder / ".venv")
    for table in folder.glob("examples/bank_*.csv"):
        shutil.copy(table, home)
    return home


def _install(folder: Path) -> None:
    """The wheel of this checkout on the locked core, as the image has it, in ``folder``/.venv."""
    wheel = _built(folder)
    venv.create(folder / ".venv", with_pip=True)
    _run(folder, [*_pip(".venv"), *_locked("core.txt")], "pip install of the locked core")
    _run(folder, [*_pip(".venv"), "install", "--no-deps", str(wheel)], "pip install of the wheel")
    _run(folder, [*_pip(".venv"), "check"], "the locked core is all that the wheel needs")
    core = "import importlib.util as u, sys; sys.exit(any(map(u.find_spec, ('torch', 'cvxpy', 'pandas'))))"
    _run(folder, [".venv/bin/python", "-c", core], "no extra in the core")


def _pip(environment: str) -> list[str]:
    return [f"{environment}/bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet"]


def _locked(name: str) -> list[str]:
    return ["install", "--require-hashes", "-r", str(ROOT / "requirements" / name)]


def _built(folder: Path) -> Path:
    """The wheel of this checkout, equal to that of its source distribution."""
    ignored = shutil.ignore_patterns(".*", "build", "dist", "runs", "tests", "*.egg-info", "__pycache__")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=ignored, symlinks=True)  # a build leaves files where it reads them
    venv.create(folder / "builder", with_pip=True)
    _run(folder, [*_pip("builder"), *_locked("build.txt")], "pip install of the locked builder")
    builder = str(folder / "builder/bin/python")
    for kind in ("sdist", "wheel"):
        _run(source, [builder, "-c", BUILD, kind, str(folder / "dist")], f"{kind} of the checkout")
    (archive,) = (folder / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    _run(unpacked, [builder, "-c", BUILD, "wheel", str(folder / "again")], "wheel of the sdist")
    (wheel,), (again,) = ((folder / place).glob("*.whl") for place in ("dist", "again"))
    _check_wheel(contents(wheel), contents(again))
    shutil.rmtree(source)
    return wheel


def contents(wheel: Path) -> dict[str, bytes]:
    """File → bytes of a wheel, but for its list of files, whose order is not fixed."""
    with ZipFile(wheel) as packed:
        return {n: packed.read(n) for n in packed.namelist() if not n.endswith((".dist-info/RECORD", "/"))}


def _check_wheel(wheel: dict[str, bytes], again: dict[str, bytes]) -> None:
    if wrong := problems(wheel, again):
        _fail("the wheel", f"{wrong}\n")


def problems(wheel: dict[str, bytes], again: dict[str, bytes]) -> str:
    """What is wrong with the wheel of a checkout beside that of its sdist; "" if nothing is."""
    tops = {name.partition("/")[0] for name in wheel}
    others = {top for top in tops if not re.fullmatch(r"vflens-[\w.]+\.dist-info", top)}
    if others != {"vflens"} or "vflens/py.typed" not in wheel:
        return f"it adds {', '.join(sorted(others))}: exactly the typed package vflens is due"
    different = sorted(n for n in {*wheel, *again} if wheel.get(n) != again.get(n))
    return f"the sdist builds another: {', '.join(different[:9])}" if different else ""


def _add_own_folders(folder: Path) -> None:
    for name in OWN_FOLDERS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise ImportError('{name} of the user')\n", "utf-8")


class Terminals:
    """Terminals in ``folder``: one for each party that serves, and another for all else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parties: dict[str, subprocess.Popen[bytes]] = {}

    def enter(self, command: str) -> None:
        """Run a line; where parties serve, begin after them and end them afterwards."""
        words = shlex.split(command)
        if words[:2] == ["vflens", "serve"]:
            with (self.folder / f"{words[2]}.log").open("wb") as log:
                self.parties[words[2]] = subprocess.Popen(
                    words,
                    cwd=self.folder,
                    env=environment(self.folder),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            print(f"started: {command}", flush=True)
            return
        if self.parties:
            self._wait_until_serving()
        if before := BEFORE.get(command):
            _run(self.folder, ["sh", "-ec", before], f"what goes before {command}")
        _run(self.folder, words, command, REFUSED.get(command, 0))
        self._interrupt()

    def kill(self) -> None:
        """End what is left."""
        for process in self.parties.values():
            process.kill()
            process.wait()

    def _wait_until_serving(self) -> None:
        until = time.monotonic() + BEGIN
        while b"serving predictions" not in (self.folder / "coordinator.log").read_bytes():
            ended = [party for party, process in self.parties.items() if process.poll() is not None]
            if ended or time.monotonic() > until:
                _fail("three terminals", self._said())
            time.sleep(0.1)

    def _interrupt(self) -> None:
        """Ctrl-C at the coordinator, which ends all of them."""
        for process in filter(None, [self.parties.get("coordinator")]):
            process.send_signal(signal.SIGINT)
        try:
            codes = [process.wait(END) for process in self.parties.values()]
        except subprocess.TimeoutExpired:
            _fail(f"three terminals did not end within {END:.0f} s", self._said())
        if any(codes):
            _fail(f"three terminals ended with {codes}", self._said())
        self.parties.clear()

    def _said(self) -> str:
        return "".join((self.folder / f"{party}.log").read_text(encoding="utf-8") for party in self.parties)


def _run(folder: Path, words: list[str], name: str, code: int = 0) -> None:
    begun = time.monotonic()
    try:
        ran = subprocess.run(
            words,
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LINE,
        )
    except subprocess.TimeoutExpired:
        _fail(name, f"it did not end within {LINE:.0f} s\n")
    if ran.returncode != code or any(bad in ran.stdout for bad in _UNEXPECTED):
        _fail(name, f"{ran.stdout}it ended with code {ran.returncode}\n")
    print(f"{time.monotonic() - begun:5.1f} s  {name}", flush=True)


def environment(folder: Path) -> dict[str, str]:
    """That of a user: without what is ours."""
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    return {**kept, "PATH": f"{folder / '.venv' / 'bin'}{os.pathsep}{kept['PATH']}"}


def _fail(name: str, text: str) -> NoReturn:
    sys.exit(f"{text}FAILED: {name}")


if __name__ == "__main__":
    main()
