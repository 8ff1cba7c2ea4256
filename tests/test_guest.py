"""Guest machines: what is packed, booted, counted and compared."""

import json
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from iolab.base.errors import InputError, MachineError
from iolab.domain import chains
from iolab.domain.machine import Guest
from iolab.domain.probe.instructions import PROBE
from iolab.domain.symbols import USER, Difference, differences, per_operation, with_inlined, with_renamed
from iolab.domain.trial import TimedCommandPhase
from iolab.files.experiment import loads
from iolab.machines.guest import (
    agent_message,
    commands,
    counter_output,
    debian,
    debug_files,
    describe,
    guest,
    kernel,
    modules,
    plan,
    qemu,
    symbols,
)
from iolab.machines.guest.debug_files import Source
from iolab.machines.guest.initramfs import Archive
from iolab.machines.ports import port_of
from iolab.studies.run.plan import Plan

EXPERIMENT = """
machine = "guest:6.1.0-1-cloud"
[target]
kind = "scratch"
size = "64MiB"
filesystem = "none"
[workloads.reads]
operations = 2000
pattern = "random"
engine = "psync"
block_size = "4KiB"
file_size = "8MiB"
"""


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed: nobody else reads the archive")
def test_the_archive_is_what_cpio_reads(tmp_path: Path) -> None:
    archive = Archive()
    archive.add("/init", b"program")
    archive.add("/etc/deep/file", b"12345")
    subprocess.run(["cpio", "-id", "--quiet"], input=archive.packed(), cwd=tmp_path, check=True, timeout=20)
    assert (tmp_path / "init").read_bytes() == b"program"
    assert (tmp_path / "etc/deep/file").read_bytes() == b"12345"


def test_modules_come_after_what_they_need(tmp_path: Path) -> None:
    for name, depends in (("null_blk", "configfs"), ("configfs", ""), ("xfs", "libcrc32c"), ("libcrc32c", "")):
        (tmp_path / f"{name}.ko").write_bytes(b"\x7fELF\0depends=" + depends.encode() + b"\0intree=Y\0")
    (tmp_path / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\n")
    found = modules.Modules(tmp_path).needed(["null_blk", "xfs", "ext4"])
    assert [name for name, _ in found] == ["configfs", "null_blk", "libcrc32c", "xfs"]


def _counts(
    *blocks: tuple[int, int, int],
    chains: Sequence[tuple[int, int, int]] = (),
    strings: Mapping[int, tuple[int, int]] = MappingProxyType({}),
    calls: Sequence[tuple[int, int, int]] = (),
    locked: Sequence[int] = (),
) -> bytes:
    """A window of blocks: start, instructions, how often executed. Chains: function, instructions, caller. Strings, by
    the block's start: repetitions, bytes. Calls of the system: function, instructions, how often. Locked: places of
    instructions, counted over all blocks."""
    header = struct.pack("<11Q", counter_output.MAGIC, len(blocks), 70, 0, 0, 0, 30, 20, 5, len(chains), len(calls))
    of_blocks = b"".join(
        struct.pack("<QIIQQQ", start, 4, count, times, *strings.get(start, (0, 0))) for start, count, times in blocks
    )
    sizes = bytes(0x81 if place in locked else 1 for place in range(sum(count for _, count, _ in blocks)))
    of_chains = b"".join(struct.pack("<QQII", *chain, 0) for chain in chains)
    return header + of_blocks + of_chains + b"".join(struct.pack("<QQQ", *call) for call in calls) + sizes


KERNEL = 0xFFFFFFFF81000000
TABLE = symbols.parse(
    b"ffffffff81000000 T entry\nffffffff81000100 t helper.isra.0\nffffffff81000100 T alias_of_helper\n"
    b"ffffffffc0000000 t read_page\t[null_blk]\nffffffff81000200 D data\n"
)


def test_instructions_go_to_the_function_that_holds_them() -> None:
    content = _counts((0x401000, 7, 10), (KERNEL, 3, 100), (KERNEL + 8, 2, 50), (0xFFFFFFFFC0000010, 5, 4))
    (window,) = counter_output.windows(content, 1)
    found = counter_output.observation(window, TABLE, 10)
    assert found["symbols"] == ["entry", "read_page"]
    assert found["modules"] == ["", "null_blk"]
    assert (found["instructions"], found["calls"]) == ([400, 20], [100, 0])
    assert (found["user"], found["total"]) == (70, 490)
    with pytest.raises(ValueError, match="damaged"):
        counter_output.windows(content[:-1], 1)


def test_a_string_instruction_is_one_and_its_bytes_stand_beside_it() -> None:
    content = _counts((KERNEL, 3, 10), (KERNEL + 8, 1, 640), strings={KERNEL + 8: (630, 5040)})
    (window,) = counter_output.windows(content, 1)
    found = counter_output.observation(window, TABLE, 10)
    assert (found["instructions"], found["string_bytes"], found["total"]) == ([40], [5040], 40)
    assert "string_bytes" not in counter_output.observation(window, TABLE, 10, one_cpu=False)


def test_locked_instructions_count_as_often_as_their_block_runs() -> None:
    content = _counts((KERNEL, 3, 10), (KERNEL + 0x100, 2, 5), (0x401000, 2, 7), locked=(0, 2, 4, 5))
    (window,) = counter_output.windows(content, 1)
    assert window.locked.tolist() == [2, 1, 1]
    assert set(window.sizes.tolist()) == {1}
    found = counter_output.observation(window, TABLE, 10)
    assert dict(zip(found["symbols"], found["locked"], strict=True))["entry"] == 20
    assert sum(found["locked"]) == 25


def test_system_calls_are_told_by_their_names() -> None:
    table = symbols.parse(b"ffffffff81000000 T __x64_sys_fsync\nffffffff81000100 T __x64_sys_write\n")
    content = _counts((KERNEL, 3, 10), calls=[(KERNEL + 0x100, 20, 10), (KERNEL, 500, 1)])
    found = counter_output.observation(counter_output.windows(content, 1)[0], table, 10)
    assert found["system_calls"] == {"names": ["fsync", "write"], "instructions": [500, 20], "calls": [1, 10]}
    metrics = {one.name: one.of(SimpleNamespace(probes={"instructions": found})) for one in PROBE.metrics}
    assert metrics["sync_call_instructions"] == 500 and metrics["write_call_instructions"] == 2
    assert metrics["read_call_instructions"] is None
    assert [kind for *_, kind in map(str.split, table.watched(chains=False).splitlines())] == ["y", "y"]


def test_chains_of_calls_keep_all_instructions_and_name_their_functions() -> None:
    followed = [(0, 70, 0), (KERNEL, 200_000, 0), (KERNEL + 0x100, 150_000, 1), (KERNEL + 0x200, 1, 2)]
    content = _counts((0x401000, 7, 10), (KERNEL, 350_001, 1), chains=followed)
    found = counter_output.observation(counter_output.windows(content, 1)[0], TABLE, 10, memory=True, cache=True)
    assert (found["memory"], found["cache_misses"]) == ({"read": 30, "write": 20}, 5)
    # A chain that is hardly worth a word is its caller's.
    assert chains.per_operation(found) == {
        (chains.OUTSIDE,): 7.0,
        ("entry",): 20_000.0,
        ("entry", "alias_of_helper"): 15_000.1,
    }
    assert chains.callers(chains.per_operation(found)) == {"alias_of_helper": {"entry"}}
    whole = chains.with_callers(chains.per_operation(found))
    assert whole[("entry",)] == pytest.approx(35_000.1)


INLINED = """
static inline __attribute__((always_inline)) long helper(long x) {
    for (int i = 0; i < 3; i++) x = x * 31 + (x >> 7);
    return x;
}
__attribute__((section(".text.a"))) long entry(long x) {
    x += 5;
    return helper(x) ^ 9;
}
"""


@pytest.mark.skipif(not all(map(shutil.which, ("gcc", "addr2line", "nm"))), reason="takes gcc and binutils")
def test_a_function_that_was_inlined_counts_as_itself_where_the_kernel_has_debug_information(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(INLINED)
    options = [
        "-O2",
        "-nostdlib",
        "-static",
        "-fno-pic",
        "-no-pie",
        "-mcmodel=kernel",
        f"-Wl,-Ttext={KERNEL:#x},-e,entry,--build-id=none",
    ]
    made = tmp_path / "vmlinux"
    subprocess.run(["gcc", "-g", *options, "a.c", "-o", made], cwd=tmp_path, check=True)
    told = subprocess.run(["nm", "-S", made], capture_output=True, text=True, check=True).stdout
    ((start, size),) = [(int(at, 16), int(of, 16)) for at, of in re.findall(r"(\w+) (\w+) T entry", told)]
    table = symbols.parse(b"%016x T entry\n%016x t behind\n" % (start, start + size))
    # One instruction a byte: what belongs to the function goes by its size.
    (window,) = counter_output.windows(_counts((start, size, 10), (start + size, 4, 1)), 1)
    found = counter_output.observation(window, table, 10, source=Source(made))
    amounts = dict(zip(found["symbols"], found["instructions"], strict=True))
    assert amounts.keys() == {"entry", "helper", "behind"}
    assert amounts["helper"] > amounts["entry"] > 0
    assert sum(amounts.values()) == found["total"] == 10 * size + 4
    assert amounts.pop("behind") == 4
    lines = dict(zip(found["lines"]["lines"], found["lines"]["instructions"], strict=True))
    assert sum(lines.values()) == sum(amounts.values())
    assert {line.partition(":")[0] for line in lines} == {"a.c"}
    subprocess.run(["strip", made], check=True)
    with pytest.raises(MachineError, match="no debug information"):
        counter_output.observation(window, table, 10, source=Source(made))


@pytest.mark.skipif(not all(map(shutil.which, ("gcc", "addr2line", "objdump"))), reason="takes gcc and binutils")
def test_functions_inlined_in_a_module_are_told_wherever_the_kernel_put_it(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(INLINED)
    (tmp_path / "kernel").mkdir()
    made = tmp_path / "kernel" / "some-module.ko"
    subprocess.run(
        ["gcc", "-g", "-O2", "-c", "-fno-pic", "-mcmodel=kernel", "a.c", "-o", made], cwd=tmp_path, check=True
    )
    (tmp_path / "vmlinux-7.0").touch()
    source = debug_files.at(tmp_path)
    assert source is not None and source.image.name == "vmlinux-7.0"
    told = subprocess.run(["objdump", "--syms", made], capture_output=True, text=True, check=True).stdout
    ((at, size),) = [(int(at, 16), int(of, 16)) for at, of in re.findall(r"^(\w+) .*F \S+\t(\w+) entry$", told, re.M)]
    start = 0xFFFFFFFFC0123000 + at
    table = symbols.parse(b"%016x T entry\t[some_module]\n%016x t behind\t[other]\n" % (start, start + size))
    (window,) = counter_output.windows(_counts((start, size, 10), (start + size, 4, 1)), 1)
    found = counter_output.observation(window, table, 10, source=source)
    amounts = dict(zip(zip(found["symbols"], found["modules"], strict=True), found["instructions"], strict=True))
    assert amounts.keys() == {("entry", "some_module"), ("helper", "some_module"), ("behind", "other")}
    assert amounts["helper", "some_module"] > amounts["entry", "some_module"] > 0
    lines = dict(zip(found["lines"]["lines"], found["lines"]["instructions"], strict=True))
    assert {line.partition(":")[0] for line in lines} == {"a.c"} and sum(lines.values()) == 10 * size


def test_a_function_that_only_passes_a_call_on_is_no_caller() -> None:
    told: Any = {
        "functions": [chains.OUTSIDE, "submit", "__x86_indirect_thunk_rax", "queue_rq"],
        "callers": [0, 0, 1, 2],
        "instructions": [0, 10, 3, 5],
    }
    found: Any = {"operations": 1, "chains": told}
    assert chains.per_operation(found) == {(chains.OUTSIDE,): 0, ("submit",): 13, ("submit", "queue_rq"): 5}


def test_of_several_names_the_global_one_stands() -> None:
    assert TABLE.names == ["entry", "alias_of_helper", "data", "read_page"]
    assert list(TABLE.starts) == sorted(TABLE.starts)


def test_changes_by_function_add_up_and_only_what_changed_is_named() -> None:
    def of(extra: int, noise: int) -> dict[tuple[str, str], float]:
        content = _counts((0x401000, 7, 10), (KERNEL, 300 + extra, 10), (KERNEL + 0x100, 20 + noise, 10))
        return per_operation(counter_output.observation(counter_output.windows(content, 1)[0], TABLE, 10))

    before, after = [of(0, noise) for noise in (0, 3, 1)], [of(50, noise) for noise in (2, 0, 3)]
    found = differences(before, after)
    assert [one.symbol for one in found if one.is_named] == ["entry"]
    assert found[0].change == 50
    totals = [sum(sum(one.values()) for one in side) / 3 for side in (before, after)]
    assert sum(one.change for one in found) == pytest.approx(totals[1] - totals[0])
    assert {one.symbol for one in found} == {USER, "entry", "alias_of_helper"}


def test_what_the_layout_of_the_text_makes_is_not_named() -> None:
    """A page fault more in a thousand creates, as a shifted text had."""
    create = [{("create", ""): 82_500.0, ("filemap_map_pages", ""): 0.0}] * 2
    shifted = [{("create", ""): 82_500.0, ("filemap_map_pages", ""): 1.9}] * 2
    assert not any(one.is_named for one in differences(create, shifted))
    read = [{("read", ""): 4_700.0, ("start", ""): 37.0}] * 2
    slower = [{("read", ""): 4_700.0, ("start", ""): 38.0}] * 2
    assert [one.symbol for one in differences(read, slower) if one.is_named] == ["start"]


def test_a_function_with_a_new_name_is_one_function() -> None:
    old, new = Difference("kfree_hook", "", 100.0, 0.0, True), Difference("__kfree_hook_noprof", "", 0.0, 103.0, True)
    other = Difference("kfree_hook_twice", "", 0.0, 7.0, True)
    found = with_renamed(
        [new, old, other], {("kfree_hook", ""): 2.0}, {(new.symbol, ""): 2.02, (other.symbol, ""): 9.0}
    )
    assert [(one.symbol, one.change) for one in found] == [
        ("kfree_hook_twice", 7.0),
        ("kfree_hook -> __kfree_hook_noprof", 3.0),
    ]
    assert sum(one.change for one in found) == old.change + new.change + other.change


def test_a_function_that_its_only_caller_took_into_itself_is_one_with_it() -> None:
    gone, caller = Difference("helper", "", 40.0, 0.0, True), Difference("submit", "", 100.0, 136.0, True)
    other = Difference("complete", "", 10.0, 50.0, True)
    found = [gone, caller, other]
    (first, second) = with_inlined(found, {"helper": {"submit"}}, {})
    assert (first.symbol, first.change) == ("complete", 40.0)
    assert (second.symbol, second.baseline, second.candidate) == ("submit + helper", 140.0, 136.0)
    # Another caller, or none known, or a caller that did not grow by it.
    for callers in ({"helper": {"submit", "complete"}}, {}):
        assert set(with_inlined(found, callers, {})) == set(found)
    grown = [gone, Difference("submit", "", 100.0, 300.0, True)]
    assert set(with_inlined(grown, {"helper": {"submit"}}, {})) == set(grown)


def test_where_calls_were_not_followed_an_inlined_function_is_inferred_and_said_to_be() -> None:
    gone = Difference("null_transfer", "m", 452.0, 0.0, True)
    grew = Difference("null_process_cmd", "m", 30.0, 400.0, True)
    elsewhere = Difference("submit_bio", "", 30.0, 470.0, True)
    (first, second) = with_inlined([gone, grew, elsewhere], {}, {})
    assert first == elsewhere
    assert second.symbol == "null_process_cmd + null_transfer (inlined, inferred)" and second.change == -82.0
    parted = [Difference("a", "m", 0.0, 452.0, True), Difference("b", "m", 400.0, 30.0, True)]
    assert [one.symbol for one in with_inlined(parted, {}, {})] == ["b - a (inlined, inferred)"]
    alike = Difference("null_queue_bio", "m", 30.0, 430.0, True)
    assert set(with_inlined([gone, grew, alike], {}, {})) == {gone, grew, alike}


def test_groups_that_compete_by_weight_are_threads_in_control_groups() -> None:
    text = EXPERIMENT.split("[workloads.reads]")[0] + (
        '[workloads.shares]\nkind = "iostest"\njob = "drr"\ngroups = 2\nweights = [100, 300]\nfile_size = "8MiB"\n'
        'duration = "1s"\n[settings.bfq]\nscheduler = "bfq"\n'
    )
    (trial,) = Plan(loads(text, "guest.toml"), 1).round(0)
    made = plan.make(trial, modules.Modules(None))
    weights = [step["value"] for step in made.steps if str(step.get("path")).endswith("blkio.bfq.weight")]
    assert weights == ["100", "300"]
    (phase,) = [json.loads(json.dumps(step))["phase"] for step in made.steps if step["do"] == "load"][1:]
    assert phase["ends_with_first"]
    assert {Path(group["cgroup"]).name for group in phase["groups"]} == {"test1", "test2"}
    with pytest.raises(InputError, match="leave iostest out, or run it on a host"):
        loads(text.replace('job = "drr"', 'job = "drr"\ncontroller = "cost"'), "guest.toml")


def test_limits_of_groups_name_the_guests_drive() -> None:
    text = EXPERIMENT.split("[workloads.reads]")[0] + (
        '[workloads.tenants]\nkind = "mix"\nduration = "1s"\n[workloads.tenants.groups.limited]\n'
        'io_max = { read = 1000000, write_iops = 5 }\nio_prio_class = "idle"\n'
        '[workloads.tenants.jobs.reads]\ngroup = "limited"\nfile_size = "8MiB"\n[settings.plain]\n'
    )
    (trial,) = Plan(loads(text, "guest.toml"), 1).round(0)
    steps = plan.make(trial, modules.Modules(None)).steps
    copied = [step for step in steps if step["do"] == "copy"]
    directory = "/control-groups/limited"
    assert [(step["source"], step["words"], step["path"]) for step in copied] == [
        ("/sys/block/nullb0/dev", "1000000", f"{directory}/blkio.throttle.read_bps_device"),
        ("/sys/block/nullb0/dev", "5", f"{directory}/blkio.throttle.write_iops_device"),
    ]
    written = {step["path"]: step["value"] for step in steps if step["do"] == "write"}
    assert written[f"{directory}/blkio.prio.class"] == "idle", "it is of no device"
    # A scheduler that shares by weight may not be there.
    assert not any(str(step.get("path")).endswith("weight") for step in steps)
    (phase,) = [json.loads(json.dumps(step))["phase"] for step in steps if step["do"] == "load"][-1:]
    assert [group["cgroup"] for group in phase["groups"]] == [directory]
    with pytest.raises(InputError, match="io_prio_class and io_weight alone, and limited has memory_max"):
        loads(text.replace("io_max = {", 'memory_max = "64MiB"\nio_max = {'), "guest.toml")


VERSION_2 = """
[workloads.tenants]
kind = "mix"
duration = "1s"
io_cost_model = "rbps=1000"
[workloads.tenants.groups.first]
io_latency = "2ms"
io_max = { read = 1000000 }
[workloads.tenants.groups.other]
[workloads.tenants.jobs.reads]
group = "first"
file_size = "8MiB"
[workloads.tenants.jobs.writes]
group = "other"
read_percent = 0
file_size = "8MiB"
[settings.plain]
"""


def test_groups_of_version_2_are_processes_each_with_its_own_files() -> None:
    text = EXPERIMENT.split("[workloads.reads]")[0] + VERSION_2
    (trial,) = Plan(loads(text, "guest.toml"), 1).round(0)
    steps = plan.make(trial, modules.Modules(None)).steps
    copied = {
        str(step["path"]).removeprefix("/control-groups/"): step["words"] for step in steps if step["do"] == "copy"
    }
    assert copied == {
        "io.cost.model": "ctrl=user model=linear rbps=1000",
        "io.cost.qos": "enable=1",
        "first/io.latency": "target=2000",
        "first/io.max": "rbps=1000000",
    }
    weights = {step["path"]: step["value"] for step in steps if str(step.get("path")).endswith("io.weight")}
    assert weights == {f"/control-groups/{group}/io.weight": "100" for group in ("first", "other")}
    (done,) = [json.loads(json.dumps(step)) for step in steps if step["do"] == "members"]
    assert [Path(member["group"]).name for member in done["members"]] == ["first", "other"]
    for member, job in zip(done["members"], ("reads", "writes"), strict=True):
        (group,) = member["phase"]["groups"]
        assert [one["name"] for one in group["jobs"]] == [job]
        assert [one["files"] for one in group["jobs"]] == [[0]]
        assert len(member["phase"]["files"]) == 1
    ends = text.replace('duration = "1s"', 'duration = "1s"\nends_with = "writes"')
    with pytest.raises(InputError, match="processes that each run to their end; leave ends_with out"):
        loads(ends, "guest.toml")


def test_a_setting_changes_kernel_and_machine() -> None:
    text = EXPERIMENT + (
        '[guest]\ncpus = 1\n[settings.old]\n[settings.new]\nkernel = "6.12.1-cloud"\n'
        'machine = { cpus = 2, "drive_parameters.irqmode" = 1 }\nscheduler = "bfq"\nnr_requests = 64\n'
    )
    experiment = loads(text, "guest.toml")
    assert isinstance(experiment.machine, Guest)
    old, new = experiment.machine.under["old"], experiment.machine.under["new"]
    assert (old.kernel, old.cpus, old.drive_parameters) == ("6.1.0-1-cloud", 1, {})
    assert (new.kernel, new.cpus, new.drive_parameters) == ("6.12.1-cloud", 2, {"irqmode": "1"})
    (trial,) = [trial for trial in Plan(experiment, 1).round(0) if trial.setting == "new"]
    made = plan.make(trial, modules.Modules(None))
    # A kernel that has null_blk built in takes it from there.
    assert made.parameters == ["null_blk.nr_devices=0"]
    written = [(step["path"], step["value"]) for step in made.steps if step["do"] == "write"]
    assert ("/sys/kernel/config/nullb/nullb0/irqmode", "1") in written
    assert written[-2:] == [
        ("/sys/block/nullb0/queue/scheduler", "bfq"),
        ("/sys/block/nullb0/queue/nr_requests", "64"),
    ]
    (load,) = [
        step for step in made.steps if step["do"] == "load" and json.loads(json.dumps(step))["phase"]["name"] == "main"
    ]
    assert load["phase"]["files"][0]["path"] == "/dev/nullb0"  # type: ignore[index]


@pytest.mark.parametrize(
    ("old", "new", "keeps"),
    [
        ("", "", "0"),
        ('filesystem = "none"', 'filesystem = "xfs"', "1"),
        ("operations = 2000", "operations = 2000\nverify = true", "1"),
        ("", "[guest.drive_parameters]\ncache_size = 1\n", "1"),
        ("", "[guest.drive_parameters]\nmemory_backed = 1\n", "1"),
    ],
)
def test_a_drive_keeps_what_is_written_where_somebody_reads_it(old: str, new: str, keeps: str) -> None:
    text = EXPERIMENT.replace(old, new) if old else EXPERIMENT + new
    (trial,) = Plan(loads(text, "guest.toml"), 1).round(0)
    assert plan.null_blk_parameters(trial)["memory_backed"] == keeps
    assert describe.observed(trial, None, None)["device"]["memory_backed"] == (keeps == "1")


@pytest.mark.parametrize(
    ("filesystem", "accelerator", "file"),
    [
        ("none", "tcg", "driver=null-co,size=67108864,read-zeroes=on"),
        ("xfs", "tcg", "format=raw,cache=unsafe"),
        ("none", "kvm", "format=raw,cache=unsafe"),
    ],
)
def test_a_drive_of_qemus_waits_for_no_host_where_nothing_is_read(
    tmp_path: Path, filesystem: str, accelerator: str, file: str
) -> None:
    text = EXPERIMENT.replace('"none"', f'"{filesystem}"')
    text += f'[guest]\ndrive = "nvme"\naccelerator = "{accelerator}"\n'
    (trial,) = Plan(loads(text, "guest.toml"), 1).round(0)
    board = qemu.Board(tmp_path / "image", tmp_path / "initramfs", 1, 2**29, drives=guest._drives(trial, tmp_path))
    (drive,) = [word for word in board.arguments(tmp_path / "console") if word.startswith("if=none")]
    assert drive.endswith(file) and (tmp_path / "drive0").exists() == file.startswith("format")


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ("[guest]\ncpus = 0\n", "guest.cpus"),
        ("[guest]\ncpu = 1\n", "guest.cpu"),
        ("[settings.a]\nirq_cpus = 1\n", "settings.a.irq_cpus: not to be had on a guest machine"),
        ("[probes]\nblock = true\n", "probes.block: a guest machine has the probe instructions only"),
        ('[workloads.make]\nkind = "make-sequence"\n', "phases are not to be had"),
        ('[workloads.c]\nkind = "command"\ncommand = "ls"\n', "give the target a filesystem"),
        ('[workloads.c]\nkind = "command"\ncommand = "ls"\ndirectory = "/tmp"\n', "has no directory of this host"),
    ],
)
def test_what_a_guest_has_not_is_told_on_its_line(more: str, what: str) -> None:
    with pytest.raises(InputError) as error:
        loads(EXPERIMENT + more, "guest.toml")
    assert what in str(error.value)


def test_commands_of_nvme_go_to_a_drive_of_nvme_alone(tmp_path: Path) -> None:
    for name in ("null_blk", "nvme"):
        (tmp_path / f"{name}.ko").write_bytes(b"\x7fELF\0depends=\0")
    text = EXPERIMENT.replace("psync", "io_uring_cmd")
    trials = [Plan(loads(text + more, "guest.toml"), 1).round(0)[0] for more in ("", "[guest]\ndrive = 'nvme'\n")]
    with pytest.raises(InputError, match="NVMe") as error:
        plan.make(trials[0], modules.Modules(tmp_path))
    assert error.value.remedy is not None and 'drive = "nvme"' in error.value.remedy
    loads_of = [step["phase"] for step in plan.make(trials[1], modules.Modules(tmp_path)).steps if step["do"] == "load"]
    engines = [group["engine"] for phase in loads_of for group in json.loads(json.dumps(phase))["groups"]]
    assert engines == ["io_uring", "io_uring_cmd"], "a layout's commands would be too large"


@pytest.mark.parametrize(("cpus", "are_aligned"), [(1, True), (2, False)])
def test_steps_are_aligned_where_time_is_instructions(tmp_path: Path, cpus: int, are_aligned: bool) -> None:
    (tmp_path / "null_blk.ko").write_bytes(b"\x7fELF\0depends=\0")
    (trial,) = Plan(loads(f"{EXPERIMENT}\n[guest]\ncpus = {cpus}\n", "guest.toml"), 1).round(0)
    assert (plan.make(trial, modules.Modules(tmp_path)).alignment_ns > 0) == are_aligned


@pytest.mark.parametrize(
    ("has", "filesystem", "loaded"),
    [(["ext4"], "ext3", ["ext4"]), (["ext2", "ext4"], "ext2", ["ext2"]), (["xfs"], "xfs", ["xfs"])],
)
def test_a_filesystem_comes_with_the_module_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has: list[str], filesystem: str, loaded: list[str]
) -> None:
    for name in ["null_blk", *has]:
        (tmp_path / f"{name}.ko").write_bytes(b"\x7fELF\0depends=\0")
    monkeypatch.setattr(plan.programs, "pack", lambda archive, name, package: f"/sbin/{name}")
    text = EXPERIMENT.replace('filesystem = "none"', f'filesystem = "{filesystem}"')
    (trial,) = Plan(loads(text, "guest.toml"), 1).round(0)
    made = plan.make(trial, modules.Modules(tmp_path))
    names = [Path(str(step["path"])).stem for step in made.steps if step["do"] == "module"]
    assert names == ["null_blk", *loaded]
    assert [step["filesystem"] for step in made.steps if step["do"] == "mount"][1:] == [filesystem]


@pytest.mark.parametrize("options", ["", 'mkfs_options = "-E stride=16"\n'])
def test_each_round_makes_the_same_filesystem(monkeypatch: pytest.MonkeyPatch, options: str) -> None:
    """What an ext4 draws decides where names lie in directories, and so what a create costs."""
    monkeypatch.setattr(plan.programs, "pack", lambda archive, name, package: f"/sbin/{name}")
    text = EXPERIMENT.replace('filesystem = "none"\n', f'filesystem = "ext4"\n{options}')
    trials = [trial for turn in (0, 1) for trial in Plan(loads(text, "guest.toml"), 1).round(turn)]
    made = [plan.make(trial, modules.Modules(None)).steps for trial in trials]
    first, second = ([step["argv"] for step in steps if step["do"] == "run"] for steps in made)
    assert first == second and trials[0].seed != trials[1].seed
    (argv,) = first
    assert isinstance(argv, list)
    last = argv[len(argv) - argv[::-1].index("-E")]
    assert last.endswith(f",hash_seed={argv[argv.index('-U') + 1]}")
    assert ("stride=16" in last) == bool(options)


COMMAND = EXPERIMENT.replace('filesystem = "none"', 'filesystem = "ext4"').partition("[workloads.")[0]


def test_a_command_comes_with_its_shell_and_the_programs_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: dict[str, None] = {}
    monkeypatch.setattr(
        plan.programs, "pack", lambda archive, name, package: packed.setdefault(name) or f"/sbin/{name}"
    )
    text = COMMAND + '[workloads.c]\nkind = "command"\ncommand = "ls -l;cat x|sort >y && nothing"\ncpus = [0]\n'
    (trial,) = Plan(loads(text, "guest.toml"), 1).round(0)
    made = plan.make(trial, modules.Modules(None))
    assert {"sh", "ls", "cat", "sort"} <= packed.keys() and "nothing" not in packed
    (step,) = [step for step in made.steps if step["do"] == "command"]
    told = {"shell": "/sbin/sh", "text": "ls -l;cat x|sort >y && nothing", "directory": "/target/0/command"}
    assert step["command"] == {**told, "device": "/dev/nullb0", "cpus": [0]}


def test_a_script_is_no_program_that_a_guest_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    monkeypatch.setattr(commands.command, "find", {"script": str(tmp_path / "script")}.get)
    monkeypatch.setattr(plan.programs, "pack", lambda archive, name, package: f"/sbin/{name}")
    (trial,) = Plan(loads(COMMAND + '[workloads.c]\nkind = "command"\ncommand = "script"\n', "x.toml"), 1).round(0)
    with pytest.raises(InputError, match="script is a script"):
        plan.make(trial, modules.Modules(None))


@pytest.mark.parametrize(
    ("status", "signal", "failed"),
    [(0, None, []), (3, None, ["failed with exit status 3: no room"]), (None, 9, ["was killed by signal 9: no room"])],
)
def test_a_command_of_a_guest_has_times_and_fails_as_on_a_host(
    status: int | None, signal: int | None, failed: list[str]
) -> None:
    (trial,) = Plan(loads(COMMAND + '[workloads.c]\nkind = "command"\ncommand = "ls"\n', "x.toml"), 1).round(0)
    (phase,) = trial.phases
    assert isinstance(phase, TimedCommandPhase)
    told = {"started_unix_ns": 1, "elapsed_ns": 8, "used": [4, 3, 2, 1, 0, 0], "output": "no room\n"}
    ended = agent_message.CommandEnd.model_validate({**told, "status": status, "signal": signal})
    record = commands.record(phase, ended)
    (group,) = record["groups"]
    assert (record["elapsed_ns"], group["cpu_user_ns"], group["cpu_system_ns"]) == (8, 4, 3)
    assert [one["what"] for one in record["failures"]] == [f"ls {what}" for what in failed]


def test_a_command_ends_by_itself_or_by_a_signal() -> None:
    told = {"started_unix_ns": 1, "elapsed_ns": 8, "used": [0] * 6, "output": "", "status": 0, "signal": 9}
    with pytest.raises(ValueError, match="by itself, or by a signal"):
        agent_message.CommandEnd.model_validate(told)


SORTING = """
machine = "guest:6.1.0-1-cloud"
[target]
kind = "scratch"
size = "64MiB"
devices = 2
[workloads.sort]
kind = "qsbench"
memory_limit = "32MiB"
processes = 2
share = 80
swap_size = "60MiB"
swappiness = 100
cpus = [0]
"""


def test_sorting_swaps_to_the_bare_drives_of_a_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan.programs, "pack", lambda archive, name, package: f"/sbin/{name}")
    (trial,) = Plan(loads(SORTING, "guest.toml"), 1).round(0)
    made = plan.make(trial, modules.Modules(None))
    done = [step for step in made.steps if step["do"] in ("run", "swap", "mount", "sort")]
    assert [step["do"] for step in done] == ["mount", "run", "swap", "run", "swap", "mount", "sort"]
    assert done[1]["argv"][-2:] == ["/dev/nullb0", str(30 * 1024)]  # type: ignore[index]
    written = {step["path"]: step["value"] for step in made.steps if step["do"] == "write"}
    assert written["/control-groups/sort/memory.max"] == str(32 << 20)
    assert written["/proc/sys/vm/swappiness"] == "100"
    processes: Any = done[-1]["processes"]
    assert [(one["cpus"], one["sort"]["bytes"]) for one in processes] == [([0], (32 << 20) * 8 // 10 // 4 * 4)] * 2
    assert processes[0]["sort"]["seed"] != processes[1]["sort"]["seed"]


def test_sorting_needs_a_machine_with_the_memory_of_its_limit_and_of_its_drives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan.programs, "pack", lambda archive, name, package: f"/sbin/{name}")
    text = SORTING.replace('"32MiB"', '"128MiB"').replace("share = 80", "share = 70")
    for drive, fits in (("virtio-blk", True), ("null_blk", False)):
        (trial,) = Plan(loads(f'{text}[guest]\nmemory = "250MiB"\ndrive = "{drive}"\n', "guest.toml"), 1).round(0)
        if fits:
            plan.make(trial, modules.Modules(None))
            continue
        with pytest.raises(InputError, match="that null_blk keeps and the kernel take"):
            plan.make(trial, modules.Modules(None))


def test_many_drives_lie_behind_bridges_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolab.machines.guest.programs.qemu", lambda: "qemu")

    def devices(count: int) -> list[str]:
        drives = [qemu.Drive(tmp_path / f"d{number}", "nvme", {}) for number in range(count)]
        arguments = qemu.Board(tmp_path, tmp_path, 1, 2**30, drives=drives).arguments(tmp_path / "console")
        return [word for word in arguments if word.startswith(("nvme", "pci-bridge"))]

    assert devices(2) == ["nvme,drive=drive0", "nvme,drive=drive1"]
    many = devices(144)
    assert len([word for word in many if word.startswith("pci-bridge")]) == 5
    assert many[-1] == "nvme,drive=drive143,bus=bridge4,addr=0x14"


def test_drives_have_interrupts_or_are_refused() -> None:
    text = EXPERIMENT.replace('size = "64MiB"', 'size = "64MiB"\ndevices = 144')
    for drive in ('drive = "scsi_debug"', 'drive = "nvme"\ncpus = 4'):
        loads(f"{text}[guest]\n{drive}\n", "guest.toml")
    with pytest.raises(
        InputError, match=r"target\.devices: a guest machine with 1 virtual CPUs has interrupts for 90 drives"
    ):
        loads(f'{text}[settings.a]\nmachine = {{ drive = "nvme" }}\n', "guest.toml")


def test_commits_of_a_tree_are_not_built_before_a_trial_takes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe.programs, "agent", lambda: None)
    monkeypatch.setattr(describe.programs, "counter", lambda: None)
    monkeypatch.setattr(describe, "_version", lambda: "7.2")
    monkeypatch.setattr(kernel.tree, "build", lambda name: pytest.fail("built"))
    experiment = loads(EXPERIMENT + '[settings.one]\nkernel = "/linux@abc"\n', "guest.toml")
    told: Any = port_of(experiment.machine).describe(experiment.machine, experiment.target)
    assert told["guest"]["kernels"] == {"/linux@abc": {"commit": "abc"}}


def test_kernels_of_a_tree_are_listed_as_an_experiment_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tree, place = tmp_path / "linux", kernel.tree.cache.directory("trees", "0123456789abcdef")
    subprocess.run(["git", "init", "--quiet", tree], check=True)
    subprocess.run(["git", "clone", "--quiet", "--shared", tree, place / "source"], check=True, capture_output=True)
    image = place / f"{'ab' * 20}-01234567"
    image.touch()
    assert kernel.tree.built() == [f"{tree}@abababababab"]
    shutil.rmtree(tree)
    assert kernel.tree.built() == [str(image)]


@pytest.mark.parametrize("place", ["boot/vmlinuz-7.0-mine", "lib/modules/7.0-mine/vmlinuz"])
def test_the_running_kernel_is_found_where_distributions_keep_it(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel.os, "uname", lambda: SimpleNamespace(release="7.0-mine"))
    monkeypatch.setattr(kernel, "Path", lambda path: tmp_path / path.lstrip("/"))
    with pytest.raises(MachineError, match="running kernel is not to be read"):
        kernel.find("running")
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).touch()
    assert kernel.find("running").image == tmp_path / place


def test_only_a_guest_counts_instructions() -> None:
    with pytest.raises(InputError, match="only a guest machine"):
        loads("[probes]\ninstructions = true\n[workloads.a]\noperations = 1\n", "host.toml")


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("lib", ["lib", "usr/lib"])
def test_a_kernel_in_one_package_or_in_four_is_found(
    split: bool, lib: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's from version 7.2 on depend on three others: for the image, which lies beside the modules, for these, and
    for the configuration and the list of what is built in. Debian 13 has modules below usr/lib."""
    release = "7.3.4-amd64"
    if split:
        holds = {
            "binary": [f"usr/lib/modules/{release}/vmlinuz"],
            "modules": [f"usr/lib/modules/{release}/kernel/a.ko"],
            "base": [f"usr/lib/modules/{release}/{name}" for name in ("config", "modules.builtin")],
        }
    else:
        holds = {"image": [f"boot/vmlinuz-{release}", f"{lib}/modules/{release}/kernel/a.ko"]}
    asked = []

    def run(arguments: Sequence[str], limit_s: float, cwd: Path) -> subprocess.CompletedProcess[str]:
        if "download" in arguments:
            packages = [name for name in arguments if name.startswith("linux-")]
            asked.extend(packages)
            for package in packages:
                (cwd / f"{package}.deb").touch()
        else:
            for path in holds.get(Path(arguments[2]).name.split("-")[1], []):
                (cwd / path).parent.mkdir(parents=True, exist_ok=True)
                (cwd / path).touch()
        return subprocess.CompletedProcess(arguments, 0, "", "")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(debian, "_run", run)
    monkeypatch.setattr(debian.command, "find", lambda name: name)
    found = kernel.find("7.3.4")
    assert found.image.name.startswith("vmlinuz") and found.image.is_file()
    assert found.modules is not None and (found.modules / "kernel" / "a.ko").is_file()
    assert not split or (found.config is not None and found.config.is_file())
    parts = [f"linux-{part}-7.3.4-amd64" for part in ("binary", "modules", "base")] if split else []
    assert asked == ["linux-image-7.3.4-amd64", *parts]


def test_kernels_sort_as_people_do() -> None:
    assert sorted(["6.12.9-cloud", "6.1.0-56-cloud", "6.12.100-cloud"], key=debian.order) == [
        "6.1.0-56-cloud",
        "6.12.9-cloud",
        "6.12.100-cloud",
    ]


def test_the_initramfs_is_named_in_its_directory_where_qemu_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QEMU takes what follows a comma in a Multiboot kernel's name for a further file, and a blank for the name's
    end."""
    monkeypatch.setattr("iolab.machines.guest.programs.qemu", lambda: "qemu")
    place = tmp_path / "x,/etc/passwd x" / "initramfs"
    arguments = qemu.Board(tmp_path, place, 1, 2**30).arguments(tmp_path / "console")
    assert arguments[arguments.index("-initrd") + 1] == "initramfs"


def test_a_comma_in_a_path_stays_in_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolab.machines.guest.programs.qemu", lambda: "qemu")
    drive = qemu.Drive(tmp_path / "a,readonly=on", "nvme", {"serial": "x,y"})
    arguments = qemu.Board(tmp_path, tmp_path, 1, 2**30, drives=[drive]).arguments(tmp_path / "console")
    assert any("a,,readonly=on,format=raw" in argument for argument in arguments)
    assert "nvme,drive=drive0,serial=x,,y" in arguments


@pytest.mark.parametrize(
    ("kernel", "key", "is_read"),
    [
        ("6.1.0-56-cloud", "config", False),
        ("6.1.0-56-cloud", "modules", False),
        ("/a/tree@v6.1", "config", True),
        ("/a/tree@v6.1", "modules", False),
        ("/boot/vmlinuz", "config", False),
        ("/boot/vmlinuz", "modules", True),
    ],
)
def test_a_key_that_no_kernel_reads_is_refused(kernel: str, key: str, is_read: bool) -> None:
    text = f'machine = "guest:{kernel}"\n[workloads.reads]\noperations = 100\n[guest]\n{key} = "/a/path"\n'
    if is_read:
        assert loads(text, "guest.toml")
    else:
        with pytest.raises(InputError, match=rf"guest.toml:5: guest.{key}: .* kernel"):
            loads(text, "guest.toml")


def test_a_margin_in_instructions_where_nothing_counts_them_is_refused() -> None:
    compare = "[workloads.reads]\noperations = 100\n[compare]\nsame_instructions = 5\n"
    assert loads('machine = "guest:6.1.0-56-cloud"\n' + compare, "a.toml").compare.same_instructions == 5
    with pytest.raises(InputError, match=r"a.toml:5: compare.same_instructions: nothing"):
        loads('machine = "model:nvme"\n' + compare, "a.toml")
