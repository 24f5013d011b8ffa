"""Names that nobody else has."""

from __future__ import annotations

import os
import threading

import pytest

from chimera.core.identity import RunIdentity, current_run, new_id


def test_ids_are_unique_across_threads() -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.extend(new_id("x") for _ in range(500))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 4000
    assert all(name.startswith("x-") for name in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_makes_names_of_its_own() -> None:
    new_id("x")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, new_id("x").encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    child = os.read(reader, 100).decode()
    os.close(reader)
    mine = new_id("x")
    assert child.split("-")[1] != mine.split("-")[1]


def test_outside_of_interceptors_there_is_no_run() -> None:
    assert current_run() is None


def test_an_identity_is_a_value() -> None:
    assert RunIdentity("r", "c") == RunIdentity("r", "c", 0, None, "", "")
    assert len({RunIdentity("r", "c"), RunIdentity("r", "c"), RunIdentity("r2", "c")}) == 2
