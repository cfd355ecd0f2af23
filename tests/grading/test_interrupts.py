"""Ctrl-C while libraries are imported: heard, but later."""

import signal
import threading

import pytest

from course_lib.grading.interrupts import ctrl_c_held


@pytest.fixture(autouse=True)
def as_it_was():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_counts_at_the_end_and_breaks_nothing_off():
    reached = []
    with pytest.raises(KeyboardInterrupt), ctrl_c_held():
        signal.raise_signal(signal.SIGINT)
        reached.append("the end")
    assert reached == ["the end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_ctrl_c_nothing_happens_and_afterwards_it_works_as_usual():
    with ctrl_c_held():
        pass
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_what_goes_wrong_meanwhile_is_told_first():
    with pytest.raises(ImportError, match="no such"), ctrl_c_held():
        signal.raise_signal(signal.SIGINT)
        raise ImportError("no such library")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_where_ctrl_c_is_ignored_it_stays_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ctrl_c_held():
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_threads_leave_ctrl_c_to_the_main_one():
    passed = []

    def work():
        with ctrl_c_held():
            passed.append(signal.getsignal(signal.SIGINT) is signal.default_int_handler)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert passed == [True]
