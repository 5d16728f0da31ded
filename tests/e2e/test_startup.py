"""What a served party loads: libraries that it does not need cost each process half a second."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from processes import ENVIRONMENT, dealt

_LOADED = (
    "import atexit, sys; from vflens.cli.main import command_line; atexit.register(lambda: "
    "print(*sys.modules)); command_line()"
)


def test_no_party_loads_libraries_of_figures_and_tables(tmp_path: Path) -> None:
    disclosed = [{"what": "parameters", "to": "active"}, {"what": "auxiliary", "to": "active", "rows": 9}]
    with dealt(tmp_path, disclose=disclosed, attacks=[{"name": "half"}, {"name": "lmmse"}]) as federation:
        started = {}
        for party, role in federation.roles.items():
            command = [
                sys.executable,
                "-c",
                _LOADED,
                "serve",
                role,
                "--config",
                str(federation.config(party)),
            ]
            started[party] = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE)
            federation.processes[party] = started[party]
        said = {party: process.communicate(timeout=60)[0] for party, process in started.items()}
        assert set(federation.codes().values()) == {0}
    for party, modules in said.items():
        loaded = set(modules.decode().split())
        assert "numpy" in loaded
        assert not {"pandas", "sklearn", "scipy", "plotly", "torch"} & loaded, party
