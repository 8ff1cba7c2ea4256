"""Devices that hold what somebody still wants, under every name and option that might reach them: not a byte changes.

Each case makes its devices anew, hashes the victim, lets iolab try, and hashes again.
"""

import os
import random
import signal
import struct
import subprocess
import time
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from family import Family, Outcome
from ground import Ground, detach_under, digest, ill_told, lane_on_ground, run_to_end
from support.devices import MIB, attach, command, detach, sparse_file
from support.leftovers import kill_processes
from support.runs import events

SIZE = 32 * MIB
SECTOR = 512
LOAD = """\
[workloads.load]
pattern = "random"
read_percent = 0
file_size = "4MiB"
duration = "20ms"
interval = "10ms"
[settings.a]
{setting}
"""
SLOW = LOAD.replace("20ms", "300ms")


@dataclass
class Scene:
    """A case under way."""

    own: Ground
    rng: random.Random
    wrong: list[str] = field(default_factory=list)
    images: int = 0

    def image(self, size_bytes: int = SIZE) -> Path:
        self.images += 1
        return sparse_file(self.own.work / f"disk-{self.images}.img", size_bytes)

    def device(self, size_bytes: int = SIZE) -> Path:
        return attach(self.image(size_bytes))

    def victim(self, size_bytes: int = SIZE) -> Path:
        """A device full of somebody's filesystem, which is not mounted."""
        device = self.device(size_bytes)
        command("mkfs.ext4", "-q", "-F", device)
        with device.open("r+b") as disk:
            disk.seek(size_bytes // 2)
            disk.write(self.rng.randbytes(MIB))
        return device

    def tries(self, victim: Path, text: str, name: str = "experiment.toml") -> None:
        """Runs it; whatever it says, it says well, and the victim stays."""
        before = digest(victim)
        (self.own.work / name).write_text(text)
        outcome = run_to_end(self.own.iolab, "run", name, "--out", "run")
        self.wrong += ill_told(outcome)
        self.unchanged(victim, before, f"exit status {outcome.status}, {text!r}")

    def unchanged(self, victim: Path, before: str, how: str) -> None:
        if digest(victim) != before:
            self.wrong.append(f"{victim} was changed: {how}")


def target(device: Path, *, destroy: bool = False, setting: str = "", load: str = LOAD, rounds: int = 1) -> str:
    lines = f'kind = "device"\npath = "{device}"\n' + "destroy = true\n" * destroy
    return f"rounds = {rounds}\nseed = 1\n[target]\n{lines}{load.format(setting=setting)}"


def scratch(options: str, *, setting: str = "", filesystem: str = "ext4", size: str = "64MiB") -> str:
    head = f'kind = "scratch"\nsize = "{size}"\nfilesystem = "{filesystem}"\n'
    return f"rounds = 1\nseed = 1\n[target]\n{head}{options}\n{LOAD.format(setting=setting)}"


def full_of_data(scene: Scene) -> None:
    _data(scene, 0, SIZE)


def data_after_zeros(scene: Scene) -> None:
    _data(scene, MIB, SIZE - MIB)


def data_in_the_second_half(scene: Scene) -> None:
    _data(scene, SIZE // 2, SIZE // 2)


def data_at_the_beginning(scene: Scene) -> None:
    _data(scene, 0, 64 << 10)


def data_at_the_end(scene: Scene) -> None:
    _data(scene, SIZE - MIB, MIB)


def _data(scene: Scene, at: int, length: int) -> None:
    device = scene.device()
    with device.open("r+b") as disk:
        disk.seek(at)
        disk.write(scene.rng.randbytes(length))
    scene.tries(device, target(device))


def data_and_a_job_file(scene: Scene) -> None:
    device = scene.device()
    device.write_bytes(scene.rng.randbytes(SIZE))
    scene.tries(device, f"[w]\nfilename={device}\nrw=randwrite\nbs=4k\nsize=1m\nioengine=psync\n", "job.fio")


def partition_table(scene: Scene) -> None:
    _gpt(scene, keep=range(SIZE // SECTOR))


def partition_table_backup_alone(scene: Scene) -> None:
    _gpt(scene, keep=range(SIZE // SECTOR - 33, SIZE // SECTOR))


def partition_table_without_protection(scene: Scene) -> None:
    _gpt(scene, keep=range(1, SIZE // SECTOR))


def _gpt(scene: Scene, keep: range) -> None:
    image = scene.image()
    with image.open("r+b") as disk:
        for sector, content in gpt(SIZE // SECTOR).items():
            if sector in keep:
                disk.seek(sector * SECTOR)
                disk.write(content)
    device = attach(image)
    scene.tries(device, target(device))


def gpt(sectors: int) -> dict[int, bytes]:
    """A partition table with one partition: protective MBR, header and entries, and both again at the end."""
    kind = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4").bytes_le
    entry = kind + uuid.uuid4().bytes_le + struct.pack("<QQQ72s", 2048, 22527, 0, "data".encode("utf-16-le"))
    entries = entry.ljust(32 * SECTOR, b"\0")
    disk = uuid.uuid4().bytes_le
    last = sectors - 1

    def header(own: int, other: int, first_entry: int) -> bytes:
        bounds = (own, other, 34, sectors - 34, disk, first_entry, 128, 128, zlib.crc32(entries))
        packed = struct.pack("<8sIIIIQQQQ16sQIII", b"EFI PART", 0x10000, 92, 0, 0, *bounds)
        return packed[:16] + struct.pack("<I", zlib.crc32(packed)) + packed[20:]

    protective = (
        bytes(446) + struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff" * 3, 1, last) + bytes(48) + b"\x55\xaa"
    )
    return {0: protective, 1: header(1, last, 2), 2: entries, last - 32: entries, last: header(last, 1, last - 32)}


def superblock_backups(scene: Scene) -> None:
    """The first two MiB of a filesystem are gone, the rest could be saved."""
    for make, size in ((["mkfs.ext4", "-q", "-b", "1024"], SIZE), (["mkfs.xfs", "-q"], 320 * MIB)):
        device = scene.device(size)
        command(*make, device)
        with device.open("r+b") as disk:
            disk.write(bytes(2 * MIB))
        scene.tries(device, target(device))


def signatures(scene: Scene) -> None:
    for make in (["mkfs.ext4", "-q"], ["mkfs.btrfs", "-q"], ["mkswap"]):
        device = scene.device(128 * MIB if "btrfs" in make[0] else SIZE)
        command(*make, device)
        scene.tries(device, target(device))


def mounted_elsewhere(scene: Scene) -> None:
    """In a mount namespace that iolab does not see, read-only; with leave to destroy."""
    device = scene.victim()
    mount = f"mount -o ro,noload {device} /mnt && sleep 60"
    holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", mount], start_new_session=True)
    time.sleep(0.3)
    scene.tries(device, target(device, destroy=True))
    os.killpg(holder.pid, signal.SIGKILL)
    holder.wait()


def under_another_loop_device(scene: Scene) -> None:
    device = scene.victim()
    upper = attach(device)
    scene.tries(device, target(device, destroy=True))
    detach(upper)


def swap_in_use(scene: Scene) -> None:
    """On a disk: over memory it would deadlock the kernel. The kernel may put pages there: its bytes say nothing."""
    device = scene.device()
    command("mkswap", device)
    command("swapon", "--priority", "-2", device)
    try:
        outcome = run_to_end(scene.own.iolab, "run", str(_written(scene, target(device, destroy=True))), "--out", "run")
    finally:
        command("swapoff", device)
    scene.wrong += ill_told(outcome, statuses=(2, 3))


def _written(scene: Scene, text: str) -> Path:
    path = scene.own.work / "experiment.toml"
    path.write_text(text)
    return path


MKFS: dict[str, tuple[str, ...]] = {
    "xfs": (
        "-l logdev={0}",
        "-l logdev={0},size=16m",
        "-llogdev={0}",
        "-r rtdev={0}",
        "-d name={0}",
        "-d file=1,name={1},size=320m",
        "-L {0}",
        "{0}",
        "-- {0}",
        "-m uuid=00000000-0000-0000-0000-000000000001 {0}",
        "-p {1}",
        "-c options={1}",
    ),
    "ext4": (
        "-J device={0}",
        "-Jdevice={0}",
        "-O journal_dev {0}",
        "-L {0} -F",
        "-F {0}",
        "-FF {0}",
        "-z {1}",
        "-d {1}",
        "-l {1}",
        "-E offset=0 {0}",
        "-n {0}",
        "-L",
    ),
    "btrfs": ("{0}", "-d raid0 {0}", "-f {0}", "-r {1}", "--rootdir {1}", "-L x {0}", "-L"),
    "ext2": ("-L", "{0}", "-U {0}", "-M {0}"),
}
MOUNT = {
    "xfs": ("logdev={0}", "rtdev={0}", "noatime,logdev={0}"),
    "ext4": ("journal_path={0}", "journal_dev=0x700", "noatime,journal_path={0}", "remount", "bind", "loop={0}"),
    "btrfs": ("device={0}", "degraded,device={0}"),
}
SIZES = {"xfs": "320MiB", "btrfs": "128MiB"}


def option_scene(kind: str, filesystem: str, option: str, *, in_setting: bool) -> Callable[[Scene], None]:
    def named_by_an_option(scene: Scene) -> None:
        victim = scene.victim(320 * MIB if filesystem == "xfs" and "dev=" in option else SIZE)
        precious = scene.own.directory / "precious"
        precious.write_text("somebody's\n")
        line = f'{kind}_options = "{option.format(victim, precious)}"'
        placed = ("", line) if in_setting else (line, "")
        scene.tries(
            victim, scratch(placed[0], setting=placed[1], filesystem=filesystem, size=SIZES.get(filesystem, "64MiB"))
        )
        if precious.read_text() != "somebody's\n":
            scene.wrong.append(f"a file was changed by {line}")

    return named_by_an_option


def replaced_between_trials(scene: Scene) -> None:
    """Another disk under the same name in the middle of the run."""
    device = scene.device()
    other = scene.victim()
    image = other_image(other)
    detach(other)
    (scene.own.work / "experiment.toml").write_text(target(device, destroy=True, load=SLOW, rounds=4))
    with scene.own.iolab.start_program("run", "experiment.toml", "--out", "run") as process:
        _wait_for_trials(scene, process, 1)
        before = _put_in_its_place(scene, device, image)
        stdout, stderr = process.communicate(timeout=60)
    _judge(scene, image, before, process.returncode, stdout + stderr)


def replaced_before_resuming(scene: Scene) -> None:
    device = scene.device()
    other = scene.victim()
    image = other_image(other)
    detach(other)
    (scene.own.work / "experiment.toml").write_text(target(device, destroy=True, load=SLOW, rounds=4))
    _run_and_kill(scene)
    before = _put_in_its_place(scene, device, image)
    outcome = run_to_end(scene.own.iolab, "run", "--resume", "run")
    _judge(scene, image, before, outcome.status, outcome.text)


def link_repointed_before_resuming(scene: Scene) -> None:
    device, victim = scene.device(), scene.victim()
    link = scene.own.work / "disk"
    link.symlink_to(device)
    (scene.own.work / "experiment.toml").write_text(target(link, destroy=True, load=SLOW, rounds=4))
    _run_and_kill(scene)
    link.unlink()
    link.symlink_to(victim)
    before = digest(victim)
    outcome = run_to_end(scene.own.iolab, "run", "--resume", "run")
    _judge(scene, victim, before, outcome.status, outcome.text)


def link_repointed_between_trials(scene: Scene) -> None:
    device, victim = scene.device(), scene.victim()
    link = scene.own.work / "disk"
    link.symlink_to(device)
    (scene.own.work / "experiment.toml").write_text(target(link, destroy=True, load=SLOW, rounds=4))
    before = digest(victim)
    with scene.own.iolab.start_program("run", "experiment.toml", "--out", "run") as process:
        _wait_for_trials(scene, process, 1)
        other = scene.own.work / "other"
        other.symlink_to(victim)
        other.rename(link)
        stdout, stderr = process.communicate(timeout=60)
    _judge(scene, victim, before, process.returncode, stdout + stderr)


def other_image(device: Path) -> Path:
    return Path(Path("/sys/block", device.name, "loop/backing_file").read_text().strip())


def _run_and_kill(scene: Scene) -> None:
    with scene.own.iolab.start_program("run", "experiment.toml", "--out", "run") as process:
        _wait_for_trials(scene, process, 1)
        kill_processes(scene.own.state)
        process.communicate()
    scene.wrong += ill_told(run_to_end(scene.own.iolab, "restore"), statuses=(0,))


def _wait_for_trials(scene: Scene, process: subprocess.Popen[str], number: int) -> None:
    give_up = time.monotonic() + 30
    while process.poll() is None and len(events(scene.own.work / "run", "trial_finished")) < number:
        if time.monotonic() > give_up:
            break
        time.sleep(0.01)


def _put_in_its_place(scene: Scene, device: Path, image: Path) -> str:
    """The victim's digest, when it has become the device of that name."""
    before = digest(image)
    give_up = time.monotonic() + 10
    while time.monotonic() < give_up:
        # Between two trials nobody has the device open; in one it is detached when it is let go of.
        subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)
        if subprocess.run(["losetup", device, image], capture_output=True, check=False).returncode == 0:
            return before
        time.sleep(0.005)
    return before


def _judge(scene: Scene, victim: Path, before: str, status: int, text: str) -> None:
    if "Traceback" in text or status not in (0, 1, 2, 3):
        scene.wrong.append(f"exit status {status}: {text[-300:]!r}")
    scene.unchanged(victim, before, f"exit status {status}: {text[-300:]!r}")


SCENES: list[Callable[[Scene], None]] = [
    *(full_of_data, data_and_a_job_file, partition_table_backup_alone, superblock_backups, mounted_elsewhere),
    *(swap_in_use, replaced_before_resuming, link_repointed_between_trials),
    option_scene("mkfs", "xfs", "-l logdev={0}", in_setting=False),
    option_scene("mkfs", "ext4", "-L {0} -F", in_setting=True),
    # So far in the quick part.
    *(data_after_zeros, data_in_the_second_half, data_at_the_beginning, data_at_the_end),
    *(partition_table, partition_table_without_protection, signatures, under_another_loop_device),
    *(replaced_between_trials, link_repointed_before_resuming),
    *(
        option_scene(kind, filesystem, option, in_setting=in_setting)
        for kind, table in (("mkfs", MKFS), ("mount", MOUNT))
        for filesystem, options in table.items()
        for number, option in enumerate(options)
        for in_setting in ((False, True) if number == 0 else (False,))
    ),
]


QUICK = 6


class Devices:
    def __init__(self, own: Ground) -> None:
        self.own = own

    def __call__(self, case: int) -> Outcome:
        scene = Scene(self.own, self.own.lane.random("devices", case))
        attempt = SCENES[case % len(SCENES)]
        try:
            attempt(scene)
        finally:
            self.own.clear()
            detach_under(self.own.work)
        return Outcome(1, [f"{attempt.__name__}: {line}" for line in scene.wrong])


FAMILY = Family(
    name="devices",
    what="devices with data, in use, replaced, named by options of mkfs and mount",
    attacks=len(SCENES),
    attacks_quick=QUICK,
    lane=lambda lane: lane_on_ground(Devices, lane),
    needs_root=True,
)
