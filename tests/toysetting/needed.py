"""Which commands fail without an entry of the setting: ``main()`` as ``vflens needed FILE FOLDER``."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

from toysetting.command import ENTRIES
from vflens.cli import main as program
from vflens.errors import VflensError
from vflens.experiments.pages.report import write_report
from vflens.experiments.run.check import check
from vflens.experiments.run.loading import load_any
from vflens.experiments.run.run import run
from vflens.experiments.verify_log.verify import verify_logs
from vflens.services.status import status


def reached(file: Path, out: Path) -> list[str]:
    """The commands on the experiment in ``file`` that go well, up to the first that fails."""
    done: list[str] = []
    with suppress(VflensError, KeyError):
        check(file)
        done.append("check")
        folder = run(load_any(file).model_copy(update={"out": out}), in_process=True).folder
        done.append("run")
        if status(folder / "run" / "hermit" / "config.toml")["steps"] is None:
            return done
        done.append("status")
        write_report([folder], out)
        done.append("report")
        verify_logs([folder])
        done.append("verify-log")
    return done


def main() -> None:
    """Be ``vflens``, or print the commands by table in JSON; "": with all entries."""
    if sys.argv[1] != "needed":
        program.main()
    file, folder = map(Path, sys.argv[2:])
    found = {"": reached(file, folder)}
    for name, table, key, entry in ENTRIES:
        del table[key]
        found[name] = reached(file, folder)
        table[key] = entry
    print(json.dumps(found), flush=True)
