"""Durable writes of a simulated machine: a drive with a volatile cache pays a flush for each."""

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


def of_each_setting(iolab: CommandLine, experiment: str, metric: str) -> dict[str, float]:
    """The metric of the workload `log`, in the first round."""
    iolab("run", iolab.write("experiment.toml", experiment), "--out", "run")
    found = store.read(iolab.cwd / "run").values(metric, "log")
    return {setting: found[setting][0] for setting in found.columns if setting != "round"}


def test_a_durable_write_waits_for_the_flush_that_the_drive_needs(iolab: CommandLine) -> None:
    took = of_each_setting(iolab, COMMITS, "write.latency_ns_mean")
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
    took = of_each_setting(iolab, WRITEBACK, "sync.latency_ns_mean")
    assert 10_000 < took["writeback"] < took["fdatasync"] / 2
    assert took["whole_log"] > 2 * took["writeback"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("sync_file_range_every = 1", ["sync_file_range_every", "direct = false"]),
        ("sync_file_range_every = 1\ndirect = false\nfsync_every = 2", ["sync_file_range_every", "fsync_every is"]),
        ("osync_every = 1\ndsync_every = 1", ["osync_every", "dsync_every is given"]),
    ],
)
def test_a_mistake_is_one_clear_line(iolab: CommandLine, options: str, words: list[str]) -> None:
    text = COMMITS.partition("[settings.plain]")[0] + options + "\n"
    iolab("run", iolab.write("wrong.toml", text), status=None).assert_one_clear_line(2, *words)


BUFFERED = """\
machine = "model:known-flush"
rounds = 1
seed = 1
[workloads.log]
read_percent = 0
pattern = "sequential"
file_size = "4MiB"
operations = 300
engine = "psync"
direct = false
[settings.fdatasync]
workload = { fdatasync_every = 1 }
[settings.dsync]
workload = { dsync_every = 1 }
[settings.fsync]
workload = { fsync_every = 1 }
[settings.osync]
workload = { osync_every = 1 }
[settings.every_third]
workload = { dsync_every = 3 }
"""


def test_a_durable_write_through_the_page_cache_takes_as_long_as_a_write_and_a_sync(iolab: CommandLine) -> None:
    rate = of_each_setting(iolab, BUFFERED, "write.iops")
    # The write and the flush take the drive 200 microseconds each.
    assert rate["dsync"] < 2_500
    assert rate["dsync"] == pytest.approx(rate["fdatasync"], rel=0.03)
    assert rate["osync"] == pytest.approx(rate["fsync"], rel=0.03)
    assert 2 * rate["dsync"] < rate["every_third"] < 3.2 * rate["dsync"]


FORCED = """\
machine = "model:known-flush"
rounds = 1
seed = 1
[workloads.log]
kind = "commits"
segment_size = "4MiB"
records = 400
[settings.flushed]
workload = { sync = "dsync" }
machine = { "drives.0.queue.fua" = 0 }
[settings.forced]
workload = { sync = "dsync" }
[settings.of_5_4]
workload = { sync = "dsync" }
machine = { kernel = "5.4" }
[settings.grown]
workload = { preallocated = false }
machine = { "drives.0.queue.fua" = 0 }
[settings.grown_forced]
workload = { preallocated = false }
[settings.fdatasync]
machine = { "drives.0.queue.fua" = 0 }
[settings.fdatasync_forced]
[settings.grown_fast]
workload = { preallocated = false }
machine = { "drives.0.queue.fua" = 0, "drives.0.metadata.fast_commit" = true }
[settings.free]
workload = { preallocated = false }
machine = { "drives.0.metadata.allocate_ns" = 0 }
[settings.unprepared]
workload = { preallocated = false }
machine = { "drives.0.metadata.commit_ns" = 0 }
"""


def test_force_unit_access_saves_an_overwrite_its_flush_and_a_commit_of_the_journal_one_of_two(
    iolab: CommandLine,
) -> None:
    took = of_each_setting(iolab, FORCED, "commit.latency_ns_mean")
    # The drive takes 200 microseconds for a command, a flush included.
    assert took["flushed"] - took["forced"] == pytest.approx(200_000, rel=0.05)
    # ext4's direct writes go through iomap from 5.5 on.
    assert took["of_5_4"] == pytest.approx(took["flushed"], rel=0.05)
    assert took["grown"] - took["grown_forced"] == pytest.approx(200_000, rel=0.05)
    assert took["fdatasync_forced"] == took["fdatasync"]
    # A fast commit is a request less, and takes no time of the journal's thread.
    assert took["grown"] - took["grown_fast"] == pytest.approx(335_000, rel=0.1)
    # A record of a growing log takes 70 microseconds of CPU time for its blocks, and a commit 135.
    assert took["grown_forced"] - took["free"] == pytest.approx(70_000, rel=0.05)
    assert took["grown_forced"] - took["unprepared"] == pytest.approx(135_000, rel=0.05)


WRITERS = """\
machine = "model:known-flush"
rounds = 1
seed = 1
[workloads.log]
kind = "commits"
writers = [1, 2, 4, 16, 64]
segment_size = "16MiB"
duration = "100ms"
preallocated = false
[settings.grown]
"""


def test_a_commit_of_a_growing_log_waits_for_who_was_woken_by_the_one_before(iolab: CommandLine) -> None:
    iolab("run", iolab.write("writers.toml", WRITERS), "--out", "run")
    run = store.read(iolab.cwd / "run")
    rates = [run.values("commit.iops", workload)["grown"][0] for workload in run.workloads]
    # The guest's, docs/commits.md. The commits of two writers follow one another; no more than one record can take the
    # processor at once.
    assert rates[:4] == [pytest.approx(real, rel=0.15) for real in (961, 1_159, 2_076, 5_739)]
    assert rates[4] < 1e9 / 70_000
