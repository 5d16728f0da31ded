"""Parties as real processes, cheaply: this program loads everything once and forks each of them.

Each line of its input is a list in JSON of role, configuration file and the value of VFLENS_FAIL ("" for
none). It answers with a list of exit codes in the same order; a process that was killed has a negative one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from vflens.wire.process import configure_process

configure_process()  # before gRPC loads

import pyarrow.parquet  # noqa: F401

from vflens.cli.main import main
from vflens.experiments.run import in_process  # noqa: F401
from vflens.services import process  # noqa: F401


def fork(role: str, config: str, fault: str) -> int:
    """Start ``vflens serve``; its process."""
    child = os.fork()
    if not child:
        serve(role, config, fault)
    return child


def serve(role: str, config: str, fault: str) -> NoReturn:
    """Be this party; its output goes to ``output.log`` beside ``config``."""
    out = os.open(Path(config).with_name("output.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(out, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ["VFLENS_FAIL"] = fault
    sys.argv = ["vflens", "serve", role, "--config", config]
    main()


def codes(jobs: list[tuple[str, str, str]]) -> list[int]:
    """The exit codes of these parties, started all at once."""
    children = [fork(*job) for job in jobs]
    found: dict[int, int] = {}
    while len(found) < len(children):
        child, status = os.wait()
        found[child] = os.waitstatus_to_exitcode(status)
    return [found[child] for child in children]


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(codes(json.loads(line))), flush=True)
