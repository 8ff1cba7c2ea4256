"""Files made in the simulated XFS: what is refused and on which line, the tool's table, the probe switches, and
what the allocation workqueue does."""

from pathlib import Path
from textwrap import dedent

import polars
import pytest
from iolab.base.errors import InputError
from iolab.files.store import RunData
from iolab.presentation.table import render
from support.machines import line_of
from support.simulated import experiment, refusals, run

pytestmark = pytest.mark.usefixtures("state_dir", "here")

GOLDEN = Path(__file__).parent / "golden" / "metadata"
HEAD = 'machine = "model:sandy-bridge"\nrounds = 1\n'
FILES = """\
[workloads.create]
kind = "fs_mark"
files = 3000
file_size = "0"
sync = "none"
subdirectories = 5
files_per_subdirectory = 1000
"""
KERNELS = """\
[settings."3.3"]
kernel = "3.3"
[settings."3.4"]
kernel = "3.4"
[settings."3.6"]
kernel = "3.6"
[probes]
switches = true
"""


@pytest.mark.parametrize(
    ("given", "key", "said"),
    [
        ("drop_caches = true", "drop_caches", "the simulated machine has no mechanism for reading directories"),
    ],
)
def test_what_the_model_does_not_make_is_refused_on_its_line(given: str, key: str, said: str) -> None:
    kept = [line for line in FILES.splitlines() if not line.startswith(f"{key} =")]
    text = HEAD + "\n".join([*kept, given]) + "\n"
    line = refusals(text)[0]
    assert line.startswith(f"x.toml:{line_of(text, key)}: workloads.create.{key}: {said}"), line


def values(data: RunData, metric: str) -> dict[str, float]:
    rows = data.metrics.filter(polars.col("metric") == metric, polars.col("op") == "all")
    return {row["setting"]: row["value"] for row in rows.iter_rows(named=True)}


@pytest.fixture
def on_a_disk(here: Path) -> str:
    """The head of experiments on the machine with a disk in place of what answers at once."""
    text = (Path(__file__).parents[1] / "machines" / "sandy-bridge.toml").read_text()
    (here / "disk.toml").write_text(text.replace('device = "ram_disk"', 'device = "sata_7200_2008"'))
    return 'machine = "model:disk.toml"\nrounds = 1\n'


def test_loads_lie_on_xfs_too_and_fsync_writes_its_log(on_a_disk: str) -> None:
    table = """\
        [workloads.writes]
        engine = "psync"
        pattern = "sequential"
        read_percent = 0
        file_size = "4MiB"
        amount = "1MiB"
        block_size = "16KiB"
        fsync_every = 1
        [settings.barrier]
        machine = { "drives.0.device.cache.write_back" = true, "drives.0.filesystem.barrier" = true }
        [settings.nobarrier]
        machine = { "drives.0.device.cache.write_back" = true }
        [probes]
        block = true
        extents = true
        """
    data = run(on_a_disk + dedent(table))
    rates = values(data, "rate_bytes_per_s")
    # Each write of new blocks has one to the log.
    for setting, requests_per_s in values(data, "requests_issued_per_s").items():
        assert requests_per_s > 1.9 * rates[setting] / 16384
    assert rates["barrier"] < 0.9 * rates["nobarrier"]


def test_a_slow_drive_makes_synced_files_slow_and_its_queue_is_seen(on_a_disk: str) -> None:
    files = FILES.replace('sync = "none"', 'sync = "before_close"').replace("files = 3000", "files = 50")
    data = run(on_a_disk + files + "[probes]\nblock = true\ncpu = true\n")
    (rate,) = values(data, "files_per_s").values()
    assert 20 < rate < 2000
    (requests_per_s,) = values(data, "requests_issued_per_s").values()
    assert requests_per_s > 0.9 * rate


def test_other_machines_have_no_switches_to_show() -> None:
    text = 'machine = "model:one_disk"\n[workloads.reads]\nduration = "1s"\n[probes]\nswitches = true\n'
    with pytest.raises(InputError, match="only where files are made"):
        experiment(text)


def test_the_switch_of_data_moves_from_the_allocator_to_the_mapping() -> None:
    files = FILES.replace('file_size = "0"', 'file_size = "16KiB"').replace("files = 3000", "files = 800")
    at_once = 'machine = { "drives.0.filesystem.writeback.background_blocks" = 0 }\n'
    kernels = "".join(f'[settings."{name}"]\nkernel = "{name}"\n{at_once}' for name in ("3.3", "3.6", "3.8", "3.16"))
    data = run(HEAD + files + kernels + "[probes]\nswitches = true\n")
    rows = [line.split()[:2] for line in render(data, "switches").splitlines()]
    sites = [row[0] for row in rows if row[1:] == ["flush-252:0"] and row[0].startswith("xfs_")]
    assert sites == ["xfs_alloc_vextent", "xfs_bmapi_allocate"]


def test_the_workqueue_switches_and_the_exemption_does_not() -> None:
    data = run(HEAD + FILES + KERNELS)
    found = {(row["setting"], row["metric"]): row["value"] for row in data.metrics.iter_rows(named=True)}
    rate = {setting: found[setting, "files_per_s"] for setting in ("3.3", "3.4", "3.6")}
    switches = {setting: found[setting, "context_switches_per_s"] for setting in ("3.3", "3.4", "3.6")}
    assert rate["3.4"] < 0.97 * rate["3.3"] and rate["3.6"] == rate["3.3"]
    assert switches["3.4"] > 2 * switches["3.3"] and switches["3.6"] == switches["3.3"]
    # A function of machine, experiment and seed.
    assert render(data, "switches") == (GOLDEN / "switches.txt").read_text()
    assert render(data, "fs_mark") == (GOLDEN / "fs_mark.txt").read_text()


def test_files_are_made_on_one_disk_with_ext4_and_its_journal_can_be_set() -> None:
    files = FILES.replace('sync = "none"', 'sync = "before_close"').replace("files = 3000", "files = 50")
    settings = "[settings.barrier]\n[settings.nobarrier.machine]\n" + '"drives.0.metadata.barrier" = false\n'
    data = run('machine = "model:one_disk"\nrounds = 1\n' + files + settings)
    rates = values(data, "files_per_s")
    assert rates["nobarrier"] > 2 * rates["barrier"] > 20


def test_a_load_reads_no_key_of_the_journal_unless_its_files_are_laid_out() -> None:
    text = 'machine = "model:one_disk"\n[workloads.reads]\nduration = "1s"\n'
    barrier = "[settings.a.machine]\ndrives.0.metadata.barrier = false\n"
    with pytest.raises(InputError, match="only phases that are not measured, such as laying out files, read it"):
        experiment(text + barrier)
    with pytest.raises(InputError, match="nothing in this machine reads it"):
        experiment(text + barrier + "drives.0.filesystem.kind = 'ext2'\n")


SCHEDULERS = {"6.1": "none", "2.6.32": "noop", "2.6.28": "noop"}


@pytest.mark.parametrize(
    ("kernel", "kind", "given", "said"),
    [
        ("6.1", "ext4", "max_batch_time = 0", "nothing waits so: fsync does until 2.6.32"),
        ("6.1", "ext4", "dirsync = true\ndrives.0.metadata.max_batch_time = 0", None),
        ("6.1", "ext3", "dirsync = true\ndrives.0.metadata.min_batch_time = 9", None),
        ("2.6.32", "ext4", "max_batch_time = 0", None),
        ("2.6.32", "ext3", "max_batch_time = 0", "only ext4 from 2.6.29 on has it"),
        ("2.6.28", "ext4", "max_batch_time = 0", "only ext4 from 2.6.29 on has it"),
        ("6.1", "ext2", "dirsync = true", "only ext3 and ext4 have it"),
    ],
)
def test_the_times_of_batches_are_where_something_waits_so(
    kernel: str, kind: str, given: str, said: str | None
) -> None:
    settings = f"[settings.a.machine]\nkernel = '{kernel}'\ndrives.0.scheduler.name = '{SCHEDULERS[kernel]}'\n"
    settings += f"drives.0.filesystem.kind = '{kind}'\ndrives.0.metadata.{given}\n"
    text = 'machine = "model:one_disk"\n' + FILES + settings
    if said is None:
        experiment(text)
        return
    with pytest.raises(InputError, match=rf"^x\.toml:{line_of(text, 'drives.0.metadata')}: .*{said}"):
        experiment(text)


@pytest.mark.parametrize(("kind", "is_read"), [("ext2", False), ("ext3", True)])
def test_ext2_has_no_journal_whose_keys_could_be_set(kind: str, is_read: bool) -> None:
    settings = (
        f"[settings.a.machine]\ndrives.0.filesystem.kind = '{kind}'\n" + "drives.0.metadata.journal_blocks = 2048\n"
    )
    text = 'machine = "model:one_disk"\n' + FILES + settings
    if is_read:
        experiment(text)
    else:
        with pytest.raises(InputError, match=r"nothing in this machine reads it.*ext3 or ext4"):
            experiment(text)
