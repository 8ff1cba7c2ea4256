"""Durable writes of a simulated machine: a drive with a volatile cache pays a flush for each."""

from __future__ import annotations

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
    assert took["plain"] < took["every_second"] < took["durable"]
    # The write of a pair with fdatasync is a plain one; the flush is the call after it.
    assert took["fdatasync"] < 1.2 * took["plain"]
    assert took["protected"] < 1.2 * took["plain"]


def test_a_buffered_write_cannot_be_durable_there(iolab: CommandLine) -> None:
    text = COMMITS.partition("[settings.every_second]")[0].replace("engine = ", "direct = false\nengine = ")
    refused = iolab("run", iolab.write("commits.toml", text), status=None)
    refused.assert_one_clear_line(2, "dsync_every", "direct = true")
