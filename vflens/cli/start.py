"""Where a user begins: ``vflens demo``, ``examples``, ``new`` and ``party``."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from vflens.cli.federation import run
from vflens.cli.output import Json, emit

examples = typer.Typer(no_args_is_help=True, help="The examples: list them, copy them.")
new = typer.Typer(
    no_args_is_help=True,
    help="Files to begin with: your own CSV, attack or defence. A party: vflens party init.",
)
party = typer.Typer(no_args_is_help=True, help="The configuration of one party.")
_To = Annotated[Path | None, typer.Option(help="a folder that is not there yet; default: named as the thing")]
_Name = Annotated[str, typer.Argument(help="lower case, as a module of Python: its name in configurations")]


def demo(json: Json = False) -> None:
    """Run the demo: three processes on digits, attacked, then defended, in under a minute.

    It is the experiment demo.toml of `vflens examples copy`; the report goes to runs/digits.

    Example: vflens demo
    """
    from vflens.experiments.starting.copies import EXAMPLES

    run(EXAMPLES / "demo.toml", json=json)


@examples.command("list")
def list_examples(json: Json = False) -> None:
    """List the experiments and configurations among the examples.

    Example: vflens examples list
    """
    from vflens.experiments.starting.copies import experiments

    found = experiments()
    emit(json, found, lambda: "\n".join(f"{name:<26} {text}" for name, text in found.items()))


@examples.command("copy")
def copy(
    to: Annotated[Path, typer.Option(help="a folder that is not there yet")] = Path("examples"),
    json: Json = False,
) -> None:
    """Copy all examples into a folder, to run and to change them.

    Example: vflens examples copy
    """
    from vflens.experiments.starting.copies import copy_examples

    _emit(json, copy_examples(to), {f"vflens run {_quoted(to / 'demo.toml')}": "the demo"})


@new.command("own-csv")
def own_csv(to: _To = None, json: Json = False) -> None:
    """Write an experiment on two CSV files, one per party: put your own in their place.

    Example: vflens new own-csv --to mine
    """
    from vflens.experiments.starting.copies import copy_own_csv

    folder = to or Path("own-csv")
    file = folder / "own_csv.toml"
    then = {f"vflens check {_quoted(file)}": "what is to be mended", f"vflens run {_quoted(file)}": "the run"}
    _emit(json, copy_own_csv(folder), then)


@new.command()
def attack(name: _Name, to: _To = None, json: Json = False) -> None:
    """Write a package with one attack, its test, and an experiment that runs it.

    Example: vflens new attack my_attack
    """
    _new_plugin("attack", name, to, json)


@new.command()
def defence(name: _Name, to: _To = None, json: Json = False) -> None:
    """Write a package with one defence, its test, and an experiment that runs it.

    Example: vflens new defence my_defence
    """
    _new_plugin("defence", name, to, json)


@new.command()
def dpia(
    to: Annotated[Path, typer.Option(help="a file that is not there yet")] = Path("declared.toml"),
    json: Json = False,
) -> None:
    """Write the file that a DPIA's controller fills in, for `vflens dpia RUN --declared declared.toml`.

    Example: vflens new dpia
    """
    from vflens.experiments.evidence.declared import write_form

    write_form(to)
    _emit(json, [to], {f"vflens dpia RUN --declared {_quoted(to)}": "once it is filled in"})


def _new_plugin(kind: str, name: str, to: Path | None, json: bool) -> None:
    from vflens.experiments.starting.copies import copy_plugin

    folder = to or Path(name)
    files = copy_plugin(kind, name, folder)
    experiment = folder / f"{name}.toml"
    python = shlex.quote(sys.executable)
    then = {
        f"{python} -m pip install --editable {_quoted(folder)}[test]": "it is then installed, and pytest too",
        f"vflens run {_quoted(experiment)} --in-process": "what it does",
        f"{python} -m pytest {_quoted(folder)}": "its test",
    }
    _emit(json, files, then)


_Role = Annotated[str, typer.Argument(help="passive, active, coordinator, client or server")]
_Run = Annotated[str, typer.Option("--run", help="the run's name, the same at every party")]
_At = Annotated[str, typer.Option("--at", help='where it listens: "host:port" or "unix:PATH"')]
_Peers = Annotated[
    list[str], typer.Option("--peer", help="ROLE=ADDRESS or ROLE:NAME=ADDRESS of a party that it speaks with")
]
_Named = Annotated[str | None, typer.Option("--name", help="the party's name; default: its role")]
_Table = Annotated[
    str | None, typer.Option("--table", help="its CSV or parquet file, seen from the written file")
]
_Ids = Annotated[str | None, typer.Option("--id-column", help="the column with the rows' ids")]
_Labels = Annotated[str | None, typer.Option("--label-column", help="the column with the labels")]
_Classes = Annotated[str, typer.Option("--classes", help="the labels' values, as no,yes")]
_Bounds = Annotated[
    str,
    typer.Option("--label-bounds", help="LOW,HIGH: the label is a number, as 0,400, which all parties learn"),
]
_Out = Annotated[Path | None, typer.Option("--out", help="the file to write; default: NAME.toml")]


@party.command("init")
def init_party(
    role: _Role,
    *,
    run: _Run,
    at: _At,
    peer: _Peers,
    name: _Named = None,
    table: _Table = None,
    id_column: _Ids = None,
    label: _Labels = None,
    classes: _Classes = "",
    label_bounds: _Bounds = "",
    out: _Out = None,
    json: Json = False,
) -> None:
    """Write a party's configuration with TLS and without grants, and say what to send to whom.

    Example: vflens party init passive --run loans --at 0.0.0.0:50051 --peer active=a.example:50051
    --peer coordinator=a.example:50052 --table patients.csv --id-column id
    """
    from vflens.experiments.starting.party import NewParty, write_party

    values = [each.strip() for each in classes.split(",") if each.strip()]
    source: dict[str, Any] = {"table": table, "id_column": id_column, "label": label, "bounds": label_bounds}
    begun = NewParty(role=role, name=name or role, run=run, address=at, peers=peer, classes=values, **source)
    file = out or Path(f"{begun.name}.toml")
    write_party(begun, file)
    _emit(json, [file], _steps(file, begun.name, role))


def _steps(file: Path, name: str, role: str) -> dict[str, str]:
    """The commands that a party's operator needs next, each with what it is for."""
    own, certificate = _quoted(file), _quoted(file.parent / name / "tls/certificate.pem")
    return {
        f"vflens secrets init {own}": "all files of your side in one command; write tokens that you were "
        "given into the file before; it says which to give to whom",
        f"vflens certs init {own}": f"then send {certificate}, which is public, to every peer",
        f"vflens certs trust {own} FILE": "for the certificate of every peer",
        f"vflens check {own}": "what is to be mended",
        f"vflens serve {role} --config {own} --resume": "the run",
    }


def _emit(json: bool, files: list[Path], then: dict[str, str]) -> None:
    """Print what was written, and the commands that come next, each with what it is for."""
    names = [str(file) for file in files]
    lines = [f"written: {', '.join(names)}", "next:", *(f"  {line}   # {why}" for line, why in then.items())]
    emit(json, {"files": names, "next": list(then)}, lambda: "\n".join(lines))


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
