"""Durable writes of a simulated machine: a drive with a volatile cache pays a flush for each."""

from __future__ import annotations

import pytest
from iolab.files import store
from support.command_line import CommandLine

COMMITS = """\
machine = "model:nvme"
rounds = 1
seed = 1
[workloads.log]
read_percent = 0
pattern = "sequential"
file_size = "16MiB"
operations = 400
engine = "pvsync"
[settings.plain]
[settings.durable]
workload = { dsync_every = 1 }
[settings.with_metadata]
workload = { osync_every = 1 }
[settings.every_second]
workload = { dsync_every = 2 }
[settings.fdatasync]
workload = { fdatasync_every = 1 }
[settings.protected]
workload = { dsync_every = 1 }
machine = { "drives.0.device.firmware.power_loss_protection" = true }
"""


def test_a_durable_write_waits_for_the_flush_that_the_drive_needs(iolab: CommandLine) -> None:
    iolab("run", iolab.write("commits.toml", COMMITS), "--out", "run")
    found = store.read(iolab.cwd / "run").values("write.latency_ns_mean", "log")
    took = {setting: found[setting][0] for setting in found.columns if setting != "round"}
    assert took["durable"] > 3 * took["plain"]
    # Its blocks are there: nothing but the same flush.
    assert took["with_metadata"] == took["durable"]
    assert took["plain"] < took["every_second"] < took["durable"]
    # The write of a pair with fdatasync is a plain one; the flush is the call after it.
    assert took["fdatasync"] < 1.2 * took["plain"]
    assert took["protected"] < 1.2 * took["plain"]


WRITEBACK = """\
machine = "model:nvme"
rounds = 1
seed = 1
[workloads.log]
read_percent = 0
pattern = "sequential"
file_size = "16MiB"
operations = 400
engine = "psync"
direct = false
[settings.fdatasync]
workload = { fdatasync_every = 4 }
[settings.writeback]
workload = { sync_file_range_every = 4 }
[settings.whole_log]
workload = { sync_file_range_every = 400 }
"""


def test_sync_file_range_awaits_the_writeback_and_no_flush(iolab: CommandLine) -> None:
    iolab("run", iolab.write("writeback.toml", WRITEBACK), "--out", "run")
    found = store.read(iolab.cwd / "run").values("sync.latency_ns_mean", "log")
    took = {setting: found[setting][0] for setting in found.columns if setting != "round"}
    assert 10_000 < took["writeback"] < took["fdatasync"] / 2
    assert took["whole_log"] > 2 * took["writeback"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("sync_file_range_every = 1", ["sync_file_range_every", "direct = false"]),
        ("sync_file_range_every = 1\ndirect = false\nfsync_every = 2", ["sync_file_range_every", "fsync_every is"]),
        ("osync_every = 1\ndsync_every = 1", ["osync_every", "dsync_every is given"]),
        ("osync_every = 1\ndirect = false", ["osync_every", "direct = true"]),
    ],
)
def test_a_mistake_is_one_clear_line(iolab: CommandLine, options: str, words: list[str]) -> None:
    text = COMMITS.partition("[settings.plain]")[0] + options + "\n"
    iolab("run", iolab.write("wrong.toml", text), status=None).assert_one_clear_line(2, *words)


def test_a_buffered_write_cannot_be_durable_there(iolab: CommandLine) -> None:
    text = COMMITS.partition("[settings.with_metadata]")[0].replace("engine = ", "direct = false\nengine = ")
    refused = iolab("run", iolab.write("commits.toml", text), status=None)
    refused.assert_one_clear_line(2, "dsync_every", "direct = true")
