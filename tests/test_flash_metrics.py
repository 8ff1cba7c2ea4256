"""What simulated flash programs and erases, as metrics of the phases that write to it."""

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files import store
from support.command_line import CommandLine
from support.simulated import SMALL_FLASH, experiment

WRITES = f"""\
machine = "model:sata_ssd"
rounds = 1
seed = 1
[workloads.w]
read_percent = 0
queue_depth = 32
file_size = "80MiB"
operations = 60000
layout = false
[settings.random]
machine = {{ {SMALL_FLASH} }}
[settings.sequential]
machine = {{ {SMALL_FLASH} }}
workload = {{ pattern = "sequential" }}
"""


def test_random_writes_are_amplified_and_sequential_ones_are_not(iolab: CommandLine) -> None:
    iolab("run", iolab.write("writes.toml", WRITES), "--out", "run")
    found = store.read(iolab.cwd / "run")
    amplification = found.values("write_amplification", "w")
    erases = found.values("flash_erases", "w")
    assert 1.1 < amplification["random"][0] < 3
    assert amplification["sequential"][0] < 1.02
    assert erases["sequential"][0] > 0 and erases["random"][0] > 0
    free = found.values("flash_free_percent", "w")
    # The collector begins with 5 % of the blocks or less.
    assert 0 < free["random"][0] < 10 and 0 < free["sequential"][0] < 10


def test_a_machine_that_shows_no_flash_is_not_asked_for_it(here: Path) -> None:
    text = '[workloads.w]\nread_percent = 0\nduration = "1s"\n[compare]\nmetrics = ["write_amplification"]\n'
    with pytest.raises(InputError, match="only a simulated machine shows what flash programs"):
        experiment(text)


def test_reads_alone_have_no_such_metric(iolab: CommandLine) -> None:
    text = 'machine = "model:sata_ssd"\nrounds = 1\n[workloads.w]\noperations = 10\nfile_size = "1MiB"\n'
    iolab("run", iolab.write("reads.toml", text), "--out", "run")
    assert not [key for key in store.read(iolab.cwd / "run").keys if "amplification" in str(key)]
