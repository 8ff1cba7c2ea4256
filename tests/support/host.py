"""The drives and the users of the machine that tools/test_host.py boots."""

from pathlib import Path

from support.devices import command

USER = "ann"
HOW = {
    "root": (),
    "root in a scope": ("systemd-run", "--scope", "--quiet", "--"),
    "user": ("runuser", "-u", USER, "--"),
    "user in a scope": ("systemd-run", "--scope", "--quiet", f"--uid={USER}", "--"),
}
"""Who runs iolab, and what comes before its command line."""


def drive(serial: str) -> Path:
    """The disk with this serial number."""
    for line in command("lsblk", "--nodeps", "--noheadings", "--output", "PATH,SERIAL").splitlines():
        path, _, found = line.partition(" ")
        if found.strip() == serial:
            return Path(path)
    raise AssertionError(f"no drive {serial}")


def blank(device: Path) -> Path:
    command("blkdiscard", "--force", "--zeroout", device)
    return device
