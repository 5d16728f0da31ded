"""The restart policies that docs/operating.md shows."""

from __future__ import annotations

import re
import shlex
from configparser import ConfigParser
from pathlib import Path

from vflens import errors
from vflens.services.process import _LAST_RESORT_SECONDS

ROOT = Path(__file__).parents[3]
#: What another start cannot mend.
FINAL = ("ConfigError", "DataError", "AlignmentError", "AccessError", "PluginError", "DefenseError")


def test_the_unit_of_systemd_fits_the_commands_and_their_exit_codes() -> None:
    (text,) = re.findall(r"```ini\n(.*?)```", (ROOT / "docs/operating.md").read_text(encoding="utf-8"), re.S)
    unit = ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    service = unit["Service"]
    codes = {int(code) for code in service["RestartPreventExitStatus"].split()}
    assert codes == {getattr(errors, name).exit_code for name in FINAL}
    assert int(service["SuccessExitStatus"]) == errors.INTERRUPTED
    assert int(service["TimeoutStopSec"]) > _LAST_RESORT_SECONDS
    assert shlex.split(service["ExecStart"])[1:3] == ["serve", "passive"]
    assert {"--resume", "--quiet"} <= set(shlex.split(service["ExecStart"]))


def test_a_container_has_the_time_that_an_orderly_end_takes() -> None:
    compose = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    (seconds,) = re.findall(r"stop_grace_period: (\d+)s", compose)
    assert int(seconds) > _LAST_RESORT_SECONDS
    served = re.findall(r"command: \[vflens, serve, .*\]", compose)
    assert len(served) == 3
    assert all("--resume" in command for command in served)
