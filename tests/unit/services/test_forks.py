"""The process that forks parties: what a child has of its own, and what ends with whom."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from processes import eventually
from shells import scripted, shells

from vflens.errors import UnavailableError
from vflens.services.forking import forked
from vflens.services.forking.forks import Fork, Forks


@pytest.fixture
def forks() -> Iterator[Forks]:
    with shells() as forks:
        yield forks


def fork(forks: Forks, folder: Path, script: str, **environment: str) -> Fork:
    """A child that is ``script``; its words go to ``folder/a/output``."""
    config = scripted(folder, a=script)["a"]
    with config.with_name("output").open("ab") as output:
        return forks.start(["serve", "passive", "--config", str(config)], output.fileno(), environment)


def that_forked(child: Fork) -> psutil.Process:
    """Other tests of the same worker may keep such a process too, so it is found from a child that runs."""
    parent = psutil.Process(child.pid).parent()
    assert parent is not None
    assert parent.ppid() == os.getpid()
    return parent


def said(folder: Path) -> str:
    return (folder / "a/output").read_text()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_is_a_negative_code(tmp_path: Path, forks: Forks, number: signal.Signals) -> None:
    child = fork(forks, tmp_path, "exec sleep 600")
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.01)
    child.send_signal(number)
    assert child.wait(100) == -number
    child.kill()  # no effect, and no error


def test_a_code_is_the_child_s(tmp_path: Path, forks: Forks) -> None:
    assert fork(forks, tmp_path, "exit 12").wait(100) == 12


def test_a_child_has_a_session_and_an_environment_of_its_own(tmp_path: Path, forks: Forks) -> None:
    child = fork(forks, tmp_path, 'echo "$VFLENS_FAIL $(umask)"; exec sleep 600', VFLENS_FAIL="here")
    eventually(lambda: said(tmp_path) == "here 0077\n")
    assert os.getsid(child.pid) == child.pid
    other = fork(forks, tmp_path / "other", 'echo "${VFLENS_FAIL-none}"')
    assert other.wait(100) == 0
    assert said(tmp_path / "other") == "none\n"
    child.kill()


def test_a_child_has_no_descriptor_of_another(tmp_path: Path, forks: Forks) -> None:
    other = fork(forks, tmp_path / "other", "exec sleep 600")
    child = fork(forks, tmp_path, "exec sleep 600")
    eventually(lambda: psutil.Process(child.pid).name() == "sleep")
    assert {fd.name for fd in Path(f"/proc/{child.pid}/fd").iterdir()} == {"0", "1", "2"}
    for one in (child, other):
        one.kill()


@pytest.mark.parametrize("library", ["numpy.random", "torch"])
def test_a_child_draws_anew(library: str) -> None:
    module: Any = pytest.importorskip(library)
    get, put = (
        (module.get_rng_state, module.set_rng_state)
        if library == "torch"
        else (module.get_state, module.set_state)
    )
    state = get()
    draw = module.rand if library == "torch" else module.random
    first = draw(1)
    put(state)
    forked._draw_anew()
    assert draw(1) != first
    put(state)


def test_two_children_draw_apart(tmp_path: Path) -> None:
    (tmp_path / "drawing.py").write_text("import numpy.random\ndef main(): print(numpy.random.random())\n")
    output = tmp_path / "output"
    with (
        Forks(
            entry="drawing", environment={"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
        ) as forks,
        output.open("ab") as out,
    ):
        assert [forks.start([], out.fileno()).wait(60) for _ in range(2)] == [0, 0]
    first, second = output.read_text().split()
    assert first != second


def test_no_wait_of_the_process_that_forks_is_long(tmp_path: Path, forks: Forks) -> None:
    """The end of a child that comes just before a wait is told after it: one of 2,700 was told never."""
    child = fork(forks, tmp_path, "exec cat")
    process = that_forked(child)
    child.close()
    assert child.wait(100) == 0
    before = process.num_ctx_switches().voluntary
    eventually(lambda: process.num_ctx_switches().voluntary > before + 5)


def test_a_child_s_input_ends_with_its_holder_alone(tmp_path: Path, forks: Forks) -> None:
    other = fork(forks, tmp_path / "other", "exec cat")
    child = fork(forks, tmp_path, "exec cat")
    child.close()
    assert child.wait(100) == 0
    assert other.poll() is None
    other.close()
    assert other.wait(100) == 0


def test_a_process_that_forks_no_more_says_how_it_ended(tmp_path: Path, forks: Forks) -> None:
    child = fork(forks, tmp_path, "exec cat")
    that_forked(child).kill()
    eventually(lambda: bool(child.poll() or forks.lost))
    assert forks.lost == "was killed by SIGKILL"
    assert child.poll() is None
    with pytest.raises(UnavailableError, match=r"^the process that starts the parties was killed by SIGKILL"):
        fork(forks, tmp_path / "other", "exec cat")
    child.send_signal(signal.SIGTERM)
    assert child.wait(100) == 130  # nobody knows better


def test_a_program_that_cannot_be_loaded(tmp_path: Path) -> None:
    with (
        Forks(entry="no_such_module") as forks,
        pytest.raises(UnavailableError, match=r"ended with code 1 \(ModuleNotFoundError: .*no_such_module"),
    ):
        fork(forks, tmp_path, "true")


def test_nobody_survives_who_holds_the_inputs(tmp_path: Path) -> None:
    """The holder is killed: the process that forks ends, and the child reads the end of its input."""
    program = f"""
import sys, time
sys.path[:0] = {[str(Path(__file__).parents[2]), *sys.path]!r}
from pathlib import Path
from typing import Any
from shells import scripted, shells
with shells() as forks, open({str(tmp_path / "output")!r}, "ab") as output:
    config = scripted(Path({str(tmp_path)!r}), a="cat; echo over")["a"]
    child = forks.start(["serve", "passive", "--config", str(config)], output.fileno())
    print(child.pid, forks._process.pid, flush=True)
    time.sleep(600)
"""
    holder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    processes = [psutil.Process(int(pid)) for pid in holder.stdout.readline().split()]
    holder.kill()
    holder.communicate()
    assert not psutil.wait_procs(processes, timeout=30)[1]
    assert (tmp_path / "output").read_text() == "over\n"
