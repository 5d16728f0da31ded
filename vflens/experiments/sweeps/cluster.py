"""Cells on a Ray or Dask cluster: all are handed over at once, and come back as each finishes.

The cluster runs as many at a time as it has slots. It starts a cell again whose worker died.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias, cast

from vflens.errors import ConfigError, UnavailableError, install_extra
from vflens.types import Document

#: What is computed: a module's function, for pickling, and its arguments.
Call: TypeAlias = tuple[Any, ...]
#: Yields the answers to calls in the order in which they come.
Answers: TypeAlias = Callable[[Sequence[Call]], Iterator[Any]]


@contextmanager
def cluster(backend: str, jobs: int) -> Iterator[Answers]:
    """The cluster at RAY_ADDRESS or DASK_SCHEDULER_ADDRESS; without an address a local one of ``jobs`` slots.

    Raises:
        ConfigError: the backend is not installed.
    """
    package, connected = _BACKENDS[backend]
    try:
        import_module(package)
    except ImportError as error:
        raise ConfigError(
            f"backend = {backend!r} needs another package ({error}): {install_extra('cluster')}"
        ) from error
    with connected(jobs) as answers:
        yield answers


@contextmanager
def _dask(jobs: int) -> Iterator[Answers]:
    import dask
    from distributed import Client, KilledWorker, as_completed

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


@contextmanager
def _ray(jobs: int) -> Iterator[Answers]:
    import ray
    from ray.exceptions import RayTaskError, WorkerCrashedError

    here: Document = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": jobs, "include_dashboard": False}
    remote = cast(Any, ray.remote)
    logging.getLogger("ray").setLevel(logging.ERROR)
    ray.init(log_to_driver=False, configure_logging=False, **here)

    def answers(calls: Sequence[Call]) -> Iterator[Any]:
        left: list[Any] = [remote(work).remote(*arguments) for work, *arguments in calls]
        while left:
            (done,), left = ray.wait(left)
            try:
                yield ray.get(done)
            except RayTaskError as error:  # its text is a traceback
                raise error.cause from error
            except WorkerCrashedError as error:
                raise _workers_died(error) from error

    try:
        yield answers
    finally:
        ray.shutdown()


def _workers_died(error: Exception) -> UnavailableError:
    return UnavailableError(
        f"a cell ended several workers of the cluster ({type(error).__name__}): give them more memory, and "
        "run again: finished cells are kept"
    )


_BACKENDS = {"ray": ("ray", _ray), "dask": ("distributed", _dask)}
