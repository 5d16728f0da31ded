"""One sentence and its exit code refuse unusable experiments, party files and paths."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from commandline import Run
from laboratory import deal
from processes import change, experiment_file

from vflens.errors import StorageError
from vflens.experiments.run.loading import load_experiment


@pytest.fixture
def dealt(tmp_path: Path) -> Path:
    """One dealt folder a party."""
    deal(load_experiment(experiment_file(tmp_path)), tmp_path / "dealt")
    return tmp_path / "dealt"


BASE = 'name = "x"\n[data]\nname = "synthetic"\nrows = 40\n[split]\nkind = "fraction"\nfraction = 0.5\n'
NINE = BASE.replace("rows = 40", "rows = 30000\nclasses = 9\ninformative = 9")


WRONG_EXPERIMENTS = [
    (b"", 2, "name: it is missing"),
    (b"name = ", 2, "is not TOML: Invalid value (at end of document)"),
    (b"\xff\xfe", 2, "is not TOML: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    (b"a = " + b"[" * 5000, 2, "is not TOML: it is nested too deeply"),
    (b"name = 3", 2, "name: give a text (got 3)"),
    (b'name = "../x"', 2, "name: give 1 to 64 letters, digits"),
    (
        BASE.replace("0.5", "1.5").encode(),
        2,
        "split.fraction: give less than 1 (got 1.5)",
    ),
    (f"colour = 1\n{BASE}".encode(), 2, "colour: there is no such setting"),
    (
        f"{BASE}[training]\nepochs = {10**30}".encode(),
        2,
        "training.epochs: give 2147483647 or less",
    ),
    (
        f"{BASE}[training]\nlearning_rate = nan".encode(),
        2,
        "training.learning_rate: give a finite number (got nan)",
    ),
    (
        f"{BASE}[training]\nlearning_rate = inf".encode(),
        2,
        "training.learning_rate: give a finite number (got inf)",
    ),
    (
        f"{BASE}[training]\nepochs = 0".encode(),
        2,
        "training.epochs: give 1 or more (got 0)",
    ),
    (
        f"{BASE}[limits]\nwait_seconds = inf".encode(),
        2,
        "limits.wait_seconds: give 1000000 or less (got inf)",
    ),
    (
        f"{BASE}[limits]\nmessage_mib = 4096".encode(),
        2,
        "limits.message_mib: give 2047 or less (got 4096)",
    ),
    (
        BASE.replace("synthetic", "nosuch").encode(),
        9,
        "unknown datasets plug-in 'nosuch': known are adult, ",
    ),
    (
        BASE.replace("rows = 40", "rows = 4").encode(),
        2,
        "data set 'synthetic': rows: give 10 or more (got 4)",
    ),
    (f"{BASE}[[attacks]]\nname = 'nosuch'".encode(), 9, "unknown attacks plug-in 'nosuch': known are "),
    (f"{BASE}[[attacks]]\nname = 'half'\nstrength = 3".encode(), 2, "attacks plug-in 'half': strength: "),
    (
        f"{BASE}[[scenarios]]\nname = 's'\n[[scenarios.defenses]]\nname = 'nosuch'\nat = 'passive'".encode(),
        9,
        "unknown defenses plug-in 'nosuch'",
    ),
    (
        f"{BASE}[[scenarios]]\nname = 's'\n[[scenarios.defenses]]\nname = 'label_only'\nat = "
        "'passive'".encode(),
        2,
        "defence 'label_only' at passive 'passive' would never act",
    ),
    (f"{BASE}[[disclose]]\nwhat = 'parameters'\nto = 'nobody'".encode(), 2, "party 'nobody' is none of"),
    (
        f"{BASE}[[disclose]]\nwhat = 'auxiliary'\nto = 'active'\nrows = 33".encode(),
        2,
        "disclose auxiliary rows = 33 at 'passive': there are 32 training rows, grant fewer",
    ),
    (
        f"{BASE.replace('40', '36000')}[limits]\nmessage_mib = 1".encode(),
        2,
        "limits.message_mib = 1: 36000 row ids in one message take 1.1 MiB, raise it",
    ),
    (
        f"{NINE}[training]\nbatch_size = 15000\n[limits]\nmessage_mib = 1".encode(),
        2,
        "limits.message_mib = 1: the embeddings of 15000 rows (training.batch_size) take 1.1 MiB, raise it, "
        "or lower",
    ),
    (
        f"{BASE}[parties]\npassive = ['operator']".encode(),
        2,
        "party 'operator': this name is reserved for operators, choose another",
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


def test_tables_that_share_too_few_rows(refused: Callable[..., str], tmp_path: Path) -> None:
    """Each fits by itself; what they have in common is known from both."""
    (tmp_path / "passive.csv").write_text("id,x\n1,.1\n2,.2\n3,.3\n", encoding="utf-8")
    (tmp_path / "active.csv").write_text("id,y\n4,no\n5,yes\n", encoding="utf-8")
    files = {"passive": {"file": "passive.csv"}, "active": {"file": "active.csv", "label_column": "y"}}
    settings = {"name": "x", "files": files, "disclose": [{"what": "labels", "to": "passive", "rows": 2}]}
    file = tmp_path / "e.toml"
    file.write_text(tomli_w.dumps(settings | {"disclose": []}), encoding="utf-8")
    assert "the parties share no row (active: 2, passive: 3 rows): check id_column" in refused(
        4, "check", file
    )
    (tmp_path / "active.csv").write_text("id,y\n1,no\n2,yes\n4,no\n5,no\n", encoding="utf-8")
    file.write_text(tomli_w.dumps(settings), encoding="utf-8")
    assert "disclose labels rows = 2 at 'active': there are 1 training row," in refused(2, "check", file)


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
            ({"role": "judge"}, 2, "role is 'judge': a party is passive, active, coordinator, client or"),
            (
                {"address": "127.0.0.1:99999"},
                2,
                "address '127.0.0.1:99999' is not host:port with a port from 1 to 65535, nor unix:PATH",
            ),
            (
                {"address": "0.0.0.0:50051"},
                2,
                "address '0.0.0.0:50051' is not loopback and there is no TLS: add [tls] (vflens certs "
                "init), bind 127.0.0.1, or set insecure = true on a private network",
            ),
            ({"address": "unix:"}, 2, "address 'unix:' names no path: write unix:PATH"),
            (
                {"address": "unix:/tmp/socket"},
                2,
                "address 'unix:/tmp/socket' is not this party's alone: other users can write /tmp (mode "
                "1777): choose a folder of your own",
            ),
            (
                {"address": "unix:/dev/null/x/s"},
                2,
                "address 'unix:/dev/null/x/s' cannot be bound (Not a directory): choose another path",
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
                "disclose.to = 'nobody' is no peer that takes disclosures: name one of ['coordinator', "
                "'active']",
            ),
            (
                {"disclose": [{"what": "moments", "to": "active", "rows": 3}]},
                2,
                "rows (at least 1) belong to all but parameters and moments, and only there",
            ),
            ({"alignment_key": "short"}, 2, "alignment_key: give a text of length 16 or more"),
            ({"defenses": [{"name": "nosuch"}]}, 9, "unknown defenses plug-in 'nosuch': known are "),
            ({"out": "/dev/null/x"}, 12, "cannot be written"),
        ],
    )
    def test_settings(
        self, refused: Callable[..., str], dealt: Path, changes: dict[str, Any], code: int, words: str
    ) -> None:
        file = dealt / "passive/config.toml"
        change(file, **changes)
        for command in (("check", file), ("serve", "passive", "--config", file)):
            assert words in refused(code, *command)

    def test_secrets_are_never_repeated(self, refused: Callable[..., str], dealt: Path) -> None:
        change(
            dealt / "passive/config.toml", alignment_key="hush", seed=42, operator_token="hush-hush-hush-hush"
        )
        printed = refused(2, "check", dealt / "passive/config.toml")
        assert "hush" not in printed
        assert "42" not in printed

    @pytest.mark.parametrize(
        ("column", "value", "words"),
        [
            ("x7", None, "column 'x7'"),
            ("x7", float("nan"), "column 'x7'"),
            ("x7", float("inf"), "column 'x7'"),
            ("id", None, "column 'id'"),
            ("id", "synthetic-000001", "id_column 'id' repeats the id of an earlier row in data row"),
            ("split", "tomorrow", "split_column 'split' holds another text in data row 1: "),
        ],
    )
    def test_tables(self, vflens: Run, dealt: Path, column: str, value: Any, words: str) -> None:
        changed_table(dealt, column, value)
        file = dealt / "passive/config.toml"
        for command in (("check", file), ("serve", "passive", "--config", file)):
            ended = vflens(*command)
            assert (ended.code, ended.out) == (3, "")
            error = ended.err.splitlines()[-1]  # after all that is to be mended
            assert error.startswith("error: ")
            assert words in error

    def test_grants_beyond_its_table(self, refused: Callable[..., str], dealt: Path) -> None:
        file = dealt / "passive/config.toml"
        change(file, disclose=[{"what": "auxiliary", "to": "active", "rows": 73}])
        printed = "disclose auxiliary rows = 73 at 'passive': there are 72 training rows, grant fewer"
        assert refused(2, "check", file) == printed

    def test_labels_outside_their_classes(self, refused: Callable[..., str], dealt: Path) -> None:
        file = dealt / "active/config.toml"
        data = tomllib.loads(file.read_text())["data"]
        change(file, data=data | {"classes": ["0", "1"]})
        printed = refused(3, "check", file)
        assert "label_column 'label' holds another text in data row" in printed
        assert printed.endswith(": its classes are 0, 1 (--show-ids prints which)")

    def test_the_wrong_role(self, refused: Callable[..., str], dealt: Path) -> None:
        file = dealt / "passive/config.toml"
        assert refused(2, "serve", "active", "--config", file) == (
            f"{file} configures role 'passive', not 'active': run `vflens serve passive`, or give another "
            "file"
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

    def test_an_audit_is_said_where_its_page_cannot_be_written(
        self, vflens: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*arguments: Any) -> None:
            raise StorageError("the report cannot be written: choose another place")

        monkeypatch.setattr("vflens.experiments.audit.words.write_audit", full)
        table = Path(__file__).parents[2] / "examples" / "bank_passive.csv"
        quick = ("--models", "1", "--rows", "60", "--known", "10", "--columns", "age,income")
        ended = vflens("audit", table, "--classes", "2", *quick, "--out", tmp_path / "a.html", "--json")
        assert (ended.code, ended.err.count("cannot be written")) == (12, 1)
        assert json.loads(ended.out)["verdict"]

    @pytest.mark.parametrize("asked", [("reproduce", "recipes"), ("sweep", "examples/sweep.toml")])
    def test_folders_of_figures_before_the_work(
        self, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Any
    ) -> None:
        def too_late(*arguments: Any) -> None:
            raise AssertionError("a cell was computed first")

        monkeypatch.setattr("vflens.experiments.sweeps.pool.Pool.run", too_late)
        (file := tmp_path / "file").touch()
        command, name = asked
        what = Path(__file__).parents[2] / name if command == "sweep" else name
        sentence = refused(12, command, what, "--out", file)
        assert sentence == f"out = {file}: {file} cannot be written: choose another folder"

    @pytest.mark.parametrize("out", ["/proc/x", "/dev/null", "/dev/null/x"])
    def test_folders_that_cannot_be_written(
        self, refused: Callable[..., str], tmp_path: Path, out: str
    ) -> None:
        file = experiment_file(tmp_path)
        assert f"{out}/tiny cannot be made (" in refused(12, "run", file, "--in-process", "--out", out)
        assert f"{out}/coordinator cannot be written (" in refused(
            12, "datasets", "split", file, "--out", out
        )

    def test_evidence_that_is_none(
        self, refused: Callable[..., str], finished_run: Path, tmp_path: Path
    ) -> None:
        passive = finished_run / "run/passive/config.toml"
        assert refused(3, "report", tmp_path / "x").startswith(f"{tmp_path / 'x'} is no folder: ")
        assert refused(3, "compare", tmp_path, finished_run).startswith(f"{tmp_path} holds no run: ")
        assert refused(12, "attack", tmp_path, "--attack", "ls").startswith(f"{tmp_path} holds no federation")
        assert refused(9, "attack", finished_run / "run/active", "--attack", "x").startswith(
            "unknown attacks plug-in 'x'"
        )
        assert (
            refused(2, "attack", finished_run / "run/active", "--attack", "ls", "--target", "x")
            == "--target 'x' is no target of this attack: name passive"
        )
        for name, written in (("torn.npz", b"PK\3\4"), ("empty.npz", b""), ("text.npz", b"hello")):
            (tmp_path / name).write_bytes(written)
            printed = refused(12, "score", tmp_path / name, "--config", passive)
            assert "holds no readable arrays" in printed
            assert printed.endswith("): write one with `vflens attack`")
        np.save(tmp_path / "bare.npy", np.ones(3))
        assert "holds no readable arrays" in refused(12, "score", tmp_path / "bare.npy", "--config", passive)
        np.savez(tmp_path / "other.npz", values=np.ones(3))
        assert "is no estimate, it lacks " in refused(3, "score", tmp_path / "other.npz", "--config", passive)
        assert "only the target, a data party, can score" in refused(
            2, "score", tmp_path / "other.npz", "--config", finished_run / "run/coordinator/config.toml"
        )

    def test_nobody_serves(self, refused: Callable[..., str], finished_run: Path) -> None:
        config = finished_run / "run/active/config.toml"
        printed = refused(11, "predict", "--config", config)
        assert printed == (
            f"party 'active' does not run in {config.parent}, its run there is finished: start it, or give "
            "the configuration in the folder of the one that runs"
        )
        for wrong in ((), ("--to", "unix:s"), ("--config", config, "--to", "unix:s", "--token-file", config)):
            printed = refused(2, "predict", *wrong)
            assert printed == "give either --to ADDRESS with --token-file FILE, or --config FILE alone"
        printed = refused(2, "predict", "--to", "10.0.0.1:7001", "--token-file", config)
        assert "is not loopback and there is no TLS" in printed
        printed = refused(2, "predict", "--config", finished_run / "run/passive/config.toml")
        assert "is neither a client's configuration, nor an active party's with an operator_token" in printed

    @pytest.mark.parametrize("folder", [None, "/nope", "/dev/null"])
    def test_the_data_folder(
        self, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, folder: str | None
    ) -> None:
        monkeypatch.delenv("VFLENS_DATA", raising=False)
        if folder:
            monkeypatch.setenv("VFLENS_DATA", folder)
        assert "VFLENS_DATA" in refused(3, "datasets", "show", "mnist")
