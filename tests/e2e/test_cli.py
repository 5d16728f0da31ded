"""The command line: help with examples, strict JSON, and one sentence with its exit code for whatever goes wrong."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from laboratory import deal
from processes import ATTENDED, ENVIRONMENT, VFLENS, change, eventually, experiment_file

import cli.main
from experiments.config import load_experiment
from vfl.errors import VflensError

ROOT = Path(__file__).parents[2]


class Ended:
    """What a command printed and returned."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Run = Callable[..., Ended]


@pytest.fixture
def vflens(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """The command line, called in this process."""
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def run(*arguments: str | Path) -> Ended:
        monkeypatch.setattr(sys, "argv", ["vflens", *map(str, arguments)])
        capsys.readouterr()
        try:
            cli.main.command_line()
            code: Any = 0
        except SystemExit as end:
            code = end.code or 0
        return Ended(code, *capsys.readouterr())

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def refused(vflens: Run) -> Callable[..., str]:
    """The one sentence of a command that ends with this exit code."""

    def run(code: int, *arguments: str | Path) -> str:
        ended = vflens(*arguments)
        assert ended.code == code, ended.err
        assert ended.out == ""
        sentence, end = ended.err.removeprefix("error: "), ended.err[-1:]
        assert ended.err.startswith("error: ")
        assert end == "\n"
        assert sentence.count("\n") == 1
        return sentence.rstrip("\n")

    return run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run, in one process."""
    folder = tmp_path_factory.mktemp("whole")
    file = experiment_file(folder, disclose=[{"what": "parameters", "to": "active"}])
    command = [*VFLENS, "run", str(file), "--in-process", "--json"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=60)
    return Path(strict(done.stdout)["folder"])


@pytest.fixture
def dealt(tmp_path: Path) -> Path:
    """One dealt folder a party."""
    deal(load_experiment(experiment_file(tmp_path)), tmp_path / "dealt")
    return tmp_path / "dealt"


def strict(text: str) -> Any:
    """JSON as its standard has it: no NaN, no Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def commands() -> list[list[str]]:
    group = typer.main.get_command(cli.main.app)
    found: list[list[str]] = []
    for name, command in sorted(group.commands.items()):  # type: ignore[attr-defined]
        found += [[name, inner] for inner in sorted(getattr(command, "commands", {}))] or [[name]]
    return found


class TestHelp:
    def test_all_commands_are_covered(self) -> None:
        assert len(commands()) >= 14

    @pytest.mark.parametrize("command", commands(), ids=" ".join)
    def test_every_command_shows_an_example_of_itself(self, vflens: Run, command: list[str]) -> None:
        ended = vflens(*command, "--help")
        assert ended.code == 0
        assert f"Example: vflens {' '.join(command)}" in " ".join(ended.out.split())

    def test_exit_codes_are_listed(self, vflens: Run) -> None:
        text = " ".join(vflens("--help").out.split())
        for code in {c.exit_code for c in VflensError.__subclasses__()}:
            assert re.search(rf"\b{code} \w", text), code

    @pytest.mark.parametrize(
        "wrong", [["nosuch"], ["run"], ["run", "a", "b"], ["serve", "passive"], ["run", "--zz"]]
    )
    def test_usage_errors(self, vflens: Run, wrong: list[str]) -> None:
        ended = vflens(*wrong)
        assert ended.code == 2
        assert "Usage" in ended.err

    @pytest.mark.parametrize(
        "command", [["--help"], ["datasets", "list"], ["attacks", "--json"], ["version"]]
    )
    def test_light_commands_load_nothing_heavy(self, command: list[str]) -> None:
        code = (
            "import sys, cli.main\n"
            f"sys.argv = ['vflens', *{command!r}]\n"
            "try: cli.main.command_line()\n"
            "except SystemExit: pass\n"
            "heavy = {'torch', 'cvxpy', 'sklearn', 'grpc', 'scipy', 'pyarrow', 'plotly'} & set(sys.modules)\n"
            "sys.exit(', '.join(sorted(heavy)) or 0)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


class TestJson:
    @pytest.mark.parametrize(
        "command",
        [["datasets", "list"], ["datasets", "show", "wine"], ["attacks"], ["defenses"], ["version"]],
        ids=" ".join,
    )
    def test_lists(self, vflens: Run, command: list[str]) -> None:
        ended = vflens(*command, "--json")
        assert (ended.code, ended.err) == (0, "")
        assert strict(ended.out)

    def test_results(self, vflens: Run, whole: Path, tmp_path: Path) -> None:
        run = whole / "run"
        report = strict(vflens("report", run, "--out", tmp_path / "r.html", "--json").out)
        assert report["report"] == str(tmp_path / "r.html")
        attacked = vflens("attack", run / "active", "--attack", "ls", "--out", tmp_path / "e.npz", "--json")
        assert strict(attacked.out)["rows"] == 18
        scored = strict(
            vflens("score", tmp_path / "e.npz", "--config", run / "passive/config.toml", "--json").out
        )
        assert scored["attack"] == "ls"
        assert scored["mse"] >= 0
        assert strict(vflens("compare", run, run, "--json").out) is not None
        assert strict(vflens("check", run / "active/config.toml", "--json").out)["rows"] == 90
        split = strict(
            vflens(
                "datasets", "split", whole.parents[1] / "experiment.toml", "--out", tmp_path / "d", "--json"
            ).out
        )
        assert set(split) == {"active", "coordinator", "passive"}

    def test_figures_that_are_not_finite_become_null(self, capsys: pytest.CaptureFixture[str]) -> None:
        from cli.output import emit

        emit(True, {"a": [np.float64("nan"), (float("inf"),)], "b": {"c": -np.inf, "d": 1.5}}, str)
        assert strict(capsys.readouterr().out) == {"a": [None, [None]], "b": {"c": None, "d": 1.5}}


def test_check_takes_the_examples(vflens: Run) -> None:
    """Examples that need no file of the machine's."""
    ended = vflens("check", ROOT / "examples/demo.toml")
    assert (ended.code, ended.err) == (0, "")
    assert "fits:" in ended.out


BASE = 'name = "x"\n[data]\nname = "synthetic"\nrows = 40\n[split]\nkind = "fraction"\nfraction = 0.5\n'
WRONG_EXPERIMENTS = [
    (b"", 2, "name: Field required"),
    (b"name = ", 2, "is not TOML: Invalid value (at end of document)"),
    (b"\xff\xfe", 2, "is not TOML: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    (b"a = " + b"[" * 5000, 2, "is not TOML: it is nested too deeply"),
    (b"name = 3", 2, "name: Input should be a valid string (got 3)"),
    (b'name = "../x"', 2, "name: String should match pattern"),
    (
        BASE.replace("0.5", "1.5").encode(),
        2,
        "split.fraction.fraction: Input should be less than 1 (got 1.5)",
    ),
    (f"colour = 1\n{BASE}".encode(), 2, "colour: Extra inputs are not permitted"),
    (
        f"{BASE}[training]\nepochs = {10**30}".encode(),
        2,
        "training.epochs: Input should be less than or equal to 2147483647",
    ),
    (
        f"{BASE}[training]\nlearning_rate = nan".encode(),
        2,
        "training.learning_rate: Input should be a finite number (got nan)",
    ),
    (
        f"{BASE}[training]\nlearning_rate = inf".encode(),
        2,
        "training.learning_rate: Input should be a finite number (got inf)",
    ),
    (
        f"{BASE}[training]\nepochs = 0".encode(),
        2,
        "training.epochs: Input should be greater than or equal to 1 (got 0)",
    ),
    (
        f"{BASE}[limits]\nwait_seconds = inf".encode(),
        2,
        "limits.wait_seconds: Input should be less than or equal to 1000000 (got inf)",
    ),
    (
        f"{BASE}[limits]\nmessage_mib = 4096".encode(),
        2,
        "limits.message_mib: Input should be less than or equal to 2047 (got 4096)",
    ),
    (
        BASE.replace("synthetic", "nosuch").encode(),
        9,
        "unknown vfl.datasets plug-in 'nosuch': known are adult, ",
    ),
    (
        BASE.replace("rows = 40", "rows = 4").encode(),
        2,
        "data set 'synthetic': rows: Input should be greater than or equal to 10 (got 4)",
    ),
    (f"{BASE}[[attacks]]\nname = 'nosuch'".encode(), 9, "unknown attacks plug-in 'nosuch': known are "),
    (f"{BASE}[[attacks]]\nname = 'half'\nstrength = 3".encode(), 2, "attacks plug-in 'half': strength: "),
    (
        f"{BASE}[[scenarios]]\nname = 's'\n[[scenarios.defenses]]\nname = 'nosuch'\nat = 'passive'".encode(),
        9,
        "unknown defenses plug-in 'nosuch'",
    ),
    (
        f"{BASE}[[scenarios]]\nname = 's'\n[[scenarios.defenses]]\nname = 'label_only'\nat = 'passive'".encode(),
        2,
        "defence 'label_only' at passive 'passive' would never act",
    ),
    (f"{BASE}[[disclose]]\nwhat = 'parameters'\nto = 'nobody'".encode(), 2, "party 'nobody' is none of"),
    (
        f"{BASE}[parties]\npassive = ['operator']".encode(),
        2,
        "party 'operator': this name is kept for people who ask, choose another",
    ),
    (f"{BASE}[parties]\npassive = ['a', 'a']".encode(), 2, "give every party its own name"),
]


@pytest.mark.parametrize(("text", "code", "words"), WRONG_EXPERIMENTS, ids=range(len(WRONG_EXPERIMENTS)))
def test_wrong_experiments(
    refused: Callable[..., str], tmp_path: Path, text: bytes, code: int, words: str
) -> None:
    file = tmp_path / "e.toml"
    file.write_bytes(text)
    assert words in refused(code, "check", file)


def changed_table(dealt: Path, column: str, value: Any) -> None:
    """The passive party's table with ``value`` in the first row of ``column``, None removing the column."""
    file = dealt / "passive/data.parquet"
    table = pq.read_table(file).to_pydict()
    if value is None:
        del table[column]
    else:
        table[column][0] = value
    pq.write_table(pa.table(table), file)


class TestWrongParties:
    """Every way in which one party's own files cannot be used."""

    @pytest.mark.parametrize(
        ("changes", "code", "words"),
        [
            ({"role": "judge"}, 2, "role is 'judge': a party is passive, active or coordinator"),
            (
                {"address": "127.0.0.1:99999"},
                2,
                "address '127.0.0.1:99999' is not host:port with a port from 1 to 65535, nor unix:PATH",
            ),
            (
                {"address": "0.0.0.0:50051"},
                2,
                "address '0.0.0.0:50051' is not loopback and there is no TLS: bind 127.0.0.1, or set insecure = true on a private network",
            ),
            ({"address": "unix:"}, 2, "address 'unix:' names no path: write unix:PATH"),
            (
                {"address": "unix:/no/such/folder/s"},
                2,
                "address 'unix:/no/such/folder/s' cannot be bound (there is no folder /no/such/folder): make it",
            ),
            (
                {"address": f"unix:{'x' * 101}"},
                2,
                "a socket's path holds at most 100 bytes, choose a shorter folder",
            ),
            ({"peers": []}, 2, "peers name 0 parties with role 'coordinator': exactly one is needed"),
            (
                {"disclose": [{"what": "moments", "to": "nobody"}]},
                2,
                "disclose.to = 'nobody' is no peer that takes disclosures: name one of ['coordinator', 'active']",
            ),
            (
                {"disclose": [{"what": "moments", "to": "active", "rows": 3}]},
                2,
                "rows (at least 1) belong to auxiliary and labels, and only there",
            ),
            ({"alignment_key": "short"}, 2, "alignment_key: String should have at least 16 characters"),
            ({"defenses": [{"name": "nosuch"}]}, 9, "unknown defenses plug-in 'nosuch': known are "),
            ({"out": "/dev/null/x"}, 12, "/dev/null cannot be written"),
        ],
    )
    def test_settings(
        self, refused: Callable[..., str], dealt: Path, changes: dict[str, Any], code: int, words: str
    ) -> None:
        file = dealt / "passive/config.toml"
        change(file, **changes)
        for command in (("check", file), ("serve", "passive", "--config", file)):
            assert words in refused(code, *command) or "out" in changes

    def test_secrets_are_never_repeated(self, refused: Callable[..., str], dealt: Path) -> None:
        change(
            dealt / "passive/config.toml", alignment_key="hush", seed=42, operator_token="hush-hush-hush-hush"
        )
        said = refused(2, "check", dealt / "passive/config.toml")
        assert "hush" not in said
        assert "42" not in said

    @pytest.mark.parametrize(
        ("column", "value", "words"),
        [
            ("x7", None, "column 'x7'"),
            ("x7", float("nan"), "column 'x7'"),
            ("x7", float("inf"), "column 'x7'"),
            ("id", None, "column 'id'"),
            ("id", "synthetic-000001", "'synthetic-000001'"),
            ("split", "tomorrow", "'tomorrow'"),
        ],
    )
    def test_tables(
        self, refused: Callable[..., str], dealt: Path, column: str, value: Any, words: str
    ) -> None:
        changed_table(dealt, column, value)
        file = dealt / "passive/config.toml"
        for command in (("check", file), ("serve", "passive", "--config", file)):
            assert words in refused(3, *command)

    def test_labels_outside_their_classes(self, refused: Callable[..., str], dealt: Path) -> None:
        file = dealt / "active/config.toml"
        data = tomllib.loads(file.read_text())["data"]
        change(file, data=data | {"classes": ["0", "1"]})
        assert "'2'" in refused(3, "check", file)

    def test_the_wrong_role(self, refused: Callable[..., str], dealt: Path) -> None:
        file = dealt / "passive/config.toml"
        assert refused(2, "serve", "active", "--config", file) == (
            f"{file} configures role 'passive', not 'active': say `vflens serve passive`, or give another file"
        )


class TestWrongPaths:
    @pytest.mark.parametrize("command", ["run", "check"])
    def test_configurations(self, refused: Callable[..., str], tmp_path: Path, command: str) -> None:
        file = tmp_path / "none.toml"
        assert (
            refused(2, command, file)
            == f"configuration {file} cannot be read (No such file or directory): check the path"
        )
        assert (
            refused(2, command, tmp_path)
            == f"configuration {tmp_path} cannot be read (Is a directory): check the path"
        )

    @pytest.mark.parametrize("out", ["/proc/x", "/dev/null", "/dev/null/x"])
    def test_folders_that_cannot_be_written(
        self, refused: Callable[..., str], tmp_path: Path, out: str
    ) -> None:
        file = experiment_file(tmp_path)
        assert f"{out}/tiny cannot be made (" in refused(12, "run", file, "--in-process", "--out", out)
        assert f"{out}/coordinator cannot be written (" in refused(
            12, "datasets", "split", file, "--out", out
        )

    def test_evidence_that_is_none(self, refused: Callable[..., str], whole: Path, tmp_path: Path) -> None:
        passive = whole / "run/passive/config.toml"
        assert refused(3, "report", tmp_path / "x").startswith(f"{tmp_path / 'x'} is no folder: ")
        assert refused(3, "compare", tmp_path, whole).startswith(f"{tmp_path} holds no run: ")
        assert refused(12, "attack", tmp_path, "--attack", "ls").startswith(
            f"{tmp_path} holds no aligned federation"
        )
        assert refused(9, "attack", whole / "run/active", "--attack", "x").startswith(
            "unknown attacks plug-in 'x'"
        )
        assert (
            refused(2, "attack", whole / "run/active", "--attack", "ls", "--target", "x")
            == "--target 'x': name one of passive"
        )
        for name, written in (("torn.npz", b"PK\3\4"), ("empty.npz", b""), ("text.npz", b"hello")):
            (tmp_path / name).write_bytes(written)
            assert "holds no readable arrays" in refused(12, "score", tmp_path / name, "--config", passive)
        np.save(tmp_path / "bare.npy", np.ones(3))
        assert "holds no readable arrays" in refused(12, "score", tmp_path / "bare.npy", "--config", passive)
        np.savez(tmp_path / "other.npz", values=np.ones(3))
        assert "is no estimate, it lacks " in refused(3, "score", tmp_path / "other.npz", "--config", passive)
        assert "only the target, a data party, can score" in refused(
            2, "score", tmp_path / "other.npz", "--config", whole / "run/coordinator/config.toml"
        )

    @pytest.mark.parametrize(
        ("rows", "words"),
        [
            ("x", "give all, or numbers and ranges such as 0-9,17"),
            ("", "give all, or numbers and ranges such as 0-9,17"),
            ("-1", "give all, or numbers and ranges such as 0-9,17"),
            ("5-3", "names no row: a range goes from the lower to the higher number"),
            (f"0-{10**18}", "there are 18 prediction rows, counted from 0"),
        ],
    )
    def test_rows_to_predict(self, refused: Callable[..., str], whole: Path, rows: str, words: str) -> None:
        config = whole / "run/active/config.toml"
        assert (
            refused(2, "predict", "--config", config, f"--rows={rows}")
            == f"--rows {rows!r}{':' if 'names' not in words else ''} {words}"
        )

    def test_nobody_serves(self, refused: Callable[..., str], whole: Path) -> None:
        config = whole / "run/active/config.toml"
        assert refused(11, "predict", "--config", config).startswith("party 'active' cannot be reached (")
        said = refused(2, "predict", "--config", whole / "run/passive/config.toml")
        assert said.endswith(
            "is not an active party's configuration with an operator_token: predictions are asked there"
        )

    @pytest.mark.parametrize("folder", [None, "/nope", "/dev/null"])
    def test_the_data_folder(
        self, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, folder: str | None
    ) -> None:
        monkeypatch.delenv("VFLENS_DATA", raising=False)
        if folder:
            monkeypatch.setenv("VFLENS_DATA", folder)
        assert "VFLENS_DATA" in refused(3, "datasets", "show", "mnist")


class TestUnforeseen:
    """What nobody thought of is one sentence too, and its traceback can be had."""

    @pytest.mark.parametrize(
        ("error", "code", "words"),
        [
            (
                RuntimeError("two\nlines"),
                1,
                "unexpected RuntimeError: two lines: please report it, with VFLENS_TRACEBACK=1 set",
            ),
            (
                OSError(28, "No space left on device"),
                12,
                "[Errno 28] No space left on device: free space, or choose another file or folder",
            ),
            (MemoryError("9 PiB"), 1, "out of memory (9 PiB): ask for fewer rows or columns"),
        ],
    )
    def test_one_sentence(
        self,
        refused: Callable[..., str],
        monkeypatch: pytest.MonkeyPatch,
        error: Exception,
        code: int,
        words: str,
    ) -> None:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr("experiments.check.check", fail)
        assert refused(code, "check", "x.toml") == words

    def test_the_traceback_on_request(self, vflens: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("experiments.check.check", lambda _: 1 / 0)
        monkeypatch.setenv("VFLENS_TRACEBACK", "1")
        ended = vflens("check", "x.toml")
        assert ended.err.startswith("error: unexpected ZeroDivisionError: division by zero")
        assert "Traceback" in ended.err

    def test_a_signal_before_the_command_has_begun(
        self, vflens: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted() -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("cli.main.app", interrupted)
        ended = vflens("version")
        assert (ended.code, ended.err) == (130, "interrupted: what was computed so far is kept\n")

    def test_a_reader_that_left(self) -> None:
        """As in `vflens datasets list | head -1`."""
        command = f"{' '.join(VFLENS)} datasets list | true"
        done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.stderr == ""

    def test_an_interruption_while_dealing(self, tmp_path: Path) -> None:
        data = {"name": "synthetic", "rows": 2_000_000, "features": 40, "informative": 20}
        file = experiment_file(tmp_path, data=data)
        running = subprocess.Popen(
            [*ATTENDED, *VFLENS, "run", str(file)],
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
            text=True,
        )
        eventually(lambda: psutil.Process(running.pid).memory_info().rss > 400e6)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
        assert running.returncode == 130
        assert said == "interrupted: what was computed so far is kept\n"
        assert not (tmp_path / "runs/tiny/report.html").exists()
