"""Several clients in one process: a process each takes 20 MiB and a fifth of a second of processor time.

Each has its own folder, secrets, draws and logs, as in a process of its own; as between the parties of a run
in one process, their isolation is a convention. One thread attends to all: a thread each spends its time on
the interpreter's lock. They share the server of an address, and what calls another address. Where one fails,
or a signal comes, the process ends with all of them.
"""

import resource
from collections.abc import Sequence

from vflens.config import PartyConfig
from vflens.errors import VflensError, first_cause
from vflens.services.hall import Hall
from vflens.services.process import Say, attend, stop_on_signals
from vflens.services.waiting import Waits, take_turns
from vflens.storage.private import owner_only


def host(configs: Sequence[PartyConfig], say: Say) -> None:
    """Run the parties of ``configs`` in turn, until the run is over for all.

    Raises:
        VflensError: that of the party that failed itself, before those that only lost another;
            ``KeyboardInterrupt``: a signal came.
    """
    stop_on_signals()
    _open_many_files()
    hall = Hall(shared=True)
    with owner_only():
        failed = take_turns([_attended(config, say, hall) for config in configs], hall.open)
    if failed:
        raise first_cause({e: getattr(e, "exit_code", VflensError.exit_code) for e in failed})


def _attended(config: PartyConfig, say: Say, hall: Hall) -> Waits:
    return attend(config, lambda words: say(f"{config.party}: {words}"), lambda *_: None, hall, hosted=True)


def _open_many_files() -> None:
    """A party has a dozen files and connections open; most systems allow a process 1,024 unless it asks."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
