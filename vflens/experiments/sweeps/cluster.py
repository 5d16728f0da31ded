"""Cells on a Dask cluster: all are handed over at once, and come back as each finishes.

The cluster runs as many at a time as it has slots. It starts a cell again whose worker died.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from vflens.errors import ConfigError, UnavailableError, install_extra
from vflens.types import Document

#: What is computed: a module's function, for pickling, and its arguments.
Call: TypeAlias = tuple[Any, ...]
#: Yields the answers to calls in the order in which they come.
Answers: TypeAlias = Callable[[Sequence[Call]], Iterator[Any]]


@contextmanager
def cluster(jobs: int) -> Iterator[Answers]:
    """The cluster at DASK_SCHEDULER_ADDRESS; without an address a local one of ``jobs`` slots.

    Raises:
        ConfigError: Dask is not installed.
    """
    try:
        import dask
        from distributed import Client, KilledWorker, as_completed
    except ImportError as error:
        raise ConfigError(
            f"backend = 'dask' needs another package ({error}): {install_extra('cluster')}"
        ) from error
    connect, in_order_of_their_ends = cast(Any, Client), cast(Any, as_completed)
    local: Document = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with connect(**({} if dask.config.get("scheduler-address", None) else local)) as client:

        def answers(calls: Sequence[Call]) -> Iterator[Any]:
            # pure=False: equal arguments are no reason to take an earlier answer.
            futures = [client.submit(*call, pure=False) for call in calls]
            for future in in_order_of_their_ends(futures):
                try:
                    yield future.result()
                except KilledWorker as error:
                    raise _workers_died(error) from error

        yield answers


def _workers_died(error: Exception) -> UnavailableError:
    return UnavailableError(
        f"a cell ended several workers of the cluster ({type(error).__name__}): give them more memory, and "
        "run again: finished cells are kept"
    )
