"""Processes that do a phase together: started, watched, stopped, and none left."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.domain.workload.load import file_json, group_json, job_json, phase_json, until_json
from iolab.machines.host import members
from iolab.machines.host.members import MemberDied, Task

LONG_NS = 60 * 10**9


def load(name: str, **until: int) -> Task:
    """Reads with the null engine, which needs no device."""
    job = job_json(
        name, files=[0], align_bytes=4096, length_bytes=2**20, seed=1, read_share=1.0, until=until_json(**until)
    )
    group = group_json(name, engine="null", direct=False, jobs=[job])
    return Task(name, "load", phase_json(name, files=[file_json("nowhere", 2**20)], groups=[group], seed=1))


def sort(name: str, *, bytes_: int = 2**20, passes: int = 1) -> Task:
    return Task(name, "sort", {"bytes": bytes_, "passes": passes, "seed": 1})


def children() -> list[int]:
    """The processes that this one has started and not yet waited for."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in listed if b"iolab.machines.host.member" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def run(*tasks: Task, **options: Any) -> list[dict[str, Any]]:
    ways: dict[str, Any] = {"on_snapshots": lambda _: None, "should_stop": lambda: False, **options}
    try:
        return members.run(tasks, **ways)
    finally:
        assert not children()


def test_each_task_has_its_record_in_order() -> None:
    first, second, third = run(load("a", ops=1000), sort("b"), load("c", ops=2000))
    assert first["groups"][0]["jobs"][0]["null"]["count"] == 1000
    assert second["sorted"]
    assert third["groups"][0]["jobs"][0]["null"]["count"] == 2000


def test_they_start_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are given one moment, and none begins before it."""
    given: list[int] = []
    send = members._Member.send

    def sent(member: members._Member[Any], message: JsonObject) -> None:
        if "start_monotonic_ns" in message:
            given.append(int(str(message["start_monotonic_ns"])))
        send(member, message)

    monkeypatch.setattr(members._Member, "send", sent)
    records = run(*(load(name, ops=10) for name in "abc"))
    assert len(given) == 3 and len({*given}) == 1
    unix_ns = given[0] + time.time_ns() - time.monotonic_ns()
    assert all(record["started_unix_ns"] > unix_ns - 1_000_000 for record in records), "the clock is adjusted meanwhile"


def test_progress_is_told_while_they_run() -> None:
    seen: list[int] = []
    run(
        *(load(name, duration_ns=500_000_000) for name in "ab"),
        on_snapshots=lambda snapshots: seen.append(sum(snapshot["ops"] for snapshot in snapshots)),
    )
    assert max(seen) > 0
    assert seen == sorted(seen)


@pytest.mark.parametrize("after_s", [0, 1])
def test_a_stop_reaches_all_of_them(after_s: int) -> None:
    """Also one that comes before they have started."""
    began = time.monotonic()
    records = run(
        load("a", duration_ns=LONG_NS),
        sort("b", bytes_=2**26, passes=1000),
        should_stop=lambda: time.monotonic() >= began + after_s,
    )
    assert [record["stopped"] for record in records] == [True, True]
    assert all(record["elapsed_ns"] < LONG_NS / 2 for record in records)


def test_the_first_that_is_done_may_end_all() -> None:
    short, long = run(load("a", ops=1000), load("b", duration_ns=LONG_NS), ends_all=["a", "b"])
    assert not short["stopped"]
    assert long["stopped"]


def test_a_wrong_task_ends_all_with_its_error() -> None:
    with pytest.raises(InputError, match="nothing to sort"):
        run(load("a", duration_ns=LONG_NS), sort("b", bytes_=1))


def test_a_killed_one_is_named() -> None:
    def kill_one() -> None:
        while len(children()) < 2:
            time.sleep(0.01)
        time.sleep(0.5)
        os.kill(children()[1], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(MemberDied, match="SIGKILL") as caught:
        run(load("a", duration_ns=LONG_NS), load("b", duration_ns=LONG_NS))
    killer.join()
    assert caught.value.name == "b"
