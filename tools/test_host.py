"""Boots a whole Debian under QEMU, installs iolab's wheel in it and runs the tests of tests/host there. `make
test-host` calls it.

    tools/test_host.py [--suite bookworm] [--wheel FILE|built] [--accelerator tcg|kvm] [PYTEST'S ARGUMENTS ...]

By KVM where it works, else emulated. The wheel is built for release, or is packed of what `make` has built already.

The machine has four CPUs, systemd with control groups of version 2, two NVMe drives (one with four queues, one with a
zoned namespace besides), two SCSI disks, and Debian's kernel with device mapper, md and null_blk. Its disk comes from
host_image.py, and what is written to it is gone with the machine, which dies with this command. Exit status 1 when a
test failed or the machine ended early.
"""

import argparse
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import build_wheels
import host_image
from host_image import Image, ImageError
from iolab.base.errors import MachineError
from iolab.machines.guest import kvm, programs
from iolab.machines.guest.limit import Deadline
from iolab.machines.guest.qemu import chunks, last_bytes
from iolab.machines.system import command

ROOT = Path(__file__).resolve().parents[1]
CPUS, MEMORY = 4, "3G"
DRIVE_BYTES = 1 << 30
DRIVES = ("four-queues", "one-queue", "zoned", "scsi-a", "scsi-b")
ACCELERATORS = {
    "tcg": ("-accel", "tcg,thread=multi", "-cpu", "max"),
    "kvm": ("-accel", "kvm", "-cpu", "host"),
}
ENDED = re.compile(rb"tests ended with (\d+)\s")
"""The last line of a report, with pytest's exit status."""
GO = """\
cd /opt/tests
export IOLAB_TESTS_OF_HOST=1 PATH=/opt/iolab/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=
uname -srm
if python -m pip install --quiet --no-index --root-user-action ignore iolab-*.whl; then
    python -m pytest -p no:cacheprovider --color=no -v --tb=short --durations=15 "$@"
fi
echo "tests ended with $?"
"""
CONSOLE_LINES = 15
SLOWER = {"tcg": 10, "kvm": 1}
"""Than on this machine, for the limits of tests."""
LIMIT_S = {"tcg": 3600.0, "kvm": 900.0}


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests of a host in a whole Debian.")
    parser.add_argument("--suite", choices=host_image.SUITES, default="bookworm")
    parser.add_argument("--wheel", help="this file instead of a release build; built: packed of what is built already")
    parser.add_argument("--accelerator", choices=ACCELERATORS, help="instead of kvm where that works, else tcg")
    arguments, for_pytest = parser.parse_known_args()
    try:
        image = host_image.image(arguments.suite)
        qemu = programs.qemu()
    except (ImageError, MachineError) as error:
        print(f"test-host: {error}", file=sys.stderr)
        return 3
    # What is made is removed on the way out, and the machine ends with it.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    accelerator = arguments.accelerator or fastest(image)
    wheel = wheel_of(arguments.wheel)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="iolab-host-", dir="/var/tmp") as made:
        directory = Path(made)
        pack(directory / "files", wheel, for_pytest or ["tests/host"], SLOWER[accelerator])
        for name in DRIVES:
            (directory / name).touch()
            os.truncate(directory / name, DRIVE_BYTES)
        status = report([qemu, *machine(image, accelerator)], directory, LIMIT_S[accelerator])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = f"{time.monotonic() - began:.0f} s, CPU time {used.ru_utime + used.ru_stime:.0f} s"
    print(f"test-host: {arguments.suite}, {accelerator}: {took}")
    return status


def fastest(image: Image) -> str:
    """KVM where it works."""
    try:
        kvm.check(image.kernel, Deadline.after(kvm.LIMIT_S))
    except MachineError as error:
        print(f"test-host: emulated: {error.what.splitlines()[0]}", file=sys.stderr)
        return "tcg"
    return "kvm"


def wheel_of(wanted: str | None) -> Path:
    """Args: wanted: a file, or `built`; None: a release build."""
    if wanted == "built":
        return build_wheels.of_what_is_built()
    return build_wheels.build("x86_64") if wanted is None else Path(wanted)


def pack(target: Path, wheel: Path, for_pytest: list[str], slower: int) -> None:
    """The tests and the wheel, as the machine finds them on a drive."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "tests", "tools", "pyproject.toml"]
    names = subprocess.run(listed, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    go = target.with_name("go")
    go.write_text(f"export IOLAB_TESTS_SLOWER={slower}\nset -- {shlex.join(for_pytest)}\n{GO}")
    with tarfile.open(target, "w") as packed:
        for name in filter(None, names):
            packed.add(ROOT / name, name)
        packed.add(wheel, wheel.name)
        packed.add(go, "go")


def machine(image: Image, accelerator: str) -> Iterator[str]:
    """QEMU's arguments, for its current directory to be that of the drives."""
    yield from ("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none")
    yield from ("-machine", "q35", *ACCELERATORS[accelerator], "-smp", str(CPUS), "-m", MEMORY)
    yield from ("-kernel", str(image.kernel), "-initrd", str(image.initrd))
    # A timer that the emulator serves late on a busy machine is no broken one: the kernel's check would panic.
    checks = " no_timer_check" if accelerator == "tcg" else ""
    yield from ("-append", f"root=LABEL=root rw console=ttyS0 panic=-1 systemd.journald.forward_to_console=1{checks}")
    yield from ("-chardev", "file,id=console,path=console", "-serial", "chardev:console")
    yield from ("-device", "virtio-serial-pci", "-chardev", "file,id=report,path=/dev/stdout")
    yield from ("-device", "virtserialport,chardev=report,name=report", "-device", "virtio-rng-pci")
    yield from _drive("root", str(image.disk), "snapshot=on,cache=unsafe", "virtio-blk-pci")
    yield from _drive("files", "files", "readonly=on", "virtio-blk-pci,serial=files")
    yield from _drive("nvme0", "four-queues", "cache=unsafe", "nvme,serial=four-queues,max_ioqpairs=4")
    yield from _drive("nvme1", "one-queue", "cache=unsafe", "nvme,serial=one-queue,max_ioqpairs=1")
    yield from ("-device", "nvme,id=zones,serial=zoned")
    yield from _drive("nvme2", "zoned", "cache=unsafe", "nvme-ns,bus=zones,zoned=true,zoned.zone_size=64M")
    yield from ("-device", "virtio-scsi-pci")
    for name in ("scsi-a", "scsi-b"):
        yield from _drive(name, name, "cache=unsafe", f"scsi-hd,serial={name}")


def _drive(name: str, file: str, how: str, device: str) -> Iterator[str]:
    yield from ("-drive", f"if=none,id={name},format=raw,file={file.replace(',', ',,')},{how}")
    yield from ("-device", f"{device},drive={name}")


def report(arguments: list[str], directory: Path, limit_s: float) -> int:
    """Runs the machine to its end and prints what it reports; the exit status of this command."""
    told, until, ended, late = b"", time.monotonic() + limit_s, None, False
    with running(arguments, directory) as process:
        assert process.stdout is not None
        for chunk in chunks(process.stdout.fileno()):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            told = (told + chunk)[-200:]
            # Not until it has shut down: a device that a test left hanging would keep it.
            if (ended := ENDED.search(told)) or (late := time.monotonic() > until):
                break
    if ended is not None:
        return 0 if ended[1] == b"0" else 1
    what = f"did not end within {limit_s:g} s" if late else "ended before its tests did"
    console = last_bytes(directory / "console").decode(errors="replace").splitlines()[-CONSOLE_LINES:]
    print(f"test-host: the machine {what}; its console's last lines:", *console, sep="\n", file=sys.stderr)
    if keep := os.environ.get("IOLAB_KEEP_CONSOLE"):
        shutil.copy(directory / "console", keep)
    return 1


@contextmanager
def running(arguments: list[str], directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """QEMU, which dies with this process."""
    process = subprocess.Popen(
        ["nice", "-n", "19", *arguments],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=command.dying_with_parent(),
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
