"""What a guest machine does to this one if its kernel means harm: kernels of a few bytes, which QEMU boots at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from iolab.adapters.guest import programs, qemu, reader
from iolab.adapters.guest.limit import Deadline, Ended
from iolab.adapters.guest.reader import Told
from iolab.base.errors import MachineError
from support.command_line import wait_until
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
    with pytest.raises(Ended) as error:
        run(board(place, code), place, limit_s)
    return error.value.what


def run(machine: qemu.Board, place: Path, limit_s: float, should_stop: Callable[[], bool] = lambda: False) -> Told:
    steps: list[dict[str, object]] = [{"do": "symbols", "all": True}]
    deadline = Deadline.after(limit_s)
    return qemu.run(machine, place, steps, deadline=deadline, should_stop=should_stop, on_look=lambda _: None)


def test_a_kernel_that_hangs_ends_at_the_limit_of_wall_time(tmp_path: Path) -> None:
    assert ended(tmp_path, HANG, limit_s=1) == "the guest did not end within 1 s, and said nothing"


def test_a_kernel_cannot_fill_the_disk_with_its_console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "CONSOLE_MAX_BYTES", 1 << 16)
    assert "to its console; its last lines: AAAA" in ended(tmp_path, repeats(SERIAL_PORT, b"A"))


@pytest.mark.parametrize("said", [b"x\n", b"[1]\n", b'{"bytes":"x"}\n', b'{"step":0}\n', b'{"step":{},"told":1}\n'])
def test_what_no_agent_says_ends_the_machine(tmp_path: Path, said: bytes) -> None:
    assert "what no agent of iolab's says" in ended(tmp_path, says(said))


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


def emulators(place: Path) -> list[int]:
    """QEMU's processes whose machine lies in that directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if b"qemu-system" in words.split(b"\0")[0] and str(place).encode() in words:
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
