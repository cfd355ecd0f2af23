"""Grading through Dask: a scheduler and two workers as processes of their own, one of them killed midway."""

import json
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading import cluster
from course_lib.grading.batch import Batch, Cluster, grade
from course_lib.grading.cluster import dask_executor
from course_lib.grading.exchange import read_config
from course_lib.grading.gradebook import Gradebook, scores
from course_lib.grading.spec import read_assignment
from tests.grading.courses import NAME, NOTEBOOK, make_course, submit

GOOD = {"add": "def add(a, b):\n    return a + b", "double": "def double(x):\n    return 2 * x"}
SLOW = GOOD | {"add": "import time\ntime.sleep(0.3)\ndef add(a, b):\n    return a + b"}


class Dask:
    """A scheduler and its workers."""

    def __init__(self, folder):
        self.file, self.folder = folder / "scheduler.json", folder
        self.processes = []
        self.run("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self.file))
        end = time.monotonic() + 60
        while not (self.file.exists() and self.file.read_text().endswith("}")):
            assert time.monotonic() < end and self.processes[0].poll() is None
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]

    def run(self, *arguments):
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
        with open(self.folder / f"log-{len(self.processes)}", "w") as log:
            process = subprocess.Popen(command, env=environment, cwd=self.folder, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def worker(self):
        return self.run("worker", self.address, "--nthreads", "1", "--nworkers", "1", "--no-nanny")

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    dask = Dask(tmp_path_factory.mktemp("dask"))
    yield dask
    dask.close()


@pytest.fixture
def folders(tmp_path):
    return make_course(tmp_path / "course")


def wait_for_workers(dask, number):
    from distributed import Client

    with Client(dask.address, set_as_default=False) as client:
        client.wait_for_workers(number, timeout=60)


def a_worker(dask):
    """Waits for one, and starts it where a test runs alone."""
    if len(dask.processes) == 1:
        dask.worker()
    wait_for_workers(dask, 1)


def test_a_scheduler_without_workers_says_how_to_start_one(dask):
    with pytest.raises(CannotStart, match="has no worker. Start one with: dask worker tcp://"):
        dask_executor(dask.address)


@pytest.mark.needs("sandbox")
def test_a_worker_lost_midway_costs_nothing_and_nothing_is_graded_twice(dask, folders, monkeypatch):
    for number in range(12):
        submit(folders, f"s{number:02}", **SLOW)
    doomed = dask.worker()
    dask.worker()
    wait_for_workers(dask, 2)
    recorded, real = [], Gradebook.record

    def record(self, verdict, *arguments, **more):
        real(self, verdict, *arguments, **more)
        recorded.append(verdict["student"])
        if len(recorded) == 3:
            doomed.kill()

    monkeypatch.setattr(Gradebook, "record", record)
    assert grade(NAME, folder=folders.root, cluster=dask.address) == 0
    assert doomed.wait(timeout=10) == -9
    assert sorted(recorded) == folders.students(NAME) and len(recorded) == 12
    assert {row.student: row.total for row in scores(folders.gradebook, NAME)} == dict.fromkeys(recorded, 5.0)
    verdicts = [json.loads(folders.verdict(student, NAME).read_text()) for student in recorded]
    assert {verdict["status"] for verdict in verdicts} == {"graded"}


@pytest.mark.needs("sandbox")
def test_a_cluster_gives_the_same_verdicts_as_this_machine(dask, folders):
    for student, answers in (("ada", GOOD), ("bob", GOOD | {"double": "def double(x):\n    return x"}), ("cy", {})):
        submit(folders, student, **answers)

    a_worker(dask)

    def verdicts():
        found = [json.loads(folders.verdict(student, NAME).read_text()) for student in ("ada", "bob", "cy")]
        return [verdict | {"seconds": None} for verdict in found]

    grade(NAME, folder=folders.root, cluster=dask.address)
    there = verdicts()
    grade(NAME, folder=folders.root, again=True, workers=1)
    assert verdicts() == there


@pytest.mark.needs("sandbox")
def test_what_is_asked_twice_is_done_twice(dask):
    a_worker(dask)
    with dask_executor(dask.address) as executor:
        first, second = (executor.submit(uuid.uuid4) for _ in range(2))
        assert first.result(timeout=60) != second.result(timeout=60)


def test_workers_need_nothing_of_the_instructors_folder(folders):
    """All that a worker gets fits into the call's arguments, and names no place of this machine."""
    submit(folders, "ada", **GOOD)
    files = read_assignment(folders.root, NAME)
    with Gradebook(folders.gradebook, assignment=NAME, notebook=NOTEBOOK, config=read_config(folders.root)) as book:
        batch = Batch(folders=folders, files=files, book=book)
        sent = pickle.dumps(batch._arguments(batch.take_in("ada")))
    assert str(folders.root).encode() not in sent


def test_a_call_that_kills_every_worker_is_told_from_a_lost_one():
    from distributed.scheduler import KilledWorker

    assert cluster.deadly_errors() == (KilledWorker,) and Cluster.retries


def test_without_dask_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(CannotStart, match=r"pip install --editable '.\[dask\]'"):
        dask_executor("tcp://127.0.0.1:8786")


@pytest.mark.parametrize("address", ["", "nonsense", "127.0.0.1:1", "tcp://127.0.0.1:1", "carrier-pigeon://loft:1"])
def test_an_address_where_nothing_answers_is_named_at_once(address, monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS_TO_CONNECT", 60)
    start = time.monotonic()
    with pytest.raises(CannotStart, match=f"No Dask scheduler answers at '{address}'"):
        dask_executor(address)
    assert time.monotonic() - start < cluster.SECONDS_TO_CONNECT / 2


class FakeClient:
    """In place of dask's, for what is asked of it."""

    workers = {}  # address -> threads

    def __init__(self, address, *, timeout, set_as_default):
        self.set_as_default, self.closed = set_as_default, False
        made.append(self)

    def nthreads(self):
        return self.workers

    def get_executor(self, *, pure):
        return ThreadPoolExecutor(1)

    def close(self):
        self.closed = True


made = []


@pytest.fixture
def scheduler(monkeypatch):
    """The address of something that listens, with which clients of dask's get on."""
    monkeypatch.setattr("distributed.Client", FakeClient)
    made.clear()
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


def test_all_threads_of_all_workers_are_used_and_let_go_of_in_the_end(scheduler, monkeypatch):
    monkeypatch.setattr(FakeClient, "workers", {"one": 2, "other": 4})
    pool = Cluster(scheduler)
    (client,) = made
    assert pool.width == 2 * 6 and not client.closed
    assert not client.set_as_default  # another program's, in this process, is left alone
    assert pool.submit(abs, -7).result(timeout=60) == 7
    over = threading.Event()
    future = pool.submit(over.wait, 10)
    pool.close()
    assert client.closed and not future.done()  # nobody waits for what is given up
    over.set()


def test_a_scheduler_without_workers_is_let_go_of(scheduler):
    with pytest.raises(CannotStart, match="has no worker"):
        dask_executor(scheduler)
    assert [client.closed for client in made] == [True]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a client that never was one
def test_something_else_that_listens_there_is_no_scheduler(monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS_TO_CONNECT", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_say_hello, args=(server,), daemon=True).start()
        with pytest.raises(CannotStart, match="No Dask scheduler answers"):
            dask_executor(f"tcp://127.0.0.1:{server.getsockname()[1]}")


def _say_hello(server):
    try:
        while True:
            with server.accept()[0] as connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    except OSError:
        return
