"""What every test of the course shares: one thread, a silent progress display, its own home, checked shapes.

Notebook kernels that nbval starts are children of pytest and inherit the environment set here.
"""

import atexit
import gc
import os
import random
import shutil
import signal
import tempfile
from pathlib import Path

from platformdirs import user_data_path

from course_lib.commands.execute import SAME_ARITHMETIC

ASSETS = Path(os.environ.get("COURSE_HOME") or user_data_path("course_lib", appauthor=False)) / "lectures"

# Before torch is imported: results are bit-identical for a fixed thread count only.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ.update(SAME_ARITHMETIC)
# Memory that torch gives back is kept for its next tensor: a training with convolutions has a sixth less to do.
os.environ.update({"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)})
os.environ["COURSE_PROGRESS"] = "off"
os.environ["COURSE_STRICT"] = "1"  # a claim of a lesson that does not hold stops its notebook
os.environ.setdefault("COURSE_ASSETS", str(ASSETS))  # kept from run to run
if "PYTEST_XDIST_WORKER" not in os.environ:  # the workers of pytest-xdist inherit this one home
    os.environ["COURSE_HOME"] = tempfile.mkdtemp(prefix="course-home-")
    atexit.register(shutil.rmtree, os.environ["COURSE_HOME"], ignore_errors=True)

# Started in the background, a process ignores Ctrl-C, and so would those that the tests start and then interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from jaxtyping import install_import_hook

import tests.shapes  # noqa: F401 (the hook looks the checker up by its name)

SHAPED = ("bench", "classroom", "data", "functional", "generation", "layers", "lessons", "models", "text", "training")
install_import_hook([f"course_lib.{name}" for name in SHAPED], "tests.shapes.checked")  # with tensors; mypy: all

import hypothesis
import matplotlib
import numpy
import pytest
import torch

from course_lib.viz.style import use_style
from tests.needs import NEEDS

hypothesis.settings.register_profile("course", deadline=None)  # a busy machine, or --cov, is no fault of the code
hypothesis.settings.load_profile("course")
torch.set_num_threads(1)
matplotlib.use("Agg")  # here and not in MPLBACKEND: notebook kernels draw inline
use_style()  # as each page does: a test finds a title on the same side, whichever test ran before it

LEFT_OUT = pytest.StashKey[dict]()  # name of the need -> number of tests left out


def pytest_configure(config):
    known = ", ".join(NEEDS)
    config.addinivalue_line("markers", f"needs(*names): left out where the system lacks one of: {known}")
    config.stash[LEFT_OUT] = {}
    config.pluginmanager.register(LeftOutReport(), "course-left-out")


def pytest_collection_finish():
    gc.collect()
    gc.freeze()  # tests and modules stay: no collection during a test looks at them again


def missing_needs(item):
    names = [name for marker in item.iter_markers("needs") for name in marker.args]
    for name in names:
        if name not in NEEDS:
            raise pytest.UsageError(f"{item.nodeid} needs {name!r}; the known needs are: {', '.join(NEEDS)}")
    return [name for name in names if not NEEDS[name].available()]


@pytest.hookimpl(trylast=True)  # after -k and -m: count only what was asked for
def pytest_collection_modifyitems(config, items):
    if os.environ.get("COURSE_REQUIRE_ALL") == "1":
        return
    left_out = {item: missing[0] for item in items if (missing := missing_needs(item))}
    if left_out:
        for name in left_out.values():
            config.stash[LEFT_OUT][name] = config.stash[LEFT_OUT].get(name, 0) + 1
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def pytest_runtest_setup(item):
    for seed in (random.seed, numpy.random.seed, torch.manual_seed):  # a test that draws numbers draws the same again
        seed(0)
    # Only with COURSE_REQUIRE_ALL=1 do tests with missing needs come this far: there nothing may be left out.
    missing = missing_needs(item)
    if missing:
        remedies = "; ".join(NEEDS[name].remedy for name in missing)
        pytest.fail(
            f"needs {', '.join(missing)}, and COURSE_REQUIRE_ALL=1 leaves nothing out: {remedies}",
            pytrace=False,
        )


class LeftOutReport:
    """Says at the very end what was left out; the workers of pytest-xdist tell it to the process that prints."""

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = session.config.stash[LEFT_OUT]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        # Every worker collects every test, so each reports the same counts.
        node.config.stash[LEFT_OUT].update(getattr(node, "workeroutput", {}).get("left_out", {}))

    def pytest_unconfigure(self, config):
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or hasattr(config, "workeroutput"):
            return
        for name, count in sorted(config.stash[LEFT_OUT].items()):
            tests = "test" if count == 1 else "tests"
            reporter.write_line(f"left out: {count} {NEEDS[name].kind} {tests} - {NEEDS[name].remedy}", yellow=True)
