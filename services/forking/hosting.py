"""Several clients in one process: a process each takes 20 MiB and a fifth of a second of processor time.

Each has its own folder, secrets, draws, logs, server and connections, as in a process of its own; as between
the parties of a run in one process, their isolation is a convention. Where one fails, or a signal comes, the
process ends with all of them.
"""

import resource
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from vflens.config import PartyConfig
from vflens.errors import VflensError, first_cause
from vflens.registry import MODELS
from vflens.services.lifeline import signalled
from vflens.services.process import Say, attend, stop_on_signals
from vflens.storage.private import owner_only

_END_SECONDS = 5.0  # after one party failed, for the others to end with their own reason


def host(configs: Sequence[PartyConfig], say: Say) -> None:
    """Run the parties of ``configs``, each in a thread of its own, until the run is over for all.

    Raises:
        VflensError: that of the party that failed itself, before those that only lost another;
            ``KeyboardInterrupt``: a signal came.
    """
    stop_on_signals()
    _open_many_files()
    MODELS.names()  # reads what is installed once, before all parties ask for it at a time
    with owner_only(), ThreadPoolExecutor(len(configs)) as threads:
        served = [threads.submit(_attend, config, say) for config in configs]
        try:
            _, left = wait(served, return_when=FIRST_EXCEPTION)
            left = wait(left, _END_SECONDS).not_done if left else left
        except KeyboardInterrupt:
            left = set(served)
            raise
        finally:
            if left:
                signalled.set()
    failed = [e for one in served if isinstance(e := one.exception(), Exception)]
    if failed:
        raise first_cause({e: getattr(e, "exit_code", VflensError.exit_code) for e in failed})


def _attend(config: PartyConfig, say: Say) -> None:
    attend(config, lambda words: say(f"{config.party}: {words}"), lambda *_: None, hosted=True)


def _open_many_files() -> None:
    """A party has a dozen files and connections open; most systems allow a process 1,024 unless it asks."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
