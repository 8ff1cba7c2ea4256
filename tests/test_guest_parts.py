"""What a guest machine is made of, if it is hostile: modules, drives and their parameters are checked before anything
comes of them."""

import lzma
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from iolab.base.errors import InputError, IolabError, MachineError
from iolab.domain.machine import Guest
from iolab.domain.trial.drive_properties import PROPERTIES
from iolab.files.experiment import loads
from iolab.machines.guest import debug_files, guest, kernel_paths, modules, programs
from iolab.machines.guest.modules import Modules
from iolab.machines.system import command
from iolab.studies.run.plan import Plan
from support.command_line import CommandLine

EXPERIMENT = """\
machine = "guest:6.1.0-1-cloud"
[target]
kind = "scratch"
size = "64MiB"
filesystem = "none"
[workloads.reads]
operations = 2000
file_size = "8MiB"
[guest]
"""


def module(directory: Path, name: str, *needs: str) -> None:
    (directory / f"{name}.ko").write_bytes(b"\x7fELF\0depends=" + ",".join(needs).encode() + b"\0")


def refused(directory: Path, name: str = "a") -> str:
    with pytest.raises(IolabError) as error:
        Modules(directory).needed([name])
    return error.value.what


def test_modules_that_need_each_other_in_a_circle_are_refused(tmp_path: Path) -> None:
    for name, needs in (("a", "b"), ("b", "c"), ("c", "b")):
        module(tmp_path, name, needs)
    assert refused(tmp_path) == "modules depend on each other in a circle: c needs b too"
    module(tmp_path, "a", "a")
    assert refused(tmp_path) == "modules depend on each other in a circle: a needs a too"


def test_so_is_a_chain_of_5000(tmp_path: Path) -> None:
    for number in range(5000):
        module(tmp_path, f"m{number}", f"m{number + 1}")
    assert refused(tmp_path, "m0") == "more than 500 modules are needed"


def test_so_are_modules_that_would_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "MODULES_BYTES_MAX", 100)
    module(tmp_path, "a", "b")
    (tmp_path / "b.ko").write_bytes(b"\x7fELF" + bytes(100))
    assert "take more than 100" in refused(tmp_path)


def test_modules_that_share_what_they_need_load_it_once(tmp_path: Path) -> None:
    for name, needs in (("a", ("b", "c")), ("b", ("d",)), ("c", ("d", "b")), ("d", ())):
        module(tmp_path, name, *needs)
    assert [name for name, _ in Modules(tmp_path).needed(["a", "d"])] == ["d", "b", "c", "a"]


def test_an_xz_is_unpacked_as_far_as_a_module_goes(tmp_path: Path) -> None:
    whole = lzma.compress(b"\x7fELF" + bytes(1 << 20))
    path = tmp_path / "a.ko.xz"
    path.write_bytes(whole)
    assert len(Modules(tmp_path).needed(["a"])[0][1]) == (1 << 20) + 4
    for content, what in (
        (lzma.compress(bytes(80 << 20), preset=0), "longer than 64MiB, the most for a module"),
        (b"none at all, of any kind", "is no whole file of xz: Input format not supported by decoder"),
        (whole[:-20], "is no whole file of xz"),
        (lzma.compress(b"text"), "is no kernel module (ELF)"),
    ):
        path.write_bytes(content)
        assert refused(tmp_path) == what


def test_what_is_no_module_does_not_reach_the_guest(tmp_path: Path) -> None:
    (tmp_path / "a.ko").symlink_to("/etc/passwd")
    assert refused(tmp_path) == "is no kernel module (ELF)"
    (tmp_path / "a.ko").unlink()
    os.mkfifo(tmp_path / "a.ko")
    assert refused(tmp_path) == "is a pipe; expected a module in a regular file"
    os.mkfifo(tmp_path / "modules.builtin")
    assert refused(tmp_path) == "is a pipe; expected a list of modules in a regular file"


def test_a_directory_without_end_is_not_walked_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_paths, "ENTRIES_MAX", 50)
    for number in range(60):
        module(tmp_path, f"m{number}")
    assert refused(tmp_path) == "more than 50 entries, too many for a kernel"


def test_directories_may_lie_deeper_than_python_recurses(tmp_path: Path) -> None:
    place = top = tmp_path / "top"
    for _ in range(1500):
        place.mkdir()
        place /= "d"
    module(place.parent, "a")
    try:
        assert [name for name, _ in Modules(top).needed(["a"])] == ["a"]
        assert debug_files.at(top) is None
    finally:
        subprocess.run(["rm", "-r", top], check=True)


def test_a_missing_module_is_the_machines(tmp_path: Path) -> None:
    module(tmp_path, "a", "x" * 5000)
    with pytest.raises(MachineError, match=r"this kernel has no module x{100}$"):
        Modules(tmp_path).needed(["a"])


def problem(text: str) -> str:
    with pytest.raises(InputError) as error:
        loads(text, "guest.toml")
    return str(error.value)


@pytest.mark.parametrize(
    ("drive", "parameter", "what"),
    [
        ("virtio-blk", 'romfile = "/etc/passwd"', "unknown parameter of virtio-blk; there are: config-wce, discard,"),
        ("nvme", 'romfile = "/etc/passwd"', "unknown parameter of nvme; there are: aer_max_queued,"),
        ("nvme", 'drive = "drive1"', "unknown parameter of nvme"),
        ("nvme", 'serial = "x,romfile=/etc/passwd"', '"x,romfile=/etc/passwd" given; expected a word'),
        ("nvme", 'serial = "/etc/passwd"', "expected a word of at most 20 letters, digits"),
        ("nvme", 'max_ioqpairs = "4,romfile=x"', "expected a whole number from 0 to 1024"),
        ("nvme", '"max_ioqpairs=1,romfile" = "/etc/passwd"', "unknown parameter of nvme"),
        ("virtio-blk", '"num_queues" = 1', "unknown parameter of virtio-blk; did you mean num-queues?"),
        ("virtio-blk", 'discard = "on,romfile=x"', "expected true, false, or one of on, off"),
        ("virtio-blk", 'physical_block_size = "4KiB,x"', 'expected a size such as "4KiB"'),
        ("null_blk", 'irqmode = "1\\\\nx"', "expected a whole number from 0 to"),
        ("null_blk", '"../../etc" = 1', "unknown parameter of null_blk"),
        ("scsi_debug", 'delay = "0 init=/bin/sh"', "expected a whole number from"),
    ],
)
def test_drives_take_what_their_kind_has(drive: str, parameter: str, what: str) -> None:
    found = problem(f'{EXPERIMENT}drive = "{drive}"\n[guest.drive_parameters]\n{parameter}\n')
    assert "guest.toml:12" in found and what in found and "\n" not in found


def test_a_settings_own_parameter_is_refused_at_the_setting() -> None:
    changes = '{ drive = "nvme", "drive_parameters.romfile" = "/etc/passwd" }'
    found = problem(f"{EXPERIMENT}[settings.a]\n[settings.b]\nmachine = {changes}\n")
    assert "guest.toml:12: settings.b.machine: drive_parameters.romfile: unknown parameter of nvme" in found


def test_parameters_are_told_as_the_drive_takes_them() -> None:
    def told(drive: str, parameters: str) -> dict[str, str]:
        text = f'{EXPERIMENT}drive = "{drive}"\n[guest.drive_parameters]\n{parameters}\n'
        machine = loads(text, "guest.toml").machine
        assert isinstance(machine, Guest)
        return next(iter(machine.under.values())).drive_parameters

    given = 'discard = false\nnum-queues = 2\nserial = "a_1"\nphysical_block_size = "4KiB"\nwrite-cache = "auto"'
    assert told("virtio-blk", given) == {
        "discard": "off",
        "num-queues": "2",
        "serial": "a_1",
        "physical_block_size": "4096",
        "write-cache": "auto",
    }
    assert told("null_blk", "irqmode = 2\ndiscard = true") == {"irqmode": "2", "discard": "1"}


@pytest.mark.skipif(command.find(programs.QEMU) is None, reason="takes QEMU")
@pytest.mark.parametrize(("drive", "device"), [("virtio-blk", "virtio-blk-pci"), ("nvme", "nvme")])
def test_what_drives_take_qemu_has_and_none_of_it_is_a_text_but_the_serial_number(drive: Any, device: str) -> None:
    told = subprocess.run(
        [programs.QEMU, "-device", f"{device},help"], capture_output=True, text=True, check=True
    ).stdout
    types = dict(re.findall(r"^  (\S+?)=<(.*?)>", told, re.M))
    taken = {name: types[name] for name in PROPERTIES[drive]}
    assert {name for name, type in taken.items() if type.startswith(("str", "link", "child"))} == {"serial"}


@pytest.mark.parametrize(
    ("module", "parameter"), [("../../init", "a = 1"), ("loop", '"a b" = 1'), ("loop", 'a = "1 init=/bin/sh"')]
)
def test_parameters_of_modules_are_words(module: str, parameter: str) -> None:
    found = problem(f'{EXPERIMENT}[guest.module_parameters."{module}"]\n{parameter}\n')
    assert "expected a module, its parameter and a value, each a word" in found


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('size = "64MiB"', 'size = "8388608TiB"', "target.size"),
        ('size = "64MiB"', 'size = "7EiB"', "guest.toml:4: target.size: a guest machine's drive has at most 8TiB"),
        ("[guest]\n", '[guest]\nmemory = "7EiB"\n', "guest.memory"),
        ("[guest]\n", f'[guest]\ncommand_line = "{"x" * 2000}"\n', "guest.command_line"),
    ],
)
def test_sizes_are_those_of_a_machine(old: str, new: str, what: str) -> None:
    assert what in problem(EXPERIMENT.replace(old, new))


@pytest.mark.disk
def test_an_image_that_cannot_be_made_is_the_machines(tmp_path: Path) -> None:
    text = EXPERIMENT.replace("[guest]\n", '[guest]\ndrive = "nvme"\n').replace('"none"', '"ext4"')
    (trial,) = Plan(loads(text, "guest.toml"), 1).round(0)
    larger = trial.model_copy(update={"target": trial.target.model_copy(update={"size_bytes": 2**63 - 1})})
    with pytest.raises(MachineError, match=r"no image of .* can be made there: File too large"):
        guest._drives(larger, tmp_path)


def test_a_guest_of_a_command_has_the_memory_of_a_machine(iolab: CommandLine) -> None:
    for memory in ("8EiB", "0", "1MiB"):
        done = iolab("guest", "running", "--memory", memory, "--", "true", status=2)
        done.assert_one_clear_line(2, f"--memory: {memory} given; expected a size from 128MiB to 1TiB")
