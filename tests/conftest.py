"""What all tests share: one numeric thread, as every party process has."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from commandline import finished_run, one_start, refused, vflens  # noqa: F401 - fixtures
from gates import close_gates
from laboratory import NOISY, close, federation, let_go
from oneprocess import LocalFederation
from threadpoolctl import threadpool_limits

from vflens.wire.process import configure_process

hypothesis.settings.register_profile("without a deadline", deadline=None)  # a machine may be busy
hypothesis.settings.load_profile("without a deadline")
configure_process()  # as the command line does; no test imports grpc before
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts a command in its background so, and children inherit it: their tests would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Modules and tests live to the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _one_numeric_thread() -> Iterator[None]:
    """Sums then have one order, whatever ran before; otherwise no two runs need be equal bit for bit."""
    with threadpool_limits(1):
        yield


_BEGUN: dict[int, dict[str, object]] = {}  # the state of each generator that a module made


@pytest.fixture(autouse=True)
def _streams_begin_anew(request: pytest.FixtureRequest) -> None:
    """What a test draws from its module's generator depends on no other test: they run in random order."""
    for made in vars(getattr(request, "module", None) or object).values():
        if isinstance(made, np.random.Generator):
            stream = made.bit_generator
            stream.state = _BEGUN.setdefault(id(made), dict(stream.state))


@pytest.fixture(autouse=True)
def _no_log_stays_open() -> Iterator[None]:
    yield
    let_go()
    close_gates()


@pytest.fixture
def few_defences(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit tries two kinds of defences, on few models: all of them take three times as long."""
    from vflens.experiments.audit import defenses

    few = [tried for tried in defenses.candidates() if tried[0] in ("label_only", "withhold_parameters")]
    monkeypatch.setattr(defenses, "candidates", lambda: iter(few))
    monkeypatch.setattr(defenses, "COST_MODELS", 4)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalFederation]:
    """Parties in this process, noise at the coordinator: aligned, not trained."""
    made = federation(tmp_path, defenses=NOISY)
    made.coordinator.prepare()
    yield made
    close(made)
