"""Processes are told apart by what does not move with the clock."""

import os
from dataclasses import replace
from unittest.mock import patch

import psutil
import pytest

from backfill_assets.adapters.runtime.processes import Process, is_alive, process_of


def test_a_process_is_the_same_after_the_clock_was_set() -> None:
    me = process_of(os.getpid())
    with patch.object(psutil.Process, "create_time", lambda _process: 15.0):
        assert is_alive(me)


def test_another_process_of_the_same_id_is_not_it() -> None:
    me = process_of(os.getpid())
    assert [is_alive(each) for each in (me, replace(me, created=me.created + 0.01))] == [True, False]


def test_a_process_that_is_gone_is_not_found() -> None:
    gone = next(number for number in range(2**22 - 1, 0, -1) if not psutil.pid_exists(number))
    assert not is_alive(Process(pid=gone, created=1.5))
    with pytest.raises(psutil.NoSuchProcess):
        process_of(gone)
