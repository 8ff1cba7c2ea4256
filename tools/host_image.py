"""The disk of a whole Debian with the distribution's kernel, systemd, and what iolab depends on; made once, kept in the
cache.

mmdebstrap makes it, as root or, where user namespaces are allowed (Debian: uidmap, a line in /etc/subuid), as anybody.
The mirror and what it takes to reach it are those of this machine's apt.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from iolab.machines.guest import cache
from iolab.machines.system import command

ROOT = Path(__file__).resolve().parents[1]
SUITES = {"bookworm": "3.11", "trixie": "3.13"}
"""Debian's releases, and the version of Python that each has."""
PACKAGES = (
    *("linux-image-amd64", "systemd-sysv", "udev", "dbus", "libpam-systemd", "dbus-user-session", "kmod", "zstd"),
    *("python3-venv", "procps", "util-linux", "fdisk", "mount", "e2fsprogs", "xfsprogs", "btrfs-progs"),
    *("dmsetup", "cryptsetup-bin", "mdadm", "lvm2", "blktrace", "fio", "git"),
    *("podman", "crun", "uidmap"),
)
TESTS = ("pytest", "hypothesis")
"""What the tests inside need besides."""
USER = "ann"
SIZE = "6G"
LIMIT_S = 1800
_DRIVE, _PORT = r"dev-disk-by\x2did-virtio\x2dfiles.device", r"dev-virtio\x2dports-report.device"
UNIT = f"""\
[Unit]
Description=tests of iolab
Wants={_DRIVE} {_PORT}
After=multi-user.target {_DRIVE} {_PORT}
SuccessAction=poweroff
FailureAction=poweroff

[Service]
ExecStartPre=/usr/bin/tar --extract --file /dev/disk/by-id/virtio-files --directory /opt/tests
ExecStart=/bin/sh /opt/tests/go
StandardInput=null
StandardOutput=file:/dev/virtio-ports/report
StandardError=inherit
"""
# $1 is the new root directory.
CUSTOMIZE = rf"""
set -e
chroot "$1" useradd --create-home --shell /bin/bash {USER}
chroot "$1" python3 -m venv /opt/iolab
chroot "$1" /opt/iolab/bin/pip install --quiet --no-index --find-links /opt/wheels -r /opt/wheels/requirements
rm -r "$1/opt/wheels"
mkdir "$1/opt/tests"
echo host >"$1/etc/hostname"
: >"$1/etc/fstab"
ln -s ../tests.service "$1/etc/systemd/system/multi-user.target.wants/tests.service"
for idle in apt-daily.timer apt-daily-upgrade.timer man-db.timer e2scrub_all.timer fstrim.timer; do
    ln -sf /dev/null "$1/etc/systemd/system/$idle"
done
# Bound without what is mounted below it: /proc, /sys, /dev.
unshare --mount sh -c 'mount --bind "$1" "$1/mnt" && mke2fs -q -F -t ext4 -L root -d "$1/mnt" "$2" {SIZE}' sh "$1" \
    "/dev/fd/$DISK"
"""


class ImageError(Exception):
    """Why there is no image, in one line."""


@dataclass(frozen=True)
class Image:
    """What a machine boots from."""

    disk: Path
    kernel: Path
    initrd: Path


def image(suite: str) -> Image:
    """From the cache, or made: that takes minutes and a mirror."""
    wheels_wanted = (ROOT / "requirements.txt").read_text() + (ROOT / "requirements-dev.txt").read_text()
    recipe = "\n".join((suite, *PACKAGES, *TESTS, UNIT, CUSTOMIZE, wheels_wanted))
    place = _cache() / f"{suite}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    if not place.exists():
        for older in _cache().glob(f"{suite}-*"):
            shutil.rmtree(older)
        with cache.filled(place) as directory:
            _make(suite, directory)
    return Image(place / "disk", place / "vmlinuz", place / "initrd.img")


def _cache() -> Path:
    place = cache.directory(make=False).parent / "hosts"
    place.mkdir(parents=True, exist_ok=True)
    return place


def _make(suite: str, directory: Path) -> None:
    if command.find("mmdebstrap") is None:
        raise ImageError("mmdebstrap is not installed: sudo apt-get install mmdebstrap")
    print(f"making a disk of Debian {suite} in {directory.parent}, once", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="iolab-wheels-") as made:
        wheels = Path(made) / "wheels"
        _download(SUITES[suite], wheels)
        unit = Path(made) / "tests.service"
        unit.write_text(UNIT)
        # In a user namespace, root is none of the users that own the cache: the disk's file is handed over open.
        disk = os.open(directory / "disk", os.O_RDWR | os.O_CREAT)
        os.fchmod(disk, 0o666)
        hooks = (
            f'copy-in "{wheels}" /opt',
            f'upload "{unit}" /etc/systemd/system/tests.service',
            CUSTOMIZE,
            f'download /vmlinuz "{directory}/vmlinuz"',
            f'download /initrd.img "{directory}/initrd.img"',
        )
        _run(
            ["mmdebstrap", "--quiet", "--variant=minbase", "--format=null", f"--include={','.join(PACKAGES)}"]
            + [f"--aptopt={line}" for line in _apt_options()]
            + [f"--customize-hook={hook}" for hook in hooks]
            + [suite, "-", _source(suite)],
            disk,
        )
        os.fchmod(disk, 0o644)
        os.close(disk)


def _download(python: str, wheels: Path) -> None:
    """Those of the lock file that the tests inside need, for that version of Python."""
    tag = python.replace(".", "")
    platforms = (f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 26, 24, 17, 12))
    glibc = [argument for platform in platforms for argument in ("--platform", platform)]
    abis = [argument for abi in (f"cp{tag}", "abi3", "none") for argument in ("--abi", abi)]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    pip += ["--python-version", python, "--implementation", "cp", *abis, *glibc, "--dest", str(wheels)]
    # Another Python may need what this one has in itself, so the lock file only says which versions.
    wanted = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if "==" in line] + list(TESTS)
    _run([*pip, "-c", str(ROOT / "requirements-dev.txt"), *wanted])
    (wheels / "requirements").write_text("\n".join(wanted) + "\n")


def _source(suite: str) -> str:
    """The line of sources.list: the mirror that this machine's apt has for Debian itself."""
    form = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"
    asked = ["apt-get", "indextargets", "--format", form, "Identifier: Packages"]
    told = _run(asked).splitlines() if command.find("apt-get") is not None else []
    mirrors = [line.split("|")[2] for line in told if line.startswith("Debian|Debian|")]
    return f"deb {mirrors[0] if mirrors else 'http://deb.debian.org/debian'} {suite} main"


def _apt_options() -> list[str]:
    """How this machine's apt reaches a mirror."""
    if command.find("apt-config") is None:
        return []
    lines = _run(["apt-config", "dump", "--no-empty", "Acquire"]).splitlines()
    return [line for line in lines if line.lower().startswith(("acquire::http", "acquire::check-"))]


def _run(arguments: list[str], disk: int | None = None) -> str:
    """What it prints. The environment says which of its files is the disk."""
    opened = {} if disk is None else {"DISK": str(disk)}
    # What mmdebstrap mounts as root is not to be seen from here, and goes with it.
    apart = ["unshare", "--mount"] if disk is not None and os.geteuid() == 0 else []
    try:
        done = subprocess.run(
            [*apart, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            env={**os.environ, **opened},
            pass_fds=() if disk is None else (disk,),
            preexec_fn=command.dying_with_parent(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ImageError(f"{arguments[0]} did not end within {LIMIT_S} s") from None
    if done.returncode != 0:
        # mmdebstrap repeats a hook that failed.
        given = "\n".join(arguments)
        said = [line for line in done.stderr.splitlines() if line.strip() and line not in given]
        raise ImageError(f"{arguments[0]} failed: {' | '.join(said[-5:])}")
    return done.stdout
