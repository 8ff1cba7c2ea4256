"""The simulated machine against this kernel, in front of one device of known timing: orders of schedulers hold on both
with wide margins. benches/model_against_kernel.py has the figures."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from iolab.files.store import read
from support.command_line import CommandLine
from support.devices import queue_attribute
from support.runs import faults, statuses

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benches"))
import paced_device  # noqa: E402

pytestmark = [
    pytest.mark.root,
    pytest.mark.machine,
    pytest.mark.long,
    pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="needs root and /dev/fuse"),
]
ARM = ROOT / "machines" / "devices" / "paced_arm.toml"
EXPERIMENT = """\
rounds = 1
seed = 1
{where}

[workloads.random]
queue_depth = 64
file_size = "4GiB"
layout = false
warm_up = "500ms"
duration = "1500ms"

[workloads.beside]
kind = "mix"
warm_up = "500ms"
duration = "2s"

[workloads.beside.jobs.reader]
queue_depth = 2
file_size = "2GiB"
layout = false

[workloads.beside.jobs.writer]
read_percent = 0
block_size = "16KiB"
queue_depth = 32
file_size = "2GiB"
layout = false

[settings.none]
scheduler = "none"

[settings.mq-deadline]
scheduler = "mq-deadline"
nr_requests = 256

[settings.bfq]
scheduler = {{ name = "bfq", low_latency = 0 }}
nr_requests = 256
"""


@pytest.fixture
def paced(tmp_path: Path, leftovers: None) -> Iterator[paced_device.Paced]:
    before = {device.name: queue_attribute(device, "nr_requests") for device in Path("/sys/block").glob("loop*")}
    with paced_device.paced(tmp_path, ARM) as paced:
        yield paced
    assert queue_attribute(paced.device, "nr_requests") == before[paced.device.name]
    assert paced.seen["most_at_once"] == 8


def rates(iolab: CommandLine, name: str, where: str) -> dict[tuple[str, str, str], float]:
    """By workload, setting and key."""
    iolab.write(f"{name}.toml", EXPERIMENT.format(where=where))
    iolab("run", f"{name}.toml", "--out", name)
    assert set(statuses(iolab.cwd / name)) == {"ok"}, faults(iolab.cwd / name)
    rows = read(iolab.cwd / name).metrics.select("workload", "setting", "key", "value")
    return {(workload, setting, key): value for workload, setting, key, value in rows.iter_rows()}


def test_orders_of_schedulers_are_those_of_the_kernel(iolab: CommandLine, paced: paced_device.Paced) -> None:
    # As its device, before all else that runs here: a writer that waits for a CPU leaves the device to the reader.
    ahead = replace(iolab, prefix=("chrt", "--fifo", "1"))
    here = rates(ahead, "kernel", f'[target]\nkind = "device"\npath = "{paced.device}"')
    model = rates(iolab, "model", f'machine = "model:{ROOT}/machines/paced-arm.toml"')
    # By its rule a random read takes 6.2 ms on average; a busy host only makes it longer.
    assert here["random", "none", "iops"] < 1.1 * 1000 / 6.2
    for of in (here, model):
        # Sorting pays where the device serves in order of arrival: three times the rate.
        assert of["random", "mq-deadline", "iops"] > 1.5 * of["random", "none", "iops"]
        # A reader beside a writer gets a share from bfq and is preferred by mq-deadline: 2.2 to 2.6 times the reads.
        assert of["beside", "mq-deadline", "read.iops"] > 1.4 * of["beside", "bfq", "read.iops"]
