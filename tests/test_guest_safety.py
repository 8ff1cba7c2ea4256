"""What a guest machine does to this one if its kernel means harm: kernels of a few bytes, which QEMU boots at once."""

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from iolab.base.errors import MachineError
from iolab.machines.guest import programs, qemu, reader
from iolab.machines.guest.limit import Deadline, GuestEnded
from iolab.machines.guest.reader import AgentReport
from support.command_line import CommandLine, wait_until
from support.leftovers import kill_processes
from support.tiny_kernels import DEBUG_PORT, HANG, SERIAL_PORT, image, repeats, says

try:
    programs.qemu()
except MachineError as absent:
    pytest.skip(f"no guest machine here: {absent}", allow_module_level=True)


def board(place: Path, code: bytes, *drives: qemu.Drive) -> qemu.Board:
    image(place / "kernel", code)
    (place / "initramfs").write_bytes(b"nothing")
    return qemu.Board(place / "kernel", place / "initramfs", cpus=1, memory_bytes=64 << 20, drives=drives)


def ended(place: Path, code: bytes, limit_s: float = 30) -> str:
    with pytest.raises(GuestEnded) as error:
        run(board(place, code), place, limit_s)
    return error.value.what


def run(
    machine: qemu.Board, place: Path, limit_s: float, should_stop: Callable[[], bool] = lambda: False
) -> AgentReport:
    steps: list[dict[str, object]] = [{"do": "symbols", "all": True}]
    deadline = Deadline.after(limit_s)
    return qemu.run(machine, place, steps, deadline=deadline, should_stop=should_stop, on_look=lambda _: None)


def test_a_kernel_that_hangs_ends_at_the_limit_of_wall_time(tmp_path: Path) -> None:
    assert ended(tmp_path, HANG, limit_s=1) == "the guest did not end within 1 s, without a message"


def test_a_kernel_cannot_fill_the_disk_with_its_console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "CONSOLE_MAX_BYTES", 1 << 16)
    assert "to its console; its last lines: AAAA" in ended(tmp_path, repeats(SERIAL_PORT, b"A"))


@pytest.mark.parametrize("said", [b"x\n", b"[1]\n", b'{"bytes":"x"}\n', b'{"step":0}\n', b'{"step":{},"value":1}\n'])
def test_what_no_agent_says_ends_the_machine(tmp_path: Path, said: bytes) -> None:
    assert "what iolab's agent never sends" in ended(tmp_path, says(said))


def test_a_kernel_cannot_fill_the_memory_with_what_it_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LINE_BYTES_MAX", 1 << 12)
    assert "in line 1: longer than 4 KiB: AAAA" in ended(tmp_path, repeats(DEBUG_PORT, b"A"))
    assert "bytes: Input should be less than" in ended(tmp_path, says(b'{"bytes":99999999}\n'))


def test_the_emulator_can_write_the_machines_own_files_only(tmp_path: Path) -> None:
    (tmp_path / "drive").write_bytes(bytes(1 << 20))
    machine = board(tmp_path, HANG, qemu.Drive(tmp_path / "drive", "virtio-blk-pci", {}))
    done = threading.Event()
    running = threading.Thread(target=run, args=(machine, tmp_path, 60.0, done.is_set))
    running.start()
    try:
        wait_until(lambda: [fd for pid in emulators(tmp_path) for fd in opened(pid) if fd.endswith("/drive")], "QEMU")
        (pid,) = emulators(tmp_path)
        assert {Path(path).name for path in opened(pid)} == {"drive", "console", "qemu"}
        assert Path(f"/proc/{pid}/cwd").readlink() == tmp_path
        status = Path(f"/proc/{pid}/status").read_text()
        assert "Seccomp:\t2" in status
        assert f"Max data size             {(64 << 20) + (4 << 30)}" in Path(f"/proc/{pid}/limits").read_text()
        assert not [line for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines() if of(pid, line)]
    finally:
        done.set()
        running.join()


def test_what_a_killed_guest_leaves_is_taken_away(iolab: CommandLine, tmp_path: Path) -> None:
    kernel = image(tmp_path / "vmlinuz", HANG)
    place = iolab.state_dir / "guests"
    with iolab.start("guest", kernel, "--", "/bin/true") as process:
        wait_until(lambda: bool(emulators(place)), "QEMU")
        kill_processes(iolab.state_dir)
        process.wait()
    (left,) = place.iterdir()
    assert f"removed {left}" in iolab("restore").stdout
    wait_until(lambda: not emulators(place), "QEMU's end")
    assert list(place.iterdir()) == []


def test_somebody_else_s_run_boots_no_kernel_unasked(iolab: CommandLine, tmp_path: Path) -> None:
    kernel = image(tmp_path / "vmlinuz", HANG)
    target = '[target]\nkind = "scratch"\nsize = "64MiB"\nfilesystem = "none"\n'
    load = '[workloads.reads]\noperations = 20\nfile_size = "1MiB"\n[guest]\ntime_limit = "1s"\n'
    iolab.write("guest.toml", f'machine = "guest:{kernel}"\nrounds = 1\n{target}{load}')
    iolab("run", "guest.toml", "--out", "run", status=None)
    other = replace(iolab, state_dir=tmp_path / "another's")
    before = sorted(iolab.cwd.rglob("*"))
    outcome = other("run", "--resume", "run", "--retry-failed", status=None)
    outcome.assert_one_clear_line(2, "was not made here by this user", "--trust-run")
    assert str(kernel) in outcome.stderr
    assert sorted(iolab.cwd.rglob("*")) == before


def emulators(place: Path) -> list[int]:
    """QEMU's processes whose machine lies in that directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            program, at = path.read_bytes().split(b"\0")[0], path.with_name("cwd").readlink()
        except OSError:
            continue
        if b"qemu-system" in program and at.is_relative_to(place):
            found.append(int(path.parent.name))
    return found


def opened(pid: int) -> list[str]:
    """Regular files that the process may write."""
    found = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            flags = int(Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text().split()[3], 8)
            if flags & os.O_ACCMODE != os.O_RDONLY and fd.is_file():
                found.append(str(fd.readlink()))
        except OSError:
            continue
    return found


def of(pid: int, line: str) -> bool:
    """Whether a line of /proc/net/tcp is of a socket that the process has."""
    words = line.split()
    sockets = {str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()}
    return len(words) > 9 and f"socket:[{words[9]}]" in sockets
