"""Traces of simulated machines: the files beside the trials, and who reads them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from iolab.domain.record import packed_trace, unpacked_trace
from support.machines import READS, line_of, write_machine
from support.simulated import refusals, run

pytestmark = pytest.mark.usefixtures("state_dir")

HEAD = 'machine = "model:small.toml"\nrounds = 1\n'


@pytest.fixture(autouse=True)
def small_machine(here: Path) -> None:
    write_machine(here)


def traced(form: str) -> str:
    return f'{HEAD}[probes.block]\ntrace = "{form}"\n{READS}'


def test_a_trace_lies_beside_its_trial_and_is_no_part_of_the_record() -> None:
    done = run(traced("blktrace"))
    names = sorted(file.name for file in (done.path / "traces").iterdir())
    assert names == ["000000.main.nullb0.blktrace.0"]
    (trial,) = done.trials.get_column("trial")
    record = done.record(trial)
    assert record.traces == {}
    assert record.phases[0]["probes"]["block"]["all"]["total"]["bios_queued"] > 0


def test_the_same_seed_makes_the_same_trace() -> None:
    first, second = (run(traced("ftrace"), out).path / "traces" for out in ("a", "b"))
    texts = [sorted(file.read_text() for file in path.iterdir()) for path in (first, second)]
    assert texts[0] == texts[1]
    assert "block_rq_issue: 252,0 R " in texts[0][0]


@pytest.mark.parametrize(
    ("machine", "kernel", "name", "number"),
    [
        ("nvme", "6.1", "nvme0n1", "259:0"),
        ("one_disk", "6.1", "sda", "8:0"),
        ("sata_ssd", "6.1", "sda", "8:0"),
        ("athlon-2004", "2.6.7", "hda", "3:0"),
        ("athlon-2004", "2.6.19", "sda", "8:0"),
        ("known-latency", "6.1", "nullb0", "252:0"),
    ],
)
def test_a_drive_is_called_as_its_driver_calls_it(machine: str, kernel: str, name: str, number: str) -> None:
    text = traced("blktrace").replace("model:small.toml", f"model:{machine}")
    done = run(f'{text}[settings.one]\nkernel = "{kernel}"\n')
    names = {file.name.split(".")[2] for file in (done.path / "traces").iterdir()}
    assert names == {name}
    (trial,) = done.trials.get_column("trial")
    (device,) = done.record(trial).phases[0]["probes"]["block"]["devices"]
    assert device["device"] == number


@pytest.mark.skipif(shutil.which("blkparse") is None, reason="no blkparse: apt-get install blktrace")
def test_blkparse_counts_what_the_record_does() -> None:
    found = run(traced("blktrace"))
    traces = found.path / "traces"
    name = next(traces.glob("*.blktrace.0")).name.removesuffix(".blktrace.0")
    done = subprocess.run(["blkparse", "-i", name], cwd=traces, capture_output=True, text=True, check=True)
    (trial,) = found.trials.get_column("trial")
    total = found.record(trial).phases[0]["probes"]["block"]["all"]["total"]
    summary = done.stdout[done.stdout.index("CPU0 (") :]
    counted = {name: int(count) for name, count in re.findall(r"(Reads [A-Z]\w+): +(\d+)", summary)}
    assert counted["Reads Queued"] == total["bios_queued"]
    assert counted["Reads Completed"] == total["requests_completed"]


def test_without_asking_there_is_no_trace() -> None:
    done = run(f"{HEAD}[probes]\nblock = true\n{READS}")
    assert not (done.path / "traces").exists()


def test_a_host_has_other_tools_for_it() -> None:
    text = '[target]\nkind = "directory"\npath = "."\n[probes.block]\ntrace = "ftrace"\n' + READS
    expected = f"x.toml:{line_of(text, 'trace')}: probes.block.trace: iolab writes traces of simulated machines"
    assert refusals(text)[0].startswith(expected)


def test_packed_traces_come_back() -> None:
    assert unpacked_trace(packed_trace(b"\0abc" * 100)) == b"\0abc" * 100
    with pytest.raises(ValueError):
        unpacked_trace("bm90IHpsaWI=")
