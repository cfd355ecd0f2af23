"""Grading on a Dask cluster: its scheduler's address as an executor.

Workers need course_lib and a sandbox of their own, and nothing of the instructor's folder: answers, assignment and key
travel as arguments of each call.
"""

import socket
from concurrent.futures import Executor, Future
from typing import Any

from course_lib.data.place import CannotStart

SECONDS_TO_CONNECT = 5


def dask_executor(address: str) -> Executor:
    """The workers of the Dask scheduler at an address such as tcp://10.0.0.1:8786; `shutdown()` lets go of them.

    What a worker was doing when it was lost, another does. Raises CannotStart if dask is not installed, no scheduler
    answers within a few seconds, or it has no worker.
    """
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError as error:
        raise CannotStart(
            "Grading on a cluster needs dask, which is not installed here. In the folder of the course this installs "
            "it: pip install --editable '.[dask]'"
        ) from error
    silent = (
        f"No Dask scheduler answers at {address!r}. Start one with `dask scheduler`, its workers with `dask worker "
        "ADDRESS`, and give the address that it prints, such as tcp://10.0.0.1:8786."
    )
    try:
        with socket.create_connection(get_address_host_port(address), timeout=SECONDS_TO_CONNECT):
            pass
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except Exception as error:  # whatever listens there instead of a scheduler may answer anything
        raise CannotStart(silent) from error
    threads = sum(client.nthreads().values())
    if threads == 0:
        client.close()
        raise CannotStart(f"The Dask scheduler at {address} has no worker. Start one with: dask worker {address}")
    return _ClusterExecutor(client, width=threads)


def deadly_errors() -> tuple[type[BaseException], ...]:
    """The errors that say: several workers died of this one call, and the scheduler gave it up."""
    from distributed.scheduler import KilledWorker

    return (KilledWorker,)


class _ClusterExecutor(Executor):
    """The executor of a client, which is closed with it; `width` is how many calls can run at the same time."""

    def __init__(self, client: Any, *, width: int):
        self._client, self.width = client, width
        self._executor = client.get_executor(pure=False)

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future:
        return self._executor.submit(function, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait=wait and not cancel_futures)
        self._client.close()
