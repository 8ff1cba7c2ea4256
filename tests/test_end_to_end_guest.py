"""A real kernel in a guest machine: the smallest of Debian's that is cached or can be fetched, booted five times."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from iolab.domain.phase_record import probes_of
from iolab.files.store import read
from support.command_line import CommandLine, wait_until
from support.guests import kernel_or_skip


@pytest.fixture(scope="module")
def kernel_name() -> str:
    return kernel_or_skip()


def experiment(kernel: str, more: str = "") -> str:
    return f"""
machine = "guest:{kernel}"
rounds = 1
seed = 1
[target]
kind = "scratch"
size = "32MiB"
filesystem = "none"
[guest]
memory = "512MiB"
[workloads.reads]
operations = 2000
pattern = "random"
engine = "psync"
block_size = "4KiB"
file_size = "4MiB"
{more}
"""


def test_a_guest_counts_its_load_and_tells_why_it_ended(iolab: CommandLine, kernel_name: str) -> None:
    settings = '[settings.plain]\n[settings.none]\nmachine = { command_line = "rdinit=/nothing" }\n'
    iolab.write("guest.toml", experiment(kernel_name, settings))
    iolab("run", "guest.toml", "--out", "run", status=None)
    run = read(iolab.cwd / "run")
    records = {record.spec.setting: record for record in map(run.record, run.trials["trial"].to_list())}
    assert records["none"].status == "failed"
    assert "panic" in records["none"].faults[0].what
    (phase,) = records["plain"].phases
    found = phase["probes"]["instructions"]
    assert found["operations"] == 2000
    assert any(module == "null_blk" for module in found["modules"])
    assert sum(found["instructions"]) + found["user"] == found["total"]
    # A nanosecond is an instruction: the engine's clock and the counter agree, but for what the CPU was idle.
    assert found["total"] == pytest.approx(phase["elapsed_ns"], rel=0.1)
    assert sum(found["contexts"].values()) == pytest.approx(found["total"] - found["user"], rel=0.01)
    assert found["contexts"]["task"] > 0.9 * (found["total"] - found["user"])
    assert "total" in iolab("show", "run", "--as", "symbols").stdout
    assert "kernel instructions per op" in iolab("show", "run").stdout
    assert "plain;reads;main;null_blk;" in iolab("show", "run", "--as", "folded").stdout


@pytest.mark.long
def test_a_guest_ends_for_want_of_memory_and_at_the_limit_of_its_own_time(iolab: CommandLine, kernel_name: str) -> None:
    written = 'duration = "100s"\nread_percent = 0\npattern = "sequential"\n'
    text = experiment(kernel_name).replace('operations = 2000\npattern = "random"\n', written)
    for size, larger in (('"4KiB"', '"1MiB"'), ('"4MiB"', '"900MiB"'), ('"32MiB"', '"1GiB"')):
        text = text.replace(size, larger)
    settings = '[settings.small]\nmachine = { memory = "192MiB", time_limit = "30s" }\n'
    settings += '[settings.endless]\nmachine = { virtual_time_limit = "1s", memory = "1GiB" }\n'
    iolab.write("guest.toml", f"{text}[probes]\ninstructions = false\n{settings}")
    iolab("run", "guest.toml", "--out", "run", status=None)
    run = read(iolab.cwd / "run")
    records = {record.spec.setting: record for record in map(run.record, run.trials["trial"].to_list())}
    assert {record.status for record in records.values()} == {"failed"}
    # A kernel that panics for want of memory says so; one that looks for it without end meets the limit of wall time.
    why = records["small"].faults[0].what
    assert "memory" in why or "did not end within 30 s" in why
    assert "did not end within 1 s of its own time" in records["endless"].faults[0].what


@pytest.mark.long
def test_processes_of_a_guest_sort_more_than_they_may_have_and_swap(iolab: CommandLine, kernel_name: str) -> None:
    text = experiment(kernel_name).split("[workloads.reads]")[0].replace('filesystem = "none"\n', "")
    sorting = '[workloads.sort]\nkind = "qsbench"\nprocesses = 2\nshare = 65\nmemory_limit = "16MiB"\n'
    iolab.write("guest.toml", text + sorting)
    iolab("run", "guest.toml", "--out", "run")
    run = read(iolab.cwd / "run")
    (phase,) = run.record(0).phases
    assert [group["name"] for group in phase["groups"]] == ["sort.1", "sort.2"]
    measures = phase["measures"]
    beyond = 2 * 0.65 * 2**24 - 2**24
    assert measures["swap_out_bytes"] >= beyond and measures["swap_in_bytes"] > 0  # type: ignore[operator]
    assert 0.9 * 2**24 < measures["memory_bytes_max"] <= 2**24  # type: ignore[operator]
    found = phase["probes"]["instructions"]
    assert found["operations"] == 2
    assert found["user"] > 2**22
    assert "swap_writepage" in " ".join(found["symbols"]) or "swap_readpage" in " ".join(found["symbols"])


@pytest.mark.long
def test_a_command_is_timed_and_counted_and_nothing_of_it_is_left(iolab: CommandLine, kernel_name: str) -> None:
    """Not what it leaves in the background either, which would hold its output open. It begins at a tenth of a
    second of the guest's own time."""
    head = experiment(kernel_name).partition("[workloads.")[0].replace('"none"', '"ext2"')
    text = "sleep 1000 & grep -q '^[0-9.]*0 ' /proc/uptime && dd if=/dev/zero of=file bs=4k count=10 && ls"
    iolab.write("ok.toml", f'{head}[workloads.c]\nkind = "command"\ncommand = "{text}"\n')
    iolab("run", "ok.toml", "--out", "run")
    run = read(iolab.cwd / "run")
    (phase,) = run.record(run.trials["trial"].item()).phases
    (group,) = phase["groups"]
    found = phase["probes"]["instructions"]
    assert found["operations"] == 1 and found["system_calls"]["names"]
    assert 0 < group["cpu_user_ns"] + group["cpu_system_ns"] <= phase["elapsed_ns"] < 60e9
    iolab.write("bad.toml", f'{head}[workloads.c]\nkind = "command"\ncommand = "ls absent"\n')
    iolab("run", "bad.toml", "--out", "bad", status=None)
    assert "No such file" in iolab("show", "bad", "--as", "output").stdout


@pytest.mark.long
def test_a_command_runs_in_the_kernel_of_that_name(iolab: CommandLine, kernel_name: str) -> None:
    assert iolab("guest", kernel_name, "--", "uname", "-r").stdout.split()[-1].startswith(kernel_name)
    iolab("guest", "no/such/kernel", status=2).assert_one_clear_line(2, "no such kernel image")


@pytest.mark.long
def test_a_killed_iolab_leaves_no_emulator(iolab: CommandLine, kernel_name: str) -> None:
    iolab.write("guest.toml", experiment(kernel_name))
    process = iolab.start("run", "guest.toml", "--out", "run")
    try:
        wait_until(lambda: bool(emulators(iolab.state_dir)), "QEMU")
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: not emulators(iolab.state_dir), "QEMU's end")
    finally:
        process.kill()
        process.communicate()


def emulators(state_dir: Path) -> list[int]:
    """Processes of QEMU whose machine lies in this state directory."""
    told = subprocess.run(["pgrep", "-f", f"qemu-system.*{state_dir}"], capture_output=True, text=True, check=False)
    return [int(line) for line in told.stdout.split()]


@pytest.mark.long
def test_a_read_costs_the_same_however_long_the_boot_was(iolab: CommandLine, kernel_name: str) -> None:
    """When the agent's pages were mapped as they were run, the second boot had one of them mapped before its load."""
    settings = '[settings.more]\nmachine = { memory = "1GiB" }\n[settings.less]\nmachine = { memory = "768MiB" }\n'
    reads = experiment(kernel_name, settings).replace("operations = 2000", "operations = 4000\nlayout = false")
    iolab.write("guest.toml", reads.replace("4MiB", "16MiB").replace("32MiB", "64MiB"))
    iolab("run", "guest.toml", "--out", "run")
    run = read(iolab.cwd / "run")
    more, less = (phase["probes"]["instructions"] for trial in range(2) for phase in run.record(trial).phases)
    assert more["total"] == pytest.approx(less["total"], rel=2e-4)
    ticks, faults = (
        [dict(zip(one["symbols"], one["calls"], strict=True)).get(name, 0) for one in (more, less)]
        for name in ("update_process_times", "filemap_map_pages")
    )
    assert ticks[0] == ticks[1] > 0 and faults == [0, 0]


@pytest.mark.long
def test_a_random_number_of_a_guest_costs_what_it_costs_on_a_machine_that_is_up(
    iolab: CommandLine, kernel_name: str
) -> None:
    creates = '[workloads.creates]\nkind = "fs_mark"\nfiles = 300\nfile_size = "0"\nsync = "none"\nkeep = true\n'
    target = f'machine = "guest:{kernel_name}"\nrounds = 1\n[target]\nkind = "scratch"\nsize = "64MiB"\n'
    iolab.write("creates.toml", f'{target}filesystem = "ext4"\n{creates}')
    iolab("run", "creates.toml", "--out", "run")
    (record,) = map((run := read(iolab.cwd / "run")).record, run.trials["trial"].to_list())
    found = probes_of(record.phases[-1])["instructions"]
    by_symbol = zip(found["symbols"], found["instructions"], strict=True)
    hashing = sum(amount for symbol, amount in by_symbol if symbol.startswith("blake2s"))
    assert hashing < 0.01 * found["total"]


@pytest.mark.long
def test_reads_of_an_emulated_nvme_drive_cost_the_same_in_each_boot(iolab: CommandLine, kernel_name: str) -> None:
    """Its completions come at a time of the machine's own: without, each of them took a tick or more."""
    text = experiment(kernel_name).replace("rounds = 1", "rounds = 2").replace("[guest]\n", '[guest]\ndrive = "nvme"\n')
    iolab.write("nvme.toml", text)
    iolab("run", "nvme.toml", "--out", "run")
    run = read(iolab.cwd / "run")
    phases = [run.record(trial).phases[0] for trial in run.trials["trial"].to_list()]
    first, second = (phase["probes"]["instructions"]["total"] for phase in phases)
    assert first == pytest.approx(second, rel=0.002)
    for phase in phases:
        assert 10_000 < phase["elapsed_ns"] / 2000 < 100_000
        # The idle task and the worker that dispatches are not the reader.
        contexts = phase["probes"]["instructions"]["contexts"]
        assert 0.15 * sum(contexts.values()) < contexts["kernel thread"] < contexts["task"]


def test_commands_with_a_hint_want_a_drive_with_placement_handles(iolab: CommandLine, kernel_name: str) -> None:
    """QEMU's drive has none: it refuses the question."""
    job = 'engine = "io_uring_cmd"\nread_percent = 0\nwrite_hint = "short"\n[settings.a]\n'
    text = experiment(kernel_name, job).replace('engine = "psync"\n', "")
    iolab.write("guest.toml", text.replace("[guest]\n", '[guest]\ndrive = "nvme"\n'))
    told = iolab("run", "guest.toml", "--out", "run", status=None)
    assert told.status != 0 and "no placement handles (it answers status" in told.text
